// From base and patch to the figure of one step and phase. Decoded patches are kept for a while; figures are not.
import { pairPatch } from "./pair.js";
import { resolve } from "../stream/decode.js";
import { PHASES, isJudged } from "../stream/fates.js";
import { LruCache } from "../stream/lru_cache.js";

const KEPT_PATCHES = 48;

export class Frames {
  constructor(record) {
    this.record = record;
    this.bases = new Map();
    this.patches = new LruCache(KEPT_PATCHES);
    this.grown = new Map();
  }

  clear() {
    this.bases.clear();
    this.patches.clear();
    this.grown.clear();
  }

  scope(theme, judged, k) {
    const colours = this.record.play.themes[theme] ?? {};
    return {
      judged,
      nodes: k === undefined ? null : this.record.nodes(k),
      text: (id) => this.record.visible(id),
      string: (number) => this.record.string(number),
      colour: (name) => (Object.hasOwn(colours, name) ? colours[name] : `$${name}`),
      symbol: (fate) => this.record.play.fates[fate]?.symbol ?? "circle",
    };
  }

  base(view, theme) {
    const key = `${view.name}/${theme}`;
    if (!this.bases.has(key)) this.bases.set(key, resolve(view.base, this.scope(theme, true)));
    return this.bases.get(key);
  }

  // What a view's frame says of a step, decoded; null where the step carries nothing for it.
  patch(view, k, judged, theme) {
    const encoded = this.record.steps[k]?.views?.[view.name];
    if (encoded === undefined) return null;
    return this.patches.get(`${view.name}/${k}/${judged}/${theme}`, () =>
      resolve(encoded, this.scope(theme, judged, k)));
  }

  // The plotly figure of a view at a step and phase.
  figure(view, k, phase, theme, pin) {
    const pinned = this.pinned(view, k, pin);
    const patch = pinned ?? (view.grows ? this.growth(view, theme) : this.patch(view, k, isJudged({ phase }), theme));
    return this.over(view, patch, phase, theme);
  }

  // The same of a view that does not grow, for words instead of a picture: no token's text is cut.
  whole(view, k, phase, theme, pin) {
    const encoded = this.record.steps[k]?.views?.[view.name] ?? null;
    const scope = { ...this.scope(theme, isJudged({ phase }), k), whole: true };
    return this.over(view, this.pinned(view, k, pin, true) ?? resolve(encoded, scope), phase, theme);
  }

  // What a view of the pinned node shows instead of what its frame says.
  pinned(view, k, pin, whole = false) {
    const { detail } = view.base;
    return detail && pin?.step === k ? pairPatch(this.record, detail, k, pin, whole) : null;
  }

  // A patch over the view's base, without what is seen in later phases only.
  over(view, patch, phase, theme) {
    const at = PHASES.indexOf(phase);
    const base = this.base(view, theme);
    const data = base.data.map((trace, i) => {
      const merged = overlay(trace, patch?.data?.[i]);
      const from = view.grows ? 0 : PHASES.indexOf(view.phases[i] ?? "propose");
      if (from > at) merged.visible = false;
      return merged;
    });
    return { data, layout: overlay(base.layout, patch?.layout), summary: patch?.summary };
  }

  // All points that a growing view has been told, of every step so far: a veil hides what lies behind the cursor.
  growth(view, theme) {
    const key = `${view.name}/${theme}`;
    const grown = this.grown.get(key) ?? { upto: 0, data: view.base.data.map(() => ({})), layout: {} };
    this.grown.set(key, grown);
    for (; grown.upto <= this.record.last; grown.upto += 1) {
      const encoded = this.record.steps[grown.upto]?.views?.[view.name];
      if (!encoded) continue;
      const patch = resolve(encoded, this.scope(theme, true, grown.upto));
      (patch.data ?? []).forEach((part, i) => append(grown.data[i], part));
      grown.layout = overlay(grown.layout, patch.layout);
    }
    // Plotly tells old from new by identity, so that every figure gets arrays of its own.
    return { data: grown.data.map(copied), layout: grown.layout };
  }
}

const append = (known, part) => {
  for (const [name, value] of Object.entries(part)) {
    if (Array.isArray(value) || ArrayBuffer.isView(value)) (known[name] ??= []).push(...value);
    else if (value !== null && typeof value === "object") append((known[name] ??= {}), value);
    else known[name] = value;
  }
};

const copied = (part) =>
  Object.fromEntries(Object.entries(part).map(([name, value]) => {
    if (Array.isArray(value)) return [name, value.slice()];
    return [name, value !== null && typeof value === "object" ? copied(value) : value];
  }));

// `patch` over `base` without touching either; "marker.color" reaches into "marker".
export const overlay = (base, patch) => {
  const merged = { ...base };
  for (const [name, value] of Object.entries(patch ?? {})) {
    const dot = name.indexOf(".");
    if (dot > 0) {
      const [outer, inner] = [name.slice(0, dot), name.slice(dot + 1)];
      merged[outer] = overlay(merged[outer] ?? {}, { [inner]: value });
    } else if (isPlain(value) && isPlain(merged[name])) {
      merged[name] = overlay(merged[name], value);
    } else {
      merged[name] = value;
    }
  }
  return merged;
};

const isPlain = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value) && !ArrayBuffer.isView(value);
