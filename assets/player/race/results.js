// The result of a race: the table, whether the outputs agree, and all of them aligned token by token.
import { el, show, write } from "../dom/elements.js";
import { modelName, ordinal, plural } from "../text/words.js";
import { credibleSpeedup, doubtSentence, headline, slowSentence } from "./headline.js";

/** @import { Summary } from "../types.d.ts" */
/** @import { Lane } from "./lane.js" */
/** @import { Race } from "./race.js" */

const MOST_ALIGNED = 1024;

/** @param {Lane} lane */
const greedy = (lane) => !lane.record.head.header.sampling?.temperature;

/** @param {Race} race */
export const drawResults = (race) => {
  const lanes = race.running;
  race.results.replaceChildren();
  race.together.replaceChildren();
  show(race.verdict, race.ended || Boolean(race.fault));
  if (!race.ended && !race.fault) return;
  const { tone, say } = race.fault ? { tone: "broken", say: race.fault } : compareLanes(lanes);
  write(race.verdict, say);
  race.verdict.dataset.tone = tone;
  if (race.fault) return;
  const doubts = lanes.map((lane) => doubtOf(lane, plainOf(lanes))).filter(Boolean);
  const notes = [...doubts, ...slowSentences(race), race.state.pace === "recorded" ? RATES : ROWS];
  race.results.append(table(race), ...notes.map((words) => el("p", { class: "ss-quiet" }, words)));
  const words = "A column is an output token; a line before it marks the beginning of a step.";
  race.together.append(el("p", { class: "ss-quiet" }, words), aligned(lanes));
};

/**
 * Compare lossless greedy runs that ended: they must have written the same tokens.
 * @param {Lane[]} lanes
 */
const compareLanes = (lanes) => {
  const whole = lanes.filter((lane) => lane.whole);
  const bound = whole.filter((lane) => lane.record.head.header.lossless && greedy(lane));
  if (lanes.some((lane) => !greedy(lane))) {
    return { tone: "grey", say: "Sampled runs may differ; every lossless one follows the target's own distribution." };
  }
  const cut = lanes.length - whole.length;
  const early = cut ? ` Not compared: ${plural(cut, "run")} cut short.` : "";
  if (bound.length < 2) {
    return { tone: "grey", say: `Fewer than two lossless runs to compare: nothing has to agree here.${early}` };
  }
  const [base] = bound;
  for (const lane of bound.slice(1)) {
    const at = firstDifference(base.ids, lane.ids);
    if (at >= 0) return parted(base, lane, at);
  }
  const rest = whole.length - bound.length;
  const free = rest ? ` ${plural(rest, "other run")} need not agree: not lossless by design.` : "";
  const all = cut ? "" : "All ";
  const same = `${bound.length} lossless runs wrote the same ${plural(base.ids.length, "token")}.`;
  return { tone: "exact", say: `${all}${same}${free}${early}` };
};

/**
 * The first position where two texts differ; -1 where none is.
 * @param {number[]} one
 * @param {number[]} other
 */
export const firstDifference = (one, other) => {
  const shared = Math.min(one.length, other.length);
  for (let i = 0; i < shared; i += 1) if (one[i] !== other[i]) return i;
  return one.length === other.length ? -1 : shared;
};

/**
 * @param {Lane} one
 * @param {Lane} other
 * @param {number} at
 */
const parted = (one, other, at) => {
  /** @param {Lane} lane */
  const token = (lane) => (at < lane.ids.length ? `“${lane.record.visible(lane.ids[at])}”` : "nothing");
  const checks = [one, other].map((lane) => lane.record.check);
  const ties = checks.flatMap((check) => check?.places ?? []).filter((place) => place.position === at);
  const where = `Outputs differ: ${one.label} and ${other.label} diverge at token ${at}, `
    + `${token(one)} against ${token(other)}.`;
  if (ties.length && !checks.some((check) => check?.violations)) {
    const margin = Math.min(...ties.map((place) => place.margin)).toPrecision(2);
    return { tone: "near", say: `${where} It is a near-tie of the target (margin ${margin}): rounding decides.` };
  }
  return { tone: "broken", say: `${where} Lossless greedy runs must agree, so one of them is wrong.` };
};

/**
 * @param {number | null | undefined} value
 * @param {number} digits
 */
const number = (value, digits, unit = "") => (typeof value === "number" ? value.toFixed(digits) + unit : "–");

/** @param {Lane} lane */
const summary = (lane) => lane.record.end?.summary ?? {};

/** @param {Lane} lane */
const rate = (lane) => summary(lane).tokens_per_second;

/**
 * Return how much faster than another a lane was by the race's clock, the reading of the prompt included; null between machines, and
 * where a run was cut short.
 * @param {Lane} lane
 * @param {Lane | undefined} base
 */
const timesFaster = (lane, base) => {
  if (!base || [lane, base].some(({ whole, record, total }) => !whole || record.steps.length < 2 || !total)) return null;
  const [ours, theirs] = [lane, base].map(({ record }) => record.head.header);
  if (ours.processor !== theirs.processor || ours.threads !== theirs.threads) return null;
  return (lane.ids.length / lane.total) / (base.ids.length / base.total);
};

/**
 * Return a lane's speedup; null too where it is a measuring error.
 * @param {Lane} lane
 * @param {Lane | undefined} base
 */
const speedup = (lane, base) => {
  const faster = timesFaster(lane, base);
  return faster === null ? null : credibleSpeedup(faster, tokensPerStep(lane));
};

/**
 * Return why a lane has no speedup, where that is a measuring error; else "".
 * @param {Lane} lane
 * @param {Lane | undefined} base
 */
const doubtOf = (lane, base) => {
  const faster = timesFaster(lane, base), each = tokensPerStep(lane);
  return faster === null || credibleSpeedup(faster, each) !== null ? ""
    : doubtSentence({ label: lane.label, speedup: faster, tokensPerStep: each });
};

/** @param {Lane} lane */
const tokensPerStep = ({ ids, record: { steps } }) => ids.length / steps.length;

/** @param {Lane[]} lanes */
const plainOf = (lanes) => lanes.find((lane) => lane.plain);

/**
 * Return the result of the lanes that came to their end; null before the race's end, and for a single lane.
 * @param {Race} race
 */
export const outcome = ({ ended, list, running, state: { pace } }) => {
  if (!ended || list.length < 2) return null;
  const base = plainOf(running);
  return headline(running.filter((lane) => lane.whole).map((lane) => ({
    label: lane.label, plain: lane.plain, passes: lane.record.steps.length, ids: lane.ids, time: lane.total,
    words: lane.took, doubt: doubtOf(lane, base),
  })), pace);
};

/**
 * Return a sentence for each lane that was slower than autoregressive decoding when it was recorded.
 * @param {Race} race
 */
const slowSentences = ({ running: lanes, state: { pace } }) => {
  const base = plainOf(lanes);
  if (!base || pace !== "recorded") return [];
  const plainMs = base.total / base.record.steps.length;
  return lanes.flatMap((lane) => {
    const ratio = speedup(lane, base);
    if (lane === base || ratio === null || ratio >= 1) return [];
    const { processor, model } = lane.record.head.header;
    const cost = lane.total / lane.record.steps.length / plainMs;
    return [slowSentence({ label: lane.label, speedup: ratio, cost, plainMs, model: modelName(model.name), processor })];
  });
};

/** @param {Summary} summary */
const laterSteps = ({ steps = 0, decode_seconds: seconds = 0 }) => (steps > 1 ? (seconds * 1000) / (steps - 1) : null);

/**
 * Return the rows that the target read for each token, without the first step, which reads the prompt.
 * @param {{ fed: number, emitted: number[] }[]} steps
 */
export const rowsPerToken = ([, ...later]) => {
  const tokens = later.reduce((sum, { emitted }) => sum + emitted.length, 0);
  return tokens ? later.reduce((sum, { fed }) => sum + fed, 0) / tokens : null;
};

const RATES = "Tokens/s, time per step and rows per token leave out the first step, which reads the prompt; time and speed-up count it.";
const ROWS = "Rows per token leave out the first step, which reads the prompt.";
const MEASURED = new Set(["Tokens/s", "Time per step"]); // which only the recorded clock shows

// The table's columns: what each is called, and its cell for a lane; `base` is the plain lane, where there is one.
/** @type {[heading: string, cell: (lane: Lane, base: Lane | undefined) => string][]} */
const COLUMNS = [
  ["Place", (lane) => (lane.whole ? ordinal(lane.place) : "–")],
  ["Method", (lane) => lane.label],
  ["Time", (lane) => lane.took],
  ["Tokens", (lane) => String(lane.tokens.length)],
  ["Tokens/s", (lane) => number(rate(lane), 1)],
  ["Tokens per step", (lane) => number(tokensPerStep(lane), 2)],
  ["Time per step", (lane) => number(laterSteps(summary(lane)), 2, " ms")],
  ["Rows per token", (lane) => number(rowsPerToken(lane.record.steps), 1)],
  ["Memory", (lane) => number(lane.record.end?.memory ? lane.record.end.memory / 1e6 : null, 1, " MB")],
  ["Speed-up", (lane, base) => number(speedup(lane, base), 2, "×")],
];

/** @param {Race} race */
const table = ({ running: lanes, state: { pace } }) => {
  const base = plainOf(lanes);
  const sorted = [...lanes].sort((a, b) => Number(b.whole) - Number(a.whole) || a.total - b.total);
  const columns = COLUMNS.filter(([heading]) => pace === "recorded" || !MEASURED.has(heading));
  const rows = sorted.map((lane) => columns.map(([, cellOf]) => el("td", {}, cellOf(lane, base))));
  return el("table", { class: "ss-table" },
    el("thead", {}, el("tr", {}, ...columns.map(([heading]) => el("th", { scope: "col" }, heading)))),
    el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells))));
};

/** @param {Lane[]} lanes */
const aligned = (lanes) => {
  const count = Math.min(MOST_ALIGNED, Math.max(0, ...lanes.map((lane) => lane.tokens.length)));
  const differs = Array.from({ length: count }, (_, i) =>
    new Set(lanes.filter((lane) => i < lane.ids.length).map((lane) => lane.ids[i])).size > 1);
  const head = el("tr", {}, el("th", { scope: "col" }, "Token"),
    ...differs.map((differ, i) => el("th", { scope: "col" }, differ ? `${i} ≠` : String(i))));
  const rows = lanes.map((lane) => el("tr", {}, el("th", { scope: "row" }, lane.label),
    ...differs.map((differ, i) => cell(lane, i, differ))));
  return el("table", { class: "ss-table" }, el("thead", {}, head), el("tbody", {}, ...rows));
};

/**
 * @param {Lane} lane
 * @param {number} i
 * @param {boolean} differ
 */
const cell = (lane, i, differ) => {
  const token = lane.tokens[i];
  if (!token) return el("td", { class: "ss-none" });
  const begins = i === 0 || lane.tokens[i - 1].step !== token.step;
  const span = el("span", { class: `ss-token ss-fate-${token.fate}` }, lane.record.visible(token.id));
  const marks = [begins ? "ss-begins" : "", differ ? "ss-differs" : ""].join(" ").trim();
  return el("td", { class: marks || null }, span);
};
