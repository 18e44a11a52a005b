// Makes the figure of one step and phase from base and patch. A view's last patch stays decoded; figures do not.
import { resolve } from "../stream/decode.js";
import { PHASES, isJudged } from "../stream/fates.js";

/** @import { RunRecord } from "../stream/record.js" */
/** @import { Figure, Layout, Part, Patch, Phase, Scope, Spot, View } from "../types.d.ts" */

/** @typedef {{ [name: string]: unknown }} Attributes */

export class Frames {
  /** @param {RunRecord} record */
  constructor(record) {
    this.record = record;
    /** @type {Map<string, Figure>} */
    this.bases = new Map();
    /** @type {Map<string, { key: string, patch: Patch }>} the last one of each view */
    this.patches = new Map();
    /** @type {Map<string, { upto: number, data: Attributes[], layout: Attributes }>} */
    this.grown = new Map();
  }

  clear() {
    this.bases.clear();
    this.patches.clear();
    this.grown.clear();
  }

  /**
   * @param {string} theme
   * @param {boolean} judged
   * @param {number} [k]
   * @returns {Scope}
   */
  scope(theme, judged, k) {
    const colours = this.record.head.themes[theme] ?? {};
    return {
      seen: (fate) => this.record.seenFate(fate, judged),
      nodes: k === undefined ? null : this.record.nodes(k),
      text: (id) => this.record.visible(id),
      string: (number) => this.record.string(number),
      colour: (name) => (Object.hasOwn(colours, name) ? colours[name] : `$${name}`),
      symbol: (fate) => this.record.head.fates[fate]?.symbol ?? "circle",
    };
  }

  /**
   * Return the colours of the fates, by their codes.
   * @param {string} theme
   */
  fills(theme) {
    const { colour } = this.scope(theme, true);
    return this.record.head.fates.map((fate) => colour(fate.colour.slice(1)));
  }

  /**
   * @param {View} view
   * @param {string} theme
   */
  base(view, theme) {
    const key = `${view.name}/${theme}`;
    const base = this.bases.get(key) ?? /** @type {Figure} */ (resolve(view.base, this.scope(theme, true)));
    this.bases.set(key, base);
    return base;
  }

  /**
   * Return what a view shows of a step or, if it is about the pinned node, of that; null where nothing is known.
   * @param {View} view
   * @param {number} k
   * @param {boolean} judged
   * @param {string} theme
   * @param {Spot | null} [pin]
   */
  patch(view, k, judged, theme, pin) {
    const encoded = this.record.patch(view, k, pin);
    if (!encoded || (view.pinned && !judged && !this.record.details.has(k))) return null; // it would be about what decided
    const last = this.patches.get(view.name);
    const key = `${k}/${judged}/${theme}/${encoded.about}`;
    if (last?.key === key) return last.patch;
    const patch = /** @type {Patch} */ (resolve(encoded, this.scope(theme, judged, k)));
    this.patches.set(view.name, { key, patch });
    return patch;
  }

  /**
   * Return the figure of a view at a step and phase: the step's patch over the base, without what later phases show.
   * @param {View} view
   * @param {{ step: number, phase: Phase, withheld?: boolean }} seen
   * @param {string} theme
   * @param {Spot | null} pin
   * @param {number} told how many steps a growing view may show
   * @returns {Figure}
   */
  figure(view, { step: k, phase, withheld }, theme, pin, told) {
    /** @type {Patch | null} */
    const patch = view.grows ? this.growth(view, theme, told, !withheld) : this.patch(view, k, isJudged({ phase }), theme, pin);
    const at = PHASES.indexOf(phase);
    const base = this.base(view, theme);
    const data = base.data.map((part, i) => {
      const merged = /** @type {Part} */ (overlay({ ...part }, patch?.data?.[i]));
      const from = view.grows ? 0 : PHASES.indexOf(view.phases[i] ?? "propose");
      if (from > at) merged.visible = false;
      return merged;
    });
    /** @type {Layout} */
    const layout = overlay(base.layout, patch?.layout);
    return { data, layout, fills: this.fills(theme), summary: patch?.summary };
  }

  /**
   * Return the points of a growing view: of every step so far, or of the first ones, with room for the others or without.
   * @param {View} view
   * @param {string} theme
   * @param {number} told
   * @param {boolean} room
   */
  growth(view, theme, told, room) {
    const key = `${view.name}/${theme}`;
    const grown = this.grown.get(key) ?? { upto: 0, data: view.base.data.map(() => ({})), layout: {} };
    this.grown.set(key, grown);
    for (; grown.upto <= this.record.last; grown.upto += 1) {
      const encoded = this.record.steps[grown.upto]?.views?.[view.name];
      if (!encoded) continue;
      const patch = /** @type {Patch} */ (resolve(encoded, this.scope(theme, true, grown.upto)));
      (patch.data ?? []).forEach((part, i) => append(grown.data[i], part));
      grown.layout = overlay(grown.layout, patch.layout);
    }
    // Plotly tells old from new by identity, so that every figure gets arrays of its own.
    return { data: grown.data.map((part) => copied(part, told, room ? grown.upto : Infinity)), layout: grown.layout };
  }
}

/**
 * Add the points of a part to those of the steps before.
 * @param {Attributes} grown
 * @param {Attributes} part
 */
const append = (grown, part) => {
  for (const [name, value] of Object.entries(part)) {
    const before = grown[name];
    if (isColumn(value)) grown[name] = isColumn(before) ? extended(before, value) : Array.from(value);
    else if (isPlain(value)) append((grown[name] = isPlain(before) ? before : {}), value);
    else grown[name] = value;
  }
};

/**
 * @param {ArrayLike<unknown>} before an array, which it extends
 * @param {ArrayLike<unknown>} more
 */
const extended = (before, more) => {
  const array = /** @type {unknown[]} */ (before);
  for (let i = 0; i < more.length; i += 1) array.push(more[i]);
  return array;
};

/**
 * Return a copy; of a column with a value for every step, nothing of the steps after the first `told`.
 * @param {Attributes} part
 * @param {number} told
 * @param {number} steps
 * @returns {Attributes}
 */
const copied = (part, told, steps) =>
  Object.fromEntries(Object.entries(part).map(([name, value]) => {
    if (Array.isArray(value)) return [name, value.length < steps ? value.slice(0, told) : value.map((each, k) => (k < told ? each : null))];
    return [name, isPlain(value) ? copied(value, told, steps) : value];
  }));

/**
 * `patch` over `base` without touching either.
 * @param {Attributes} base
 * @param {Attributes | null | undefined} patch
 * @returns {Attributes}
 */
export const overlay = (base, patch) => {
  const merged = { ...base };
  for (const [name, value] of Object.entries(patch ?? {})) {
    const below = merged[name];
    merged[name] = isPlain(value) && isPlain(below) ? overlay(below, value) : value;
  }
  return merged;
};

/**
 * @param {unknown} value
 * @returns {value is ArrayLike<unknown>}
 */
const isColumn = (value) => Array.isArray(value) || ArrayBuffer.isView(value);

/**
 * @param {unknown} value
 * @returns {value is Attributes}
 */
const isPlain = (value) => value !== null && typeof value === "object" && !isColumn(value);
