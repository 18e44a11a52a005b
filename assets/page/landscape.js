// The landscape of the run on the screen: what a step of each method would do if it began before a token of its text.
import { el, show, write } from "../player/dom/elements.js";
import { shown } from "./shown.js";
import { JobStream } from "./streams.js";

/** @import { LandscapeIo, LandscapeLine, StripColumn, StripRow } from "./types.d.ts" */

const LEAD = "What if a step began here? Measures for every token of the text how many guesses each method would get accepted.";
const STRONGEST = 6; // accepted guesses from which on the colour is the strongest

/** @type {Map<string, [down: number, right: number]>} */
const MOVES = new Map([
  ["ArrowLeft", [0, -1]], ["ArrowRight", [0, 1]], ["ArrowUp", [-1, 0]], ["ArrowDown", [1, 0]],
  ["Home", [0, -Infinity]], ["End", [0, Infinity]],
]);

/**
 * Where a key leads in a table; null if it leads nowhere.
 * @param {string} key
 * @param {[row: number, column: number]} at
 * @param {[rows: number, columns: number]} size
 * @returns {[row: number, column: number] | null}
 */
export const moved = (key, [row, column], [rows, columns]) => {
  const move = MOVES.get(key);
  return move ? [within(row + move[0], rows), within(column + move[1], columns)] : null;
};

/**
 * @param {number} place
 * @param {number} count
 */
const within = (place, count) => Math.max(0, Math.min(place, count - 1));

/**
 * Return all of the server's words on a cell.
 * @param {StripRow} row
 * @param {StripColumn} column
 * @param {number} place
 */
export const sentence = (row, column, place) => `${row.label} at ${column.words}: ${row.words[place]}.`;

class Landscape {
  /**
   * @param {HTMLElement} element
   * @param {LandscapeIo} io
   */
  constructor(element, io) {
    this.io = io;
    /** @type {string | undefined} the run that is measured */
    this.run = undefined;
    /** @type {StripColumn[]} */
    this.columns = [];
    /** @type {StripRow[]} */
    this.rows = [];
    /** @type {[row: number, column: number]} the cell that has the focus */
    this.at = [0, 0];
    this.outcome = ""; // of the measured run

    this.stop = el("button", { type: "button", class: "app-button", hidden: true, onclick: () => io.end() }, "Stop");
    this.status = el("p", { class: "app-landscape-status", role: "status" }, LEAD);
    this.progress = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "Measured" });
    this.head = el("thead", {});
    this.body = el("tbody", {});
    this.table = el("table", { class: "app-strip", role: "grid", tabindex: 0, "aria-readonly": "true",
      "aria-label": "Landscape: accepted guesses by method and token", onfocus: () => this.go(this.at) },
    this.head, this.body);
    this.legend = el("p", { class: "app-landscape-legend" });
    this.words = el("p", { class: "app-landscape-words" });
    this.foot = el("div", { class: "app-landscape-foot" }, this.words,
      el("button", { type: "button", class: "app-button", onclick: () => this.open() }, "Show its step"));
    this.settings = el("ul", {});
    this.strip = el("div", { class: "app-landscape-found", hidden: true }, this.legend,
      el("div", { class: "app-strip-scroll" }, this.table), this.foot,
      el("details", { class: "app-landscape-settings" }, el("summary", {}, "Every method with its default settings"), this.settings));
    element.replaceChildren(el("section", { class: "app-landscape", "aria-label": "Landscape" },
      el("div", { class: "app-landscape-head" },
        el("button", { type: "button", class: "app-button", id: "landscape-go", onclick: () => this.measure() },
          "Landscape"), this.stop, this.status), this.progress, this.strip));

    this.table.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.point(event));
    this.body.addEventListener("pointermove", (event) => this.hover(event)); // not "over": keys scroll below a pointer
    this.body.addEventListener("pointerleave", () => this.say(this.at));
    /** @type {JobStream<LandscapeLine>} */
    this.stream = new JobStream(io, {
      name: "landscape", starts: "#landscape-go", stop: "run-stop",
      take: (lines, anew) => this.feed(lines, anew), refused: (words) => this.end(words), lost: (words) => this.end(words),
    });
    this.stream.read();
    // The strip belongs to a run, and is seen beside that run alone.
    new MutationObserver(() => this.draw())
      .observe(document.body, { attributes: true, attributeFilter: ["data-run"], subtree: true });
  }

  measure() {
    const { viewer } = shown, run = viewer?.facts.run;
    if (!viewer || !run) return write(this.status, "There is no run yet: open one, or press Run.");
    if (viewer.player.record.live) return write(this.status, "The run goes on: its text can be measured at its end.");
    this.begin();
    this.run = run;
    this.stream.expect();
    write(this.status, "Waiting for the server.");
    this.draw();
    return this.io.measure(`run=${run}`);
  }

  begin() {
    [this.columns, this.rows, this.at, this.outcome] = [[], [], [0, 0], ""];
    this.head.replaceChildren();
    this.body.replaceChildren();
    this.settings.replaceChildren();
    this.progress.value = 0;
  }

  /**
   * @param {LandscapeLine[]} lines
   * @param {boolean} anew
   */
  feed(lines, anew) {
    if (anew) this.begin();
    for (const line of lines) this.take(line);
    this.draw();
  }

  /** @param {LandscapeLine} line */
  take(line) {
    if (line.kind === "host") this.run = line.of;
    else if (line.kind === "columns") this.addColumns(line.columns, line.legend);
    else if (line.kind === "row") this.addRow(line);
    else if (line.kind === "state") {
      write(this.status, line.sentence);
      if (line.what === "measuring") this.progress.value = line.share ?? 0; // parts that are loaded have shares of their own
    } else this.end(line.sentence);
  }

  /** @param {string} words */
  end(words) {
    this.outcome = words;
    this.draw();
  }

  draw() {
    const here = shown.viewer?.facts.run === this.run, { over } = this.stream;
    if (over) write(this.status, here && this.outcome ? this.outcome : LEAD);
    show(this.progress, !over);
    show(this.stop, !over);
    show(this.strip, here && this.rows.length > 0);
  }

  /**
   * @param {StripColumn[]} columns
   * @param {string} legend
   */
  addColumns(columns, legend) {
    this.columns = columns;
    write(this.legend, legend);
    const names = columns.map(({ text, is_choice: isChoice, words }) =>
      el("th", { scope: "col", class: isChoice ? null : "app-other", title: words }, el("span", {}, isChoice ? text : `≠ ${text}`)));
    this.head.replaceChildren(el("tr", {}, el("th", { scope: "col" }, "Method"), el("th", { scope: "col" }, "Mean"), ...names));
  }

  /** @param {StripRow} row */
  addRow(row) {
    const number = this.rows.push(row) - 1;
    const cells = row.accepted.map((count, place) => this.cell(row, number, count, place));
    this.body.append(el("tr", {}, el("th", { scope: "row" }, row.label), el("td", { class: "app-strip-mean" }, row.mean), ...cells));
    this.settings.append(el("li", {}, `${row.label}: ${row.settings || "none"}`));
    if (number === 0) this.say(this.at);
  }

  /**
   * @param {StripRow} row
   * @param {number} number
   * @param {number | null} count
   * @param {number} place
   */
  cell(row, number, count, place) {
    const made = el("td", { role: "gridcell", id: `landscape-${number}-${place}`,
      "aria-label": sentence(row, this.columns[place], place), "data-row": number, "data-place": place }, row.signs[place]);
    made.style.setProperty("--share", `${Math.round((100 * Math.min(count ?? 0, STRONGEST)) / STRONGEST)}%`);
    return made;
  }

  /**
   * The row and the column of the cell that an event is of.
   * @param {Event} event
   * @returns {[row: number, column: number] | null}
   */
  placeOf(event) {
    const cell = event.target instanceof Element ? event.target.closest("td[data-row]") : null;
    return cell instanceof HTMLElement ? [Number(cell.dataset.row), Number(cell.dataset.place)] : null;
  }

  /** @param {Event} event */
  point(event) {
    const place = this.placeOf(event);
    if (place) this.go(place);
  }

  /** @param {Event} event */
  hover(event) {
    const place = this.placeOf(event);
    if (place) this.say(place);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = moved(event.key, this.at, [this.rows.length, this.columns.length]);
    if (event.key === "Enter") this.open();
    else if (to) this.walk(to);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Keys lead to cells out of sight; the sentence about a cell is seen together with it.
   * @param {[row: number, column: number]} place
   */
  walk(place) {
    this.go(place);
    this.foot.scrollIntoView({ block: "nearest" });
    this.table.querySelector(".app-here")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /**
   * A cell gets the focus.
   * @param {[row: number, column: number]} place
   */
  go(place) {
    this.at = place;
    const id = `landscape-${place[0]}-${place[1]}`;
    this.table.querySelector(".app-here")?.classList.remove("app-here");
    document.getElementById(id)?.classList.add("app-here");
    this.table.setAttribute("aria-activedescendant", id);
    this.say(place);
  }

  /** @param {[row: number, column: number]} place */
  say([row, place]) {
    const one = this.rows[row], column = this.columns[place];
    write(this.words, one && column ? sentence(one, column, place) : "");
  }

  // The player goes to the step that wrote the token.
  open() {
    const { viewer } = shown;
    if (!viewer || viewer.facts.run !== this.run) return;
    viewer.player.seekToken(this.at[1], "commit");
    viewer.player.root.scrollIntoView({ block: "nearest" });
  }
}

/**
 * @param {HTMLElement} element
 * @param {LandscapeIo} io
 */
export const showLandscape = (element, io) => {
  new Landscape(element, io);
};
