// Explains every colour and sign: those of tokens in the legend, which stays in sight, all others in the key of their view.
import { el, svg } from "../dom/elements.js";
import { unpack } from "../stream/decode.js";
import { explained } from "../text/tooltip.js";

/** @import { Player } from "../player.js" */
/** @import { FateMeaning, KeyItem, StepLine, View } from "../types.d.ts" */

/**
 * @param {FateMeaning[]} fates
 * @param {Set<number>} used
 */
export const legendItems = (fates, used) => fates.filter(({ code }) => used.has(code)).map((fate) =>
  el("li", { title: fate.words }, markerIcon(fate.symbol, `var(--ss-${fate.colour.slice(1)})`),
    el("span", { class: `ss-token ss-fate-${fate.code}` }, fate.label)));

// As much as the run has shown, and what the open views draw beyond it.
export class Legend {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.node = el("ul", { class: "ss-legend", "aria-label": "Legend", tabindex: 0 });
    this.drawn = "";
    /** what the steps up to `upto` have shown, of one version of the record */
    this.counted = { version: -1, upto: 0, used: /** @type {Set<number>} */ (new Set()) };
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (!["record", "theme", "open", "view", "narrow", "full"].some((name) => changed.has(name))) return;
    const { record, theme, cards } = this.player;
    if (!record.play) return;
    const views = [...cards.shown(), ...record.views.filter(({ kind }) => kind === "stage")];
    const used = new Set([...this.used(), ...views.flatMap((view) => view.base.draws ?? [])]);
    const wanted = `${record.version}/${theme}/${[...used]}`;
    if (this.drawn === wanted) return;
    this.drawn = wanted;
    const { fates } = record.head;
    this.node.replaceChildren(...legendItems(fates, used));
    fates.filter(({ code }) => used.has(code)).forEach((fate, i) => this.explain(this.node.children[i], fate));
  }

  /**
   * Explain an item to the pointer, the keyboard and a finger.
   * @param {Element} item
   * @param {FateMeaning} fate
   */
  explain(item, { words }) {
    if (!(item instanceof HTMLElement)) return;
    item.removeAttribute("title");
    item.tabIndex = 0;
    explained(item, this.player, () => words);
  }

  used() {
    const { record, state } = this.player;
    const { prompt, root, proposed, inspired } = record.fates;
    if (this.counted.version !== record.version) {
      this.counted = { version: record.version, upto: 0, used: new Set([prompt, root]) };
    }
    const { used } = this.counted;
    /** @param {StepLine | undefined} step */
    const count = (step) => {
      if (step?.nodes) for (const fate of unpack(step.nodes.fate.fates)) used.add(fate);
      if (step?.nodes?.inspired || step?.inspired?.length) used.add(inspired);
    };
    for (; this.counted.upto <= record.last; this.counted.upto += 1) {
      const step = record.steps[this.counted.upto];
      for (const fate of step.emitted_fates) used.add(fate);
      if (step.drafted) used.add(proposed);
      count(step);
    }
    count(record.steps[state.step]); // a thin one may have been filled since
    return used;
  }
}

const HATCHES = { "-": "lines", x: "cross" };

/** @param {string} name */
const colour = (name) => `var(--ss-${name.slice(1)})`;

/**
 * Return a bar as the view draws it: filled, hatched or, where it is thin, a stroke.
 * @param {KeyItem} item
 */
const bar = ({ colour: fill, hatch, ink, thin }) => {
  const shape = hatch ? `ss-hatch-${HATCHES[hatch]}` : thin ? "ss-thin" : "";
  const mark = el("i", { class: `ss-swatch ${shape}`, "aria-hidden": "true" });
  mark.style.setProperty("--fill", colour(fill));
  mark.style.setProperty("--ink", colour(ink ?? fill));
  return mark;
};

/** @param {KeyItem} item */
const sign = (item) => {
  if (item.symbol) return markerIcon(item.symbol, colour(item.colour));
  return item.sample ? el("i", { class: "ss-sample", "aria-hidden": "true" }, item.sample) : bar(item);
};

/**
 * Return what a view draws that is no token's fate.
 * @param {View} view
 */
export const viewKey = (view) => {
  const items = (view.base.key ?? []).map((item) => el("li", {}, sign(item), el("span", {}, item.words)));
  return items.length ? el("ul", { class: "ss-key", "aria-label": `Key of ${view.label}` }, ...items) : null;
};

/** @type {{ [shape: string]: string }} */
const SYMBOLS = {
  "circle": "M6 6m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "square": "M2 2h8v8H2z", "diamond": "M6 1l5 5-5 5-5-5z",
  "x": "M2 2l8 8M10 2l-8 8", "hash": "M4 1v10M8 1v10M1 4h10M1 8h10",
  "cross": "M4.5 1h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z", "line-ew": "M1 6h10",
  "square-cross": "M1.5 1.5h9v9h-9zM6 1.5v9M1.5 6h9", "octagon": "M4 1h4l3 3v4l-3 3h-4l-3-3v-4z",
  "triangle-up": "M6 1.5l5 8.5h-10z", "triangle-down": "M6 10.5l5-8.5h-10z",
  "bowtie": "M1.5 2l9 8v-8l-9 8z", "star": "M6 .5l1.6 3.6 3.9.4-2.9 2.6.8 3.9L6 9l-3.4 2 .8-3.9L.5 4.500l3.900-.4z",
};

/**
 * Return a marker of a figure, for the legend.
 * @param {string} name
 * @param {string} paint
 */
const markerIcon = (name, paint) => {
  const shape = name.replace(/-open(-dot)?$/, "");
  const open = name.includes("-open") || shape === "x" || shape === "hash";
  const mark = svg("svg", { viewBox: "0 0 12 12", class: "ss-symbol", "aria-hidden": "true" },
    svg("path", { d: SYMBOLS[shape] ?? SYMBOLS.circle }),
    name.endsWith("-dot") ? svg("circle", { cx: 6, cy: 6, r: 1.2, class: "ss-dot" }) : null);
  mark.style.setProperty("--fate", paint);
  mark.classList.toggle("ss-open", open);
  return mark;
};
