// Early requests for the page's script: the lines of the opening race and of the first run, at once, and the charts'
// library, which takes longest to start and so waits until text has been painted.
import { library } from "../player/charts/library.js";
import { el } from "../player/dom/elements.js";
import { dataOf } from "./plain_data.js";

const { opening, landing, plotly } = document.currentScript?.dataset ?? {};
let asked = false;

/** @param {string} file */
const textOf = (file) => (file.startsWith("page/") // of a page that is plain files
  ? dataOf(file).then(({ lines }) => /** @type {string} */ (lines))
  : fetch(file).then((answer) => (answer.ok ? answer.text() : "")));

/** @param {string | undefined} file */
const fetched = (file) => (file ? textOf(file).catch(() => "") : null);

export const opened = fetched(opening);
export const landed = fetched(landing);

export const loadCharts = () => {
  if (asked || !plotly) return;
  asked = true;
  const failed = () => { library.failed = true; };
  const load = () => plotly.startsWith("page/")
    ? dataOf(plotly).then(({ script }) => document.head.append(el("script", {}, script)), failed)
    : document.head.append(el("script", { src: plotly, onerror: failed }));
  requestAnimationFrame(() => setTimeout(load, 0));
};
