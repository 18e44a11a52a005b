// A figure of the Debug page: drawn by plotly, in the colours of the theme, and pressed.
import { library } from "../../../assets/player/charts/library.js";
import { el } from "../../../assets/player/dom/elements.js";
import { loadCharts } from "../first_run.js";

/** @import { Layout, PlotElement, PlotlyLibrary, PlotTrace } from "../../../assets/player/types.d.ts" */
/** @import { Drawing } from "./types.d.ts" */

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: false, doubleClick: false, scrollZoom: false };
const POLL_MS = 50;

/**
 * Named colours become the theme's; any other text stays, whatever it begins with.
 * @param {unknown} value
 * @param {{ [name: string]: string }} colours
 * @returns {unknown}
 */
export const painted = (value, colours) => {
  if (typeof value === "string") {
    const name = value.slice(1);
    return value.startsWith("$") && Object.hasOwn(colours, name) ? colours[name] : value;
  }
  if (Array.isArray(value)) return value.map((each) => painted(each, colours));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, painted(each, colours)]));
};

/** The charts' library, or null where it could not be loaded. @returns {Promise<PlotlyLibrary | null>} */
const plotly = () => new Promise((found) => {
  loadCharts();
  const look = () => {
    if (globalThis.Plotly) found(globalThis.Plotly);
    else if (library.failed) found(null);
    else setTimeout(look, POLL_MS);
  };
  look();
});

export class DrawnFigure {
  /**
   * @param {string} label
   * @param {(row: number, second: boolean) => void} press
   */
  constructor(label, press) {
    this.press = press;
    this.node = /** @type {PlotElement} */ (el("div", { class: "app-debug-plot", role: "img", "aria-label": label }));
    /** @type {Drawing | null} */
    this.figure = null;
    this.listens = false;
  }

  /**
   * @param {Drawing} figure
   * @param {{ [name: string]: string }} colours
   */
  async draw(figure, colours) {
    this.figure = figure;
    this.node.style.minHeight = `${Number(figure.layout.height)}px`; // nothing below it jumps
    const charts = await plotly();
    if (!charts) {
      this.node.replaceChildren("The charts' library could not be loaded: read the table.");
      return;
    }
    const width = this.node.clientWidth;
    if (this.figure !== figure || !width) return;
    const data = /** @type {PlotTrace[]} */ (painted(figure.data, colours));
    const layout = /** @type {Layout} */ (painted({ ...figure.layout, width, autosize: false }, colours));
    charts.react(this.node, data, layout, CONFIG);
    if (this.listens) return;
    this.listens = true;
    this.node.on("plotly_click", (event) => this.pressed(event.points?.[0]));
  }

  /** @param {unknown} point */
  pressed(point) {
    const { customdata, data, curveNumber } = /** @type {any} */ (point ?? {});
    if (typeof customdata !== "number") return;
    const side = typeof data?.meta === "number" ? data.meta : curveNumber;
    this.press(customdata, side === 1);
  }

  destroy() {
    this.figure = null;
    if (this.listens) globalThis.Plotly?.purge(this.node);
  }
}
