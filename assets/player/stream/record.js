// The record of a run, from its lines: it only grows, and everything on the screen is read from it.
import { LineReader } from "./line_reader.js";
import { LruCache } from "./lru_cache.js";
import { nodeColumns } from "./nodes.js";
import { spot } from "./spot.js";

/**
 * @import { AnyLine, CheckLine, DetailLine, Details, Emitted, EndLine, FaultLine, Line, Nodes, PlayLine, RowsLine, Spot, StateLine,
 * StepLine, StringsLine, TextsLine, Value, ValuesLine, View } from "../types.d.ts"
 */

const KEPT_NODES = 32;
const KEPT_THIN = 48;

export class RunRecord {
  constructor() {
    this.version = 0;
    /** @type {LruCache<number, Nodes | null>} */
    this.nodesOf = new LruCache(KEPT_NODES);
    this.reset();
  }

  reset() {
    /** @type {LineReader} */
    this.reader = new LineReader();
    /** @type {PlayLine | null} */
    this.play = null;
    /** @type {{ [fate: string]: number }} their codes */
    this.fates = {};
    /** @type {View[]} */
    this.views = [];
    /** @type {Map<number, string>} raw display texts, for the text itself */
    this.texts = new Map();
    /** @type {Map<number, string>} what figures and tables show where it differs */
    this.shown = new Map();
    /** @type {string[]} */
    this.strings = [];
    /** @type {Value[]} parts of steps that come again and again */
    this.values = [];
    /** @type {StepLine[]} */
    this.steps = [];
    /** @type {EndLine | null} */
    this.end = null;
    this.watched = false; // whether it was seen to go on: a file comes whole
    /** @type {EndLine["check"]} */
    this.check = null;
    /** @type {EndLine["speedup"]} */
    this.speedup = null;
    /** @type {string | null} */
    this.fault = null;
    /** @type {StateLine | null} */
    this.state = null;
    /** @type {Map<number, Details>} by step: what is known of each node beyond the step's line */
    this.details = new Map();
    /** @type {Map<number, RowsLine["views"]>} by step: the tables that were fetched */
    this.tables = new Map();
    /** @type {number[]} thin steps that were filled, oldest first */
    this.fetched = [];
    /** @type {Map<number, StepLine>} their thin lines, to shrink to again */
    this.thin = new Map();
    this.nodesOf.clear();
    this.version += 1;
  }

  /**
   * Add lines, or a text of them in any pieces. Returns the kinds of the lines.
   * @param {string | AnyLine[]} given
   * @returns {Set<string>}
   */
  feed(given) {
    const { reader } = this; // stays the same where another run begins
    const lines = reader.read(given);
    for (const line of /** @type {Line[]} */ (lines)) {
      switch (line.kind) {
        case "play": this.begin(line); break;
        case "texts": this.addTexts(line); break;
        case "strings": this.strings.push(...line.strings); break;
        case "values": this.values.push(...line.values); break;
        case "step": {
          const step = /** @type {StepLine} */ (this.whole(line));
          this.state = null;
          if (this.steps[step.k]) this.fill(step);
          else this.steps[step.k] = step;
          break;
        }
        case "detail": this.addDetails(line); break;
        case "rows": this.tables.set(line.k, line.views); break;
        case "end": this.finish(line); break;
        case "check": this.judge(line); break;
        case "fault": this.fail(line); break;
        case "state": this.state = line; break;
        default: // for other readers
      }
    }
    this.reader = reader;
    this.watched ||= this.live;
    return new Set(lines.map(({ kind }) => kind));
  }

  /** @param {PlayLine} fields */
  begin(fields) {
    if (this.play) this.reset();
    this.play = fields;
    this.fates = Object.fromEntries(fields.fates.map(({ fate, code }) => [fate, code]));
    this.views = (fields.views ?? []).map((view) => ({ nodes: [], phases: [], columns: [], ...view }));
  }

  /** @param {TextsLine} line */
  addTexts({ texts, shown }) {
    for (const [id, text] of Object.entries(texts ?? {})) this.texts.set(Number(id), text);
    for (const [id, text] of Object.entries(shown ?? {})) this.shown.set(Number(id), text);
  }

  /**
   * Return a part with the repeated parts in it.
   * @param {Value} part
   * @param {Value[]} [values] the table of the repeated parts
   * @returns {Value}
   */
  whole(part, values = this.values) {
    if (part === null || typeof part !== "object") return part;
    if (Array.isArray(part)) return part.map((inner) => this.whole(inner, values));
    if ("same" in part) return values[Number(part.same)];
    return Object.fromEntries(Object.entries(part).map(([name, inner]) => [name, this.whole(inner, values)]));
  }

  /**
   * Take another line of a step, unless it says less. Of those that fill thin steps, keep only a few.
   * @param {StepLine} line
   */
  fill(line) {
    const { k } = line;
    const before = this.steps[k];
    if (line.thin) return;
    this.steps[k] = line;
    this.nodesOf.delete(k);
    if (!before.thin) return;
    this.thin.set(k, before);
    this.fetched.push(k);
    if (this.fetched.length <= KEPT_THIN) return;
    const oldest = Number(this.fetched.shift());
    const thin = this.thin.get(oldest);
    if (thin) this.steps[oldest] = thin;
    this.thin.delete(oldest);
  }

  /** @param {DetailLine} line */
  addDetails({ k, top, left, views, values, words, sees }) {
    const patches = /** @type {DetailLine["views"]} */ (this.whole(views, values));
    this.details.set(k, { top, left, views: patches, sees: sees.map((number) => words[number]) });
  }

  /**
   * Return what a node sees, in words; nothing where the step's details are not known.
   * @param {number} k
   * @param {number} node
   */
  sees(k, node) {
    return this.details.get(k)?.sees[node] ?? "";
  }

  /**
   * Return what a view shows of a step, encoded: of the pinned node where it is about that one, and its details are known.
   * @param {View} view
   * @param {number} k
   * @param {Spot | null} [pin]
   */
  patch({ name, pinned }, k, pin) {
    const number = pinned && pin?.step === k ? this.number(pin) : null;
    const pinnedPatch = number === null ? undefined : this.details.get(k)?.views[name]?.[number];
    return pinnedPatch ?? this.steps[k]?.views?.[name];
  }

  /** @param {EndLine} fields */
  finish(fields) {
    this.end = fields;
    this.judge(fields);
    this.state = null;
  }

  /**
   * Add what is measured after the end.
   * @param {Pick<EndLine, "check" | "speedup">} line
   */
  judge({ check, speedup }) {
    this.check = check ?? this.check;
    this.speedup = speedup ?? this.speedup;
  }

  /** @param {Pick<FaultLine, "sentence">} fields */
  fail(fields) {
    this.fault = fields.sentence;
    this.state = null;
  }

  /** What the run is; only where it has begun. */
  get head() {
    if (!this.play) throw new Error("the run has not begun");
    return this.play;
  }

  /** Number of the last step; -1 before the first. */
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

  /** @param {string} name */
  view(name) {
    return this.views?.find((view) => view.name === name);
  }

  /**
   * Return the fate to show: until the target has judged them, guesses are only guesses.
   * @param {number} fate
   * @param {boolean} judged
   */
  seenFate(fate, judged) {
    return !judged && this.head.fates[fate]?.judged ? this.fates.proposed : fate;
  }

  /** @param {number} id */
  raw(id) {
    return this.texts.get(id) ?? `#${id}`;
  }

  /** @param {number} id */
  visible(id) {
    return this.shown.get(id) ?? this.raw(id);
  }

  /**
   * Return a string by its number in the table; what a step that is fetched later brings along is the string itself.
   * @param {number | string} given
   */
  string(given) {
    return typeof given === "string" ? given : (this.strings[given] ?? "");
  }

  /**
   * Return the columns of a step's nodes, with what follows from them; null for a step that carries none.
   * @param {number} k
   */
  nodes(k) {
    const step = this.steps[k];
    if (!step?.nodes) return null;
    return this.nodesOf.get(k, () => nodeColumns(step, this));
  }

  /**
   * Return the same of a step that is known to carry them.
   * @param {number} k
   */
  nodesAt(k) {
    const nodes = this.nodes(k);
    if (!nodes) throw new Error(`the nodes of step ${k} are not known`);
    return nodes;
  }

  /**
   * Return the emitted tokens of a step, each with the node it was guessed at or, for the target's own token, decided at.
   * @param {number} k
   * @returns {Emitted[]}
   */
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

  /**
   * Return the token that the target wrote itself, as `emitted` tells it; undefined where a step has none, or no nodes.
   * @param {number} k
   */
  own(k) {
    return this.emitted(k).find((each) => each.own && each.node >= 0);
  }

  /**
   * Return the same of a step that is known to have one.
   * @param {number} k
   */
  ownAt(k) {
    const own = this.own(k);
    if (!own) throw new Error(`the target wrote no token of its own in step ${k}`);
    return own;
  }

  /**
   * Return what a number means in a step: one of its nodes or, after the last of them, the target's own token, which goes
   * by the node that it was decided at; null where there is none.
   * @param {number} k
   * @param {number | null | undefined} number
   */
  spot(k, number) {
    const nodes = this.nodes(k);
    if (!nodes || typeof number !== "number" || !Number.isInteger(number)) return null;
    if (number < 0 || number > nodes.count) return null;
    if (number < nodes.count) return spot(k, number);
    const own = this.own(k);
    return own ? spot(k, own.node, true) : null;
  }

  /**
   * Return the number of a spot; null where the step's nodes are not known.
   * @param {Spot} spot
   */
  number({ step, node, own }) {
    return own ? (this.nodes(step)?.count ?? null) : node;
  }
}
