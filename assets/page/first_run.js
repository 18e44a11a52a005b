// What the page's script is given where it is loaded: the lines of the opening race and of the first run, asked for at
// once, and the charts' library, which takes longest to start and so waits until text has been painted.
import { library } from "../player/charts/library.js";
import { el } from "../player/dom/elements.js";

const { opening, landing, plotly } = document.currentScript?.dataset ?? {};
let asked = false;

/** @param {string | undefined} file */
const fetched = (file) => (file ? fetch(file).then((answer) => (answer.ok ? answer.text() : "")).catch(() => "") : null);

export const opened = fetched(opening);
export const landed = fetched(landing);

export const loadCharts = () => {
  if (asked || !plotly) return;
  asked = true;
  const script = el("script", { src: plotly, onerror: () => { library.failed = true; } });
  requestAnimationFrame(() => setTimeout(() => document.head.append(script), 0));
};
