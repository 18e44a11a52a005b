// The stage: the scene of a step and phase, in which tokens move from their last places to their new ones.
import { button } from "../dom/buttons.js";
import { el, prefersCalm, show, svg, write } from "../dom/elements.js";
import { PHASES, isJudged } from "../stream/fates.js";
import { showTable } from "../tables/table.js";
import { sentence } from "../text/status.js";
import { COLUMN, GUTTER, NARROW_COLUMN, ROW, linkPath } from "./links.js";
import { Pieces, moved, width } from "./pieces.js";
import { focusOf, isFocused, zoomed } from "./focus.js";
import { sceneAt } from "./scene.js";

/** @import { Player } from "../player.js" */
/** @import { Focus } from "./focus.js" */
/** @import { Scene, SceneColumns, SceneFrame, SceneLink, SceneWord, StageBase, View } from "../types.d.ts" */

const LARGEST = 26; // pixels of a letter, on however wide a page
const SMALL = ["text", "guesses", "block"]; // the zones that a small stage has room for
const ZOOMED = 40; // and where some zones are shown alone
const SMALLEST = 14; // and on however low a page, if it is wide enough
const NARROWEST = 0.45; // letters that a letter of a word takes: where its longest part has no room, it is left out
const LEAST = { wide: 12, narrow: 11 }; // pixels of the smallest words
const BELOW = 40; // pixels of the window that are left for the legend
const TEXT_LINES = 2; // that the text has at least beside the stage, on the full screen
const GLIDE_SHARE = 0.7; // of a phase's time that movements take
const TURNS_SHARE = 0.95; // where new pieces come one by one
const LONGEST_MS = 520;

export class Stage {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    /** @type {View | undefined} */
    this.view = undefined;
    this.version = -1;
    this.drawn = "";
    this.at = -1; // the phase that is drawn, counted from the beginning of the run
    this.sized = -1;
    this.fitted = "";
    /** @type {number | undefined} the piece under the pointer */
    this.pointed = undefined;
    /** @type {Focus | null} */
    this.focus = null;
    /** @type {{ path: SVGElement, link: SceneLink }[]} */
    this.paths = [];
    this.links = svg("svg", { class: "ss-stage-links", preserveAspectRatio: "none" });
    this.zones = el("div", {});
    this.frames = el("div", {});
    this.words = el("div", {});
    this.pieces = new Pieces();
    this.floor = el("div", { class: "ss-floor", role: "img" },
      this.frames, this.links, this.zones, this.pieces.node, this.words); // a line is interrupted by a title
    this.whole = el("button", { type: "button", class: "ss-button ss-worded ss-whole", hidden: true, onclick: () => player.change({ zoom: [] }) },
      "Whole stage");
    this.waiting = el("p", { class: "ss-quiet ss-waiting", hidden: true });
    this.node = el("div", { class: "ss-card ss-stage", role: player.role, "data-view": "stage", "aria-label": "Stage" },
      button("table", "The stage as a table", () => this.view && showTable(player, { view: this.view })),
      this.whole, this.waiting, this.floor);
    this.pieces.node.addEventListener("mouseover", (event) => this.point(event));
    this.pieces.node.addEventListener("mouseout", () => this.leave());
    this.pieces.node.addEventListener("click", (event) => this.press(event));
    this.sizes = new ResizeObserver(() => player.change({ size: player.state.size + 1 }));
    this.sizes.observe(this.node);
    this.resized = () => player.change({ size: player.state.size + 1 });
    addEventListener("resize", this.resized);
  }

  get base() {
    return /** @type {StageBase} */ (/** @type {unknown} */ (this.view?.base));
  }

  get floorPlan() {
    const { small, state: { narrow, zoom } } = this.player;
    return zoomed(this.base, zoom.length || !small ? zoom : SMALL, narrow ? this.base.narrow.columns : undefined) ?? (narrow ? this.base.narrow : this.base.wide);
  }

  get column() {
    return this.player.state.narrow ? NARROW_COLUMN : COLUMN;
  }

  /** @param {Set<string>} changed */
  update(changed) {
    const { record, state } = this.player;
    if (this.version !== record.version) this.begin();
    show(this.node, Boolean(this.view) && state.step >= 0);
    if (!this.view || state.step < 0) return;
    show(this.whole, zoomed(this.base, state.zoom) !== null);
    if (["narrow", "full", "zoom"].some((name) => changed.has(name)) || this.sized !== state.size) this.fit();
    if (changed.has("focus") || changed.has("asking")) this.drawn = "";
    this.draw();
    if (changed.has("hover") || changed.has("pin") || changed.has("step")) this.mark();
  }

  begin() {
    const { record } = this.player;
    this.version = record.version;
    this.view = record.play ? record.view("stage") : undefined;
    this.clear();
  }

  // Letters as large as the width allows, and as lets the whole stage be seen at once where there is room for it.
  fit() {
    const { state } = this.player;
    this.sized = state.size;
    const { columns, rows } = this.floorPlan;
    const { paddingLeft, paddingRight, paddingTop, paddingBottom } = getComputedStyle(this.node);
    const wide = this.node.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
    if (wide <= 0) return;
    const high = this.room() - parseFloat(paddingTop) - parseFloat(paddingBottom);
    const smallest = state.full ? 0 : SMALLEST;
    const tallest = state.narrow ? Infinity : Math.max(smallest, high / (rows * ROW));
    const { column } = this;
    const exact = Math.min(wide / (columns * column), tallest, state.full ? Infinity : state.zoom.length ? ZOOMED : LARGEST);
    const letter = Math.floor(exact * 100) / 100;
    const fitted = [letter, columns, rows, this.version, ...state.zoom].join("|");
    if (this.fitted === fitted) return;
    this.fitted = fitted;
    const least = state.narrow ? LEAST.narrow : LEAST.wide;
    const lengths = { "--letter": `${letter}px`, "--column": `${column}em`, "--least": `${least}px` };
    for (const [name, value] of Object.entries(lengths)) this.floor.style.setProperty(name, value);
    Object.assign(this.pieces, { letter, column, least });
    this.floor.style.fontSize = `${letter}px`;
    this.floor.style.width = `${columns * column}em`;
    this.floor.style.height = `${rows * ROW}em`;
    this.links.setAttribute("viewBox", `0 0 ${columns * column} ${rows * ROW}`);
    this.drawZones();
    this.drawn = "";
  }

  // The height that the stage may have: in the window below what is above it; on the full screen beside the text.
  room() {
    const { state, text } = this.player;
    const { top } = this.node.getBoundingClientRect();
    const body = /** @type {HTMLElement} */ (this.node.parentElement);
    const { lineHeight, paddingTop } = getComputedStyle(text.node);
    if (state.full) return body.clientHeight - TEXT_LINES * parseFloat(lineHeight) - 3 * parseFloat(paddingTop);
    return innerHeight - BELOW - top - scrollY;
  }

  drawZones() {
    const { places } = this.floorPlan;
    this.zones.replaceChildren(...this.base.zones.flatMap(({ title, columns, rows }, i) => {
      const place = places[i];
      if (!place) return [];
      const [x, y] = place;
      const left = Math.max(0, x);
      const end = this.player.state.narrow ? this.floorPlan.columns : columns + x; // nothing is beside a zone there
      const box = el("div", { class: "ss-zone", "data-zone": this.base.zones[i].name }, el("span", {}, title));
      Object.assign(box.style, {
        transform: moved({ x: left, y }), width: width(end - left), height: `${(rows + this.base.title) * ROW - GUTTER}em`,
      });
      return [box];
    }));
  }

  draw() {
    const { record, state } = this.player;
    const wanted = [record.version, state.step, state.phase, state.narrow, this.player.theme,
      record.steps[state.step]?.thin].join("|");
    if (this.drawn === wanted) return;
    const missing = Boolean(record.steps[state.step]?.thin);
    show(this.waiting, missing);
    if (missing) write(this.waiting, this.player.fetch.missing);
    this.focus = missing ? null : focusOf(this.player);
    const scene = missing ? null : this.scene();
    if (!scene) return;
    const at = state.step * PHASES.length + PHASES.indexOf(state.phase);
    const glides = this.drawn !== "" && this.glides(at);
    const { clock } = this.player;
    const [ms, turn] = paces(clock.duration(state.step, state.phase), scene);
    this.floor.style.setProperty("--glide", `${Math.round(ms)}ms`);
    this.floor.style.setProperty("--turn", `${Math.round(turn)}ms`);
    this.floor.classList.toggle("ss-gliding", glides);
    this.floor.dataset.phase = state.phase;
    this.frames.replaceChildren(...scene.frames.map(frameBox));
    this.words.replaceChildren(...scene.words.map((word) => wordBox(word, this.floorPlan.columns * this.column, this.column)));
    this.paths = scene.links.map((link) => ({
      link, path: svg("path", { class: `ss-link-${link.kind} ss-link-of-${link.to.fate}`, d: linkPath(link, this.column) }),
    }));
    this.links.replaceChildren(...this.paths.map(({ path }) => path));
    this.pieces.draw(scene.pieces, glides);
    this.floor.setAttribute("aria-label", `Stage, ${this.player.at}. ${sentence(record.steps[state.step], state)}`);
    [this.drawn, this.at] = [wanted, at];
    this.mark();
  }

  /** @returns {Scene | null} */
  scene() {
    const { record, state, frames, theme } = this.player;
    const columns = this.view && frames.patch(this.view, state.step, isJudged(state), theme);
    if (!columns || !record.steps[state.step].nodes) return null;
    return sceneAt(/** @type {SceneColumns} */ (/** @type {unknown} */ (columns)), this.base, state.phase, this.floorPlan, this.focus);
  }

  /**
   * Return true if the way from what is drawn to a phase is short enough to be followed. Scrubbing and fast play cut.
   * @param {number} at
   */
  glides(at) {
    const { state, clock } = this.player;
    const forward = at - this.at;
    return forward > 0 && forward <= PHASES.length && state.glide && !prefersCalm() && (!state.playing || clock.slow);
  }

  /** @param {Event} event */
  spotAt({ target }) {
    const piece = target instanceof Element ? target.closest("[data-node]") : null;
    return piece instanceof HTMLElement
      ? this.player.record.spot(this.player.state.step, Number(piece.dataset.node)) : null;
  }

  /** @param {Event} event */
  point(event) {
    const spot = this.spotAt(event);
    const piece = event.target instanceof Element ? event.target.closest("[data-piece]") : null;
    this.pointed = piece instanceof HTMLElement ? Number(piece.dataset.piece) : undefined;
    if (spot) this.player.hover(spot.step, spot.node, event, spot.own);
    this.mark();
  }

  leave() {
    this.pointed = undefined;
    this.player.hover(-1);
    this.mark();
  }

  /** @param {Event} event */
  press(event) {
    const spot = this.spotAt(event);
    if (spot) this.player.togglePin(spot.step, spot.node, spot.own);
  }

  mark() {
    const { record, state } = this.player;
    /** @param {typeof state.pin} spot */
    const number = (spot) => (spot && spot.step === state.step ? record.number(spot) : null);
    const { pieces, focus } = this;
    this.floor.classList.toggle("ss-focusing", focus !== null);
    for (const [id, element] of pieces.elements) {
      const piece = pieces.shown.get(id);
      element.classList.toggle("ss-in-focus", Boolean(piece && isFocused(focus, piece)));
    }
    const pointed = this.pointed === undefined ? undefined : pieces.shown.get(this.pointed);
    const kin = pieces.kin(pointed ?? pieces.at(number(state.pin)));
    pieces.mark(number(state.hover), number(state.pin), kin);
    for (const { path, link } of this.paths) path.classList.toggle("ss-kin", kin.has(link.from.id) && kin.has(link.to.id));
  }

  clear() {
    this.drawn = "";
    this.at = -1;
    this.sized = -1;
    this.fitted = "";
    this.pieces.clear();
    for (const layer of [this.zones, this.frames, this.words, this.links]) layer.replaceChildren();
  }

  destroy() {
    this.sizes.disconnect();
    removeEventListener("resize", this.resized);
  }
}

/**
 * Return how long a movement takes, and how long a new piece waits for the one before it.
 * @param {number} duration of the phase
 * @param {Scene} scene
 */
const paces = (duration, { pieces }) => {
  const turns = Math.max(0, ...[...pieces.values()].map(({ turn }) => turn));
  if (!turns) return [Math.min(LONGEST_MS, GLIDE_SHARE * duration), 0];
  const all = Math.min(2 * LONGEST_MS, TURNS_SHARE * duration);
  const each = all / (turns + 2);
  return [2 * each, each];
};

/** @param {SceneFrame} frame */
const frameBox = ({ x, y, wide, high, text, loud, filled, limit }) => {
  const classes = `ss-frame${loud ? " ss-loud" : ""}${filled >= 0 ? " ss-gauge" : ""}`;
  const box = el("div", { class: classes }, text ? el("span", {}, text) : null);
  Object.assign(box.style, {
    transform: moved({ x, y }), width: width(wide), height: `${high * ROW - GUTTER}em`,
  });
  if (filled >= 0) {
    box.style.setProperty("--filled", `${filled * 100}%`);
    box.style.setProperty("--limit", `${limit * 100}%`);
    box.prepend(el("i", {}), el("b", { hidden: !limit }));
  }
  return box;
};

/**
 * Break words that would leave the stage into two lines.
 * @param {SceneWord} word
 * @param {number} wide letters that the stage is wide
 * @param {number} column
 */
const wordBox = ({ x, y, side, text, loud }, wide, column) => {
  const box = el("div", { class: `ss-stage-word ss-to-${side}${loud ? " ss-loud" : ""}` }, el("span", {}, text));
  const [before, behind] = [x * column, wide - x * column];
  const room = { left: before, right: behind, middle: 2 * Math.min(before, behind) }[side];
  box.style.transform = moved({ x, y });
  box.style.setProperty("--room", String(room));
  show(box, room >= NARROWEST * Math.max(...text.split(" ").map(({ length }) => length)));
  return box;
};
