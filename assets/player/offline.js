// The start of a page that holds its run itself, as `viz.write_html` writes it.
import { Player } from "./player.js";

const asked = JSON.parse(document.getElementById("asked").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.body.classList.toggle("dark", dark.matches);
dress();
dark.addEventListener("change", dress);
const player = new Player(document.getElementById("specscope"));
player.feed(document.getElementById("lines").textContent);
if (asked.step !== null) player.goto({ step: asked.step });
