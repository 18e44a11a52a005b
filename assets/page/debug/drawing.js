// Draws a figure of the Debug tab with plotly, in the colours of the theme; its points are pressed with the mouse or by keys.
import { library } from "../../player/charts/library.js";
import { el, write } from "../../player/dom/elements.js";
import { loadCharts } from "../first_run.js";
import { pointsOf, sideOf, towards } from "./points.js";

/** @import { Layout, PlotElement, PlotlyLibrary, PlotTrace } from "../../player/types.d.ts" */
/** @import { Drawing, FigurePoint } from "./types.d.ts" */

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: false, doubleClick: false, scrollZoom: false };
const POLL_MS = 50;
const PRESSES = ["Enter", " "];

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
const plotly = () => new Promise((done) => {
  loadCharts();
  const look = () => {
    if (globalThis.Plotly) done(globalThis.Plotly);
    else if (library.failed) done(null);
    else setTimeout(look, POLL_MS);
  };
  look();
});

export class DrawnFigure {
  /**
   * @param {string} label
   * @param {(row: number, second: boolean) => void} press
   * @param {(row: number, second: boolean) => string} says what a point is
   */
  constructor(label, press, says) {
    this.press = press;
    this.says = says;
    this.plot = /** @type {PlotElement} */ (el("div", { class: "app-debug-plot", role: "img", tabindex: 0,
      "aria-label": `${label}. Arrow keys choose a point, Enter opens its steps.` }));
    this.said = el("p", { class: "ss-hidden", "aria-live": "polite" });
    this.node = el("div", {}, this.plot, this.said);
    /** @type {Drawing | null} */
    this.figure = null;
    /** @type {FigurePoint[]} */
    this.points = [];
    /** @type {FigurePoint | null} the one that keys have chosen */
    this.chosen = null;
    this.listens = false;
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("focus", () => this.plot.matches(":focus-visible") && this.choose(this.points[0] ?? null));
    this.plot.addEventListener("blur", () => this.choose(null));
  }

  /**
   * @param {Drawing} figure
   * @param {{ [name: string]: string }} colours
   */
  async draw(figure, colours) {
    this.figure = figure;
    this.plot.style.minHeight = `${Number(figure.layout.height)}px`; // nothing below it jumps
    const charts = await plotly();
    if (!charts) {
      this.plot.replaceChildren("The charts' library could not be loaded: read the table.");
      return;
    }
    const width = this.plot.clientWidth;
    if (this.figure !== figure || !width) return;
    const data = /** @type {PlotTrace[]} */ (painted(figure.data, colours));
    const layout = /** @type {Layout} */ (painted({ ...figure.layout, width, autosize: false }, colours));
    charts.react(this.plot, data, layout, CONFIG);
    this.points = pointsOf(figure);
    if (this.listens) return;
    this.listens = true;
    this.plot.on("plotly_click", (event) => this.pressed(event.points?.[0]));
  }

  /** @param {unknown} point */
  pressed(point) {
    const { customdata, data, curveNumber } = /** @type {any} */ (point ?? {});
    if (typeof customdata === "number") this.press(customdata, sideOf(data, curveNumber) === 1);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const to = this.chosen ? towards(this.points, this.chosen, event.key) : null;
    if (to) this.choose(to);
    else if (this.chosen && PRESSES.includes(event.key)) this.press(this.chosen.row, this.chosen.second);
    else return;
    event.preventDefault(); // the page would scroll
  }

  /** @param {FigurePoint | null} point */
  choose(point) {
    if (!point && !this.chosen) return;
    this.chosen = point;
    write(this.said, point ? this.says(point.row, point.second) : "");
    const marks = globalThis.Plotly?.Fx;
    if (!this.listens || !marks) return;
    if (!point) return marks.unhover(this.plot);
    const { x, y, xaxis = "x", yaxis = "y" } = /** @type {any} */ (this.figure?.data[point.curve] ?? {});
    const { curve: curveNumber, at } = point;
    const place = Array.isArray(at) ? { xval: x[at[1]], yval: y[at[0]] } : { pointNumber: at }; // plotly finds no cell by its number
    return marks.hover(this.plot, [{ curveNumber, ...place }], `${xaxis}${yaxis}`);
  }

  destroy() {
    this.figure = null;
    if (this.listens) globalThis.Plotly?.purge(this.plot);
  }
}
