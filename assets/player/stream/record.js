// A run as its lines tell it: it only grows, and everything shown is read from it.
import { LruCache } from "./lru_cache.js";
import { nodeColumns } from "./nodes.js";

const KEPT_NODES = 32;

const KEPT_THIN = 48;

// What each kind of line does. Other kinds are for other readers.
const KINDS = {
  play: "begin", texts: "tell", strings: "name", values: "keep", step: "add", detail: "explain", end: "finish",
  check: "judge", fault: "fail", state: "wait",
};

// What is hovered or pinned: a node of a step, or the token that the target chose there itself.
export const spot = (step, node, own = false) => (own ? { step, node, own } : { step, node });

export const sameSpot = (one, other) =>
  one?.step === other?.step && one?.node === other?.node && Boolean(one?.own) === Boolean(other?.own);

export class RunRecord {
  constructor() {
    this.reset();
  }

  reset() {
    this.rest = "";
    this.play = null;
    this.texts = new Map(); // raw display texts, for the text itself
    this.shown = new Map(); // what figures and tables show where it differs
    this.strings = [];
    this.values = []; // parts of steps that come again and again
    this.steps = [];
    this.end = null;
    this.check = null;
    this.speedup = null;
    this.fault = null;
    this.state = null;
    this.details = new Map(); // step -> the target's best tokens at every node
    this.laws = new Map(); // step -> the drafter's best tokens at every node, where it had a law
    this.fetched = []; // thin steps that were filled, oldest first
    this.thin = new Map(); // their thin lines, to shrink to again
    this.nodesOf = new LruCache(KEPT_NODES);
    this.version = (this.version ?? 0) + 1;
  }

  // Whole lines, or pieces of them: what has no line end yet waits for the rest. Returns the kinds that were told.
  feed(text) {
    const lines = (this.rest + text).split("\n");
    const rest = lines.pop();
    const told = new Set();
    for (const line of lines) {
      if (!line.trim()) continue;
      const fields = JSON.parse(line);
      told.add(fields.kind);
      this.take(fields);
    }
    this.rest = rest;
    return told;
  }

  take(fields) {
    if (Object.hasOwn(KINDS, fields.kind)) this[KINDS[fields.kind]](fields);
  }

  begin(fields) {
    if (this.play) this.reset();
    this.play = fields;
    this.views = (fields.views ?? []).map((view) => ({ nodes: [], phases: [], columns: [], ...view }));
  }

  tell({ texts, shown }) {
    for (const [id, text] of Object.entries(texts ?? {})) this.texts.set(Number(id), text);
    for (const [id, text] of Object.entries(shown ?? {})) this.shown.set(Number(id), text);
  }

  name({ strings }) {
    this.strings.push(...strings);
  }

  keep({ values }) {
    this.values.push(...values);
  }

  // A part with the repeated parts in it.
  whole(part) {
    if (part === null || typeof part !== "object") return part;
    if (Array.isArray(part)) return part.map((inner) => this.whole(inner));
    if ("same" in part) return this.values[part.same];
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, this.whole(inner)]));
  }

  add(line) {
    const fields = { ...line, nodes: this.whole(line.nodes), views: this.whole(line.views) };
    const known = this.steps[fields.k];
    this.state = null;
    if (fields.thin && known && !known.thin) return;
    if (known?.thin && !fields.thin) this.fill(fields.k, known);
    this.steps[fields.k] = fields;
    this.nodesOf.entries.delete(fields.k);
  }

  // A thin step's full line was asked for: keep a few of them.
  fill(k, line) {
    this.thin.set(k, line);
    this.fetched.push(k);
    if (this.fetched.length <= KEPT_THIN) return;
    const oldest = this.fetched.shift();
    this.steps[oldest] = this.thin.get(oldest);
    this.thin.delete(oldest);
  }

  explain(fields) {
    this.details.set(fields.k, fields.top);
    this.laws.set(fields.k, fields.draft_top ?? []);
  }

  finish(fields) {
    this.end = fields;
    this.judge(fields);
    this.state = null;
  }

  // What was found out after the end.
  judge({ check, speedup }) {
    this.check = check ?? this.check;
    this.speedup = speedup ?? this.speedup;
  }

  fail(fields) {
    this.fault = fields.sentence;
    this.state = null;
  }

  wait(fields) {
    this.state = fields;
  }

  get last() {
    return this.steps.length - 1;
  }

  get live() {
    return this.play !== null && this.end === null && this.fault === null;
  }

  // Whether some steps are known without their nodes.
  get partial() {
    return this.steps.some((step) => step.thin);
  }

  view(name) {
    return this.views?.find((view) => view.name === name);
  }

  raw(id) {
    return this.texts.get(id) ?? `#${id}`;
  }

  visible(id) {
    return this.shown.get(id) ?? this.raw(id);
  }

  // By its number in the table; what a step asked for later brings along stands for itself.
  string(told) {
    return typeof told === "string" ? told : (this.strings[told] ?? "");
  }

  // The columns of a step's nodes, with what follows from them; null for a step that carries none.
  nodes(k) {
    const step = this.steps[k];
    if (!step?.nodes) return null;
    return this.nodesOf.get(k, () => nodeColumns(step, this));
  }

  // The emitted tokens of a step, each with the node it was guessed at or, for the target's own token, decided at.
  emitted(k) {
    const step = this.steps[k];
    const nodes = this.nodes(k);
    const path = nodes ? nodes.path : [];
    return step.emitted.map((token, place) => ({
      token,
      place,
      fate: step.emitted_fates[place],
      node: path.length ? path[Math.min(place + 1, path.length - 1)] : -1,
      own: place + 1 >= path.length,
      position: step.start + place,
    }));
  }

  // The token that the target wrote itself, as `emitted` tells it; undefined where a step has none, or no nodes.
  own(k) {
    return this.emitted(k).find((each) => each.own && each.node >= 0);
  }

  // What a number means in a step: one of its nodes or, behind the last of them, the target's own token, which goes
  // by the node that it was decided at; null where there is none.
  spot(k, number) {
    const nodes = this.nodes(k);
    if (!nodes || !Number.isInteger(number) || number < 0 || number > nodes.count) return null;
    if (number < nodes.count) return spot(k, number);
    const own = this.own(k);
    return own ? spot(k, own.node, true) : null;
  }

  // And the number that stands for it; null where the step's nodes are not known.
  number({ step, node, own }) {
    return own ? (this.nodes(step)?.count ?? null) : node;
  }
}
