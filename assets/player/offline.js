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
const followSystem = () => document.body.classList.toggle("dark", dark.matches);
followSystem();
dark.addEventListener("change", followSystem);
/** @type {Promise<string[]> | undefined} the tables of all steps, unpacked when one is asked for */
let tables;
const unpacked = async () => {
  const bytes = Uint8Array.from(atob(part("rows").textContent ?? ""), (letter) => letter.charCodeAt(0));
  const lines = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return (await new Response(lines).text()).split("\n");
};
const rows = async (/** @type {number} */ k) => (await (tables ??= unpacked()))[k];
const player = new Player(part("specscope"), { source: { rows } });
player.feed(part("lines").textContent ?? "");
if (asked.step !== null) player.goto({ step: asked.step });
