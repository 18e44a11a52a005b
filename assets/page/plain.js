// The page as plain files: the same parts as on a server, without forms, in its own tabs.
import { el } from "../player/dom/elements.js";
import { SCREENS, asked } from "./address.js";
import { showCost } from "./cost/cost.js";
import { showDebug } from "./debug/debug.js";
import { showLearn } from "./learn/learn.js";
import { dataOf } from "./plain_data.js";
import { plainServer } from "./plain_server.js";
import { followPointer } from "./pointer.js";
import { showRace } from "./race.js";
import { shown } from "./shown.js";
import { followHome, followTabs } from "./tabs.js";
import { toggleTheme } from "./theme.js";
import { showViewer } from "./viewer.js";

/** @param {string} screen */
const select = (screen) => {
  for (const name of SCREENS) {
    document.getElementById(`tab-${name}`)?.setAttribute("aria-selected", String(name === screen));
    const panel = document.getElementById(name);
    if (panel) panel.hidden = name !== screen;
  }
};

/** @param {string} id */
const place = (id) => {
  const node = document.getElementById(id);
  if (!node) throw new Error(`the page has no ${id}`);
  return node;
};

const begin = async () => {
  const props = await dataOf("page/props");
  /** @type {any} what each part gets; calls that would change a form do nothing */
  const io = { server: plainServer, watch: () => {}, fill: () => {}, again: () => {}, race: () => {}, branch: () => {} };
  showViewer(place("viewer"), { ...io, props: { ...props.viewer, live: false } });
  const run = asked().get("run");
  if (run && run !== props.viewer.landing) await shown.viewer?.files.recording(run);
  showRace(place("race-viewer"), { ...io, props: {} });
  showDebug(place("debug-viewer"), { ...io, props: { largest: 0, live: false } });
  showCost(place("cost-viewer"), { ...io, props: props.cost });
  showLearn(place("learn-viewer"), { ...io, props: props.learn });
};

globalThis.SpecscopeApp = /** @type {any} */ ({ theme: toggleTheme, shown });
addEventListener("DOMContentLoaded", () => {
  for (const name of SCREENS) place(`tab-${name}`).addEventListener("click", () => select(name));
  place("app-theme").addEventListener("click", toggleTheme);
  followHome();
  followTabs();
  followPointer();
  const theme = asked().get("__theme");
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.body.classList.toggle("dark", dark);
  const screen = asked().get("screen") ?? "run";
  select(SCREENS.includes(screen) ? screen : "run");
  begin().catch(() => place("viewer").replaceChildren(el("p", {}, "The data of this page is missing: copy its whole folder.")));
});
