// One plotly chart: drawn while its view is open and on the screen, and removed when it is closed.
import { Cells } from "./cells.js";
import { asTrace, asTraces, isLayer, nodesOf } from "./layers.js";
import { enlarged } from "./scale.js";
import { Marks } from "./marks.js";
import { el } from "../dom/elements.js";
import { fateCounts, isJudged } from "../stream/fates.js";
import { sentence } from "../text/status.js";

/** @import { Player } from "../player.js" */
/** @import { Figure, Layout, PlotElement, PlotlyLibrary, PlotTrace, Point, View } from "../types.d.ts" */

const CONFIG = {
  displayModeBar: false, displaylogo: false, responsive: false, doubleClick: false, showTips: false,
  scrollZoom: false, showAxisDragHandles: false,
};

const CLEAR = { paper_bgcolor: "#0000", plot_bgcolor: "#0000" }; // the squares of cells lie beneath
const LARGE = 1.5; // how much larger than on the page the words of a chart without cells are on the full screen, at most
const CHIP_ROOM = 56; // pixels below a chart on the full screen, for the chip that tells what is pinned

export class Plot {
  /**
   * @param {Player} player
   * @param {View} view
   */
  constructor(player, view) {
    this.player = player;
    this.view = view;
    this.gd = /** @type {PlotElement} */ (el("div", { class: "ss-plot", role: "img", "aria-label": view.label }));
    // Plotly asks at every drawing whether it has a size, and the browser would lay the page out for each chart.
    for (const side of ["clientWidth", "clientHeight"]) Object.defineProperty(this.gd, side, { value: 1 });
    this.marks = new Marks(this);
    this.cells = new Cells(this);
    const { squares, signs, words } = this.cells;
    this.box = el("div", { class: "ss-figure" }, squares, this.gd, signs, words, this.marks.svg);
    this.listenToCells();
    this.box.style.minHeight = `${this.height()}px`; // nothing jumps, and only what can be seen is taken for seen
    this.width = 0;
    this.sized = -1; // the state's count of sizes when the width was measured
    this.step = -1; // that is drawn
    /** @type {string | null} what is on the screen, to draw nothing twice */
    this.drawn = null;
    /** @type {string | null} what plotly was given last, where cells are drawn here */
    this.lastGiven = null;
    /** @type {Figure | null} */
    this.figure = null;
  }

  // Draw a step and phase; returns whether anything had to be drawn.
  draw() {
    const { record, frames, state, theme } = this.player;
    // Measuring makes the browser lay the page out: only when something may have changed its size.
    if (!this.width || this.sized !== state.size) [this.width, this.sized] = [this.box.clientWidth, state.size];
    const { width } = this;
    if (!globalThis.Plotly || !width) return false;
    const wanted = [record.version, theme, width, this.height(), this.shown(),
      record.steps[state.step]?.thin].join("|");
    if (this.drawn !== wanted) {
      const drawn = frames.figure(this.view, state, theme, this.pin, this.player.told);
      const figure = this.card ? enlarged(drawn, this.scale()) : drawn;
      this.figure = figure;
      const layout = this.layout(figure, width);
      this.show(figure, layout);
      this.cells.draw(figure);
      this.box.classList.toggle("ss-celled", this.cells.catch);
      if (this.drawn === null) this.listen();
      this.drawn = wanted;
    }
    this.step = state.step;
    this.marks.draw();
    this.describe();
    return true;
  }

  // The part of the state that this view shows.
  shown() {
    const { record, state } = this.player;
    if (this.view.grows) return `${record.last}/${this.player.told}/${state.withheld}`;
    const at = `${state.step}/${state.phase}`, { pin } = this;
    if (!this.view.pinned || pin?.step !== state.step) return at;
    return `${at}/${record.number(pin)}/${record.details.has(state.step)}`;
  }

  // The node that a view of one node is about: before the guesses are judged the first one, since which of them matters
  // most is not known yet.
  get pin() {
    const { state, record, fetch } = this.player;
    if (!this.view.pinned || isJudged(state) || state.pin?.step === state.step) return state.pin;
    if (!record.details.has(state.step)) fetch.ask("detail", state.step);
    return record.spot(state.step, 1) ?? record.spot(state.step, 0);
  }

  // The card, where it is on the full screen: itself, or as a part of the player.
  get card() {
    return this.box.closest(".ss-card.ss-filled, .ss.ss-filled .ss-card");
  }

  height() {
    const height = this.view.base.layout?.height ?? 320;
    const { card } = this;
    if (!card) return height;
    return this.cells.any && this.view.base.least ? height * this.scale() : Math.max(300, this.room(card));
  }

  /** @param {Element} card */
  room(card) {
    return card.clientHeight - this.box.offsetTop - (card.matches(".ss-filled") ? CHIP_ROOM : 12);
  }

  // How much larger cells, with their words and signs, are on the full screen: as much as all of them have room for.
  scale() {
    const { card } = this;
    const { least, layout } = this.view.base;
    if (!card) return 1;
    if (!this.cells.any || !least) return Math.min(LARGE, Math.max(1, this.room(card) / (layout?.height ?? 320)));
    return Math.max(1, Math.min(this.room(card) / (layout?.height ?? 320), this.box.clientWidth / least));
  }

  /**
   * Return true if plotly has anything to draw. Of charts that it draws all of, something always is new.
   * @param {PlotTrace[]} data
   * @param {Layout} layout
   */
  isNews(data, layout) {
    const given = this.cells.any ? JSON.stringify([data, layout]) : null;
    const same = given !== null && given === this.lastGiven;
    this.lastGiven = given;
    return !same;
  }

  /**
   * @param {Figure} figure
   * @param {number} width
   * @returns {Layout}
   */
  layout(figure, width) {
    const layout = definedCopy({
      ...figure.layout, ...(this.cells.any ? CLEAR : {}), width, height: this.height(), autosize: false,
      dragmode: false, hovermode: "closest",
    });
    for (const [name, axis] of Object.entries(layout)) {
      if (/^[xy]axis/.test(name)) Object.assign(/** @type {object} */ (axis), { ticklabeloverflow: "allow" });
    }
    return layout;
  }

  /**
   * Have plotly draw everything that is not drawn here.
   * @param {Figure} figure
   * @param {Layout} layout
   */
  show(figure, layout) {
    const data = figure.data.map((part, i) =>
      this.cells.placeholders.get(i) ?? (isLayer(part) ? asTrace(part, figure.fills) : part));
    if (!this.isNews(data, layout)) return;
    // A chart keeps the margins that its legend needed when it was narrower: of another width, it is made anew.
    if (this.gd.layout && this.gd.layout.width !== layout.width) {
      library().newPlot(this.gd, data.map(unlessEmpty), layout, CONFIG);
      this.listen(); // a new one has forgotten who listened
      return;
    }
    // Given the same settings again, plotly would compare them all, and look in the whole page for a <base>.
    library().react(this.gd, data.map(unlessEmpty), layout, ...(this.gd._context ? [] : [CONFIG]));
  }

  listen() {
    this.gd.on("plotly_hover", (event) => this.point(event.points?.[0], event.event));
    this.gd.on("plotly_unhover", () => this.point());
    this.gd.on("plotly_click", (event) => this.press(event.points?.[0], event.event));
  }

  // Plotly does not know where cells are.
  listenToCells() {
    /**
     * @param {(point: Point | null, event: MouseEvent) => void} act
     * @returns {(event: MouseEvent) => void}
     */
    const own = (act) => (event) => {
      if (!this.cells.catch) return;
      const { left, top } = this.box.getBoundingClientRect();
      act(this.cells.near(event.clientX - left, event.clientY - top), event);
    };
    this.box.addEventListener("mousemove", own((point, event) => this.point(point, event)));
    this.box.addEventListener("mouseleave", own(() => this.point()));
    this.box.addEventListener("click", own((point) => this.press(point)));
  }

  /**
   * @param {Point | null} [point]
   * @param {MouseEvent} [event]
   */
  point(point, event) {
    const at = this.spotAt(point);
    if (at) this.player.hover(at.step, at.node, event, at.own);
    else this.player.hover(-1);
  }

  /**
   * @param {Point | null} [point]
   * @param {MouseEvent} [event]
   */
  press(point, event) {
    const at = this.spotAt(point);
    if (at) this.player.togglePin(at.step, at.node, at.own);
    else if (this.view.grows && point && event) this.player.seek(this.stepAt(event));
  }

  /**
   * Return the step that the pointer is on, which the nearest point need not be of.
   * @param {MouseEvent} event
   */
  stepAt({ clientX }) {
    const { xaxis } = this.gd._fullLayout;
    return Math.round(xaxis.p2d(clientX - this.gd.getBoundingClientRect().left - xaxis._offset));
  }

  /**
   * Return the part of the step that a point shows: a node, or the target's own token; null where it shows neither.
   * @param {Point | null} [point]
   */
  spotAt(point) {
    const { record, state } = this.player;
    if (!point || this.step !== state.step) return null; // a live run's picture may lag behind
    return record.spot(state.step, this.givenNumber(point));
  }

  /** @param {Point} point */
  givenNumber(point) {
    const { record, state } = this.player;
    const kind = this.view.nodes[point.curveNumber];
    const part = this.figure?.data[point.curveNumber];
    const nodes = part && nodesOf(part);
    const [number] = typeof point.pointNumber === "number" ? [point.pointNumber] : point.pointNumber;
    // Rows are nodes in order, unless the trace says which.
    if (kind === "rows") return Number(nodes ? nodes[number] : number);
    // A line from the node where the target chose its own token to that token.
    if (kind === "own") return number ? record.nodes(state.step)?.count : record.own(state.step)?.node;
    return kind === "points" ? Number(nodes?.[number] ?? -1) : -1;
  }

  // The description of the picture for screen readers.
  describe() {
    const { record, state } = this.player;
    const step = record.steps[state.step];
    const nodes = record.nodes(state.step);
    /** @param {number} fate */
    const seen = (fate) => record.seenFate(fate, isJudged(state));
    const counted = nodes && this.view.nodes.some(Boolean) ? fateCounts(nodes, seen) : new Map();
    const parts = [...counted].map(([fate, count]) => `${count} ${this.player.fate(fate).label.toLowerCase()}`);
    const summary = this.figure?.summary ?? (parts.length ? `Nodes: ${parts.join(", ")}.` : (step ? sentence(step, state) : ""));
    const words = `${this.view.label}, ${this.player.at}. ${summary}`;
    if (this.gd.getAttribute("aria-label") !== words) this.gd.setAttribute("aria-label", words);
  }

  /**
   * Return the figure as it is, with all of its cells.
   * @param {"png" | "svg"} format
   */
  image(format) {
    const { figure } = this;
    if (!figure) throw new Error("nothing is drawn");
    const { width, height } = this.gd._fullLayout;
    const { paper_bgcolor, plot_bgcolor } = figure.layout;
    const layout = { ...this.gd.layout, paper_bgcolor, plot_bgcolor };
    const size = { format, width, height, scale: format === "png" ? 2 : 1 };
    return library().toImage({ data: asTraces(figure), layout, config: CONFIG }, size);
  }

  close() {
    if (this.drawn !== null) library().purge(this.gd);
    this.drawn = null;
    this.lastGiven = null;
    this.figure = null;
    this.cells.clear();
    this.marks.clear();
  }
}

/**
 * Hide a trace that has nothing to show in this step: it would cost as much as any other.
 * @param {PlotTrace} trace
 */
const unlessEmpty = (trace) => {
  const empty = trace.type === "scatter" && !(trace.x ?? trace.y)?.length; // without x, places are counted
  return empty ? { ...trace, visible: false } : trace;
};

/** @returns {PlotlyLibrary} */
const library = () => {
  if (!globalThis.Plotly) throw new Error("the charts' library is not loaded");
  return globalThis.Plotly;
};

/**
 * Return a copy without what is not defined: plotly writes into the layout that it is given, and takes null for a value.
 * @param {Layout} layout
 */
const definedCopy = (layout) => /** @type {Layout} */ (defined(layout));

/**
 * @param {unknown} value
 * @returns {unknown}
 */
const defined = (value) => {
  if (Array.isArray(value)) return value.map(defined);
  if (value === null || typeof value !== "object" || ArrayBuffer.isView(value)) return value;
  const given = Object.entries(value).filter(([, part]) => part !== null && part !== undefined);
  return Object.fromEntries(given.map(([name, part]) => [name, defined(part)]));
};
