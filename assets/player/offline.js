// Starts a page that contains its run, as `viz.write_html` writes it.
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
/** @type {Promise<{ [kind: string]: string[] }> | undefined} lines by their steps, unpacked when one is asked for */
let answers;
const unpacked = async () => {
  const bytes = Uint8Array.from(atob(part("answers").textContent ?? ""), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};
/** @param {string} kind */
const answer = (kind) => async (/** @type {number} */ k) => (await (answers ??= unpacked()))[kind][k];
const player = new Player(part("specscope"), { source: { detail: answer("detail"), rows: answer("rows") } });
player.feed(part("lines").textContent ?? "");
if (asked.step !== null) player.goto({ step: asked.step });
