// The start of a page that holds its run itself, as `viz.write_html` writes it.
import { Player } from "./player.js";

/** @param {string} id */
const part = (id) => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no ${id}`);
  return found;
};

const asked = JSON.parse(part("asked").textContent ?? "");
const dark = matchMedia("(prefers-color-scheme: dark)");
const dress = () => document.body.classList.toggle("dark", dark.matches);
dress();
dark.addEventListener("change", dress);
const player = new Player(part("specscope"));
player.feed(part("lines").textContent ?? "");
if (asked.step !== null) player.goto({ step: asked.step });
