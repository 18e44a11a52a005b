// The tab's choices and its address. An address is untrusted: invalid fields are named in a sentence.
import { leftOut, unknownFields } from "../address.js";
import { MOST_DRAFT } from "./drafting.js";
import { BATCHES, BITS, CONTEXTS, DEVICES, SHAPES } from "./roofline.js";

/** @import { Choices, Curve, RunGroup } from "./types.d.ts" */

export const WINDOW_RUNS = "windows"; // Lookahead with six windows, among groups of recorded runs
export const OPEN = "open"; // the run in the Run tab, among groups of recorded runs
export const FOLDER = "folder"; // the run folder in the Debug tab, among them
const UNMEASURED = "this page has no such measurement";
export const MOST_CURVES = 4; // that are compared at once: as many as marks that can be told apart

/** @type {Omit<Choices, "curve" | "with" | "runs">} */
export const DEFAULTS = {
  draft: 4, share: 0.05, accept: 0.7, keep: 1, drafting: "recorded", gpu: "h200", model: "7B", bits: 16, context: 1024, batch: 1,
  alpha: 0.43, every: 3.1, n: 5,
};

/** What the sliders span. @type {{ [name in "draft" | "share" | "accept" | "keep" | "alpha" | "every" | "n"]: { low: number, high: number, step: number, words: string } }} */
export const SPANS = {
  draft: { low: 1, high: MOST_DRAFT, step: 1, words: "the draft length" },
  share: { low: 0, high: 1, step: 0.01, words: "the drafter's cost" },
  accept: { low: 0, high: 1, step: 0.01, words: "the acceptance of the first guess" },
  keep: { low: 0, high: 1, step: 0.01, words: "the acceptance of further guesses" },
  alpha: { low: 0.01, high: 0.99, step: 0.01, words: "the chance of a guessed token" },
  every: { low: 1, high: 10, step: 0.1, words: "the steps per good guess" },
  n: { low: 2, high: 8, step: 1, words: "the length of an n-gram" },
};

const LISTS = {
  gpu: DEVICES.map(({ id }) => id), model: SHAPES.map(({ id }) => id), bits: BITS, context: CONTEXTS, batch: BATCHES,
  drafting: ["recorded", "none"],
};

/**
 * Return the initial comparison: this machine if it was measured, and a machine unlike it.
 * @param {Curve[]} curves
 */
const firstCurves = (curves) => {
  const own = curves.find(({ here }) => here) ?? curves[0];
  const others = curves.filter(({ device }) => device !== own?.device);
  return { curve: own?.id ?? "", with: others.slice(0, 1).map(({ id }) => id) };
};

/**
 * Return the choices of an address, and sentences on its invalid fields.
 * @param {URLSearchParams} query
 * @param {Curve[]} curves
 * @param {RunGroup[]} groups
 * @returns {{ choices: Choices, problems: string[] }}
 */
export const choicesIn = (query, curves, groups) => {
  /** @type {string[]} */
  const problems = [];
  const known = new Set(curves.map(({ id }) => id));
  /** @type {any} every field is checked below */
  const choices = { ...DEFAULTS, ...firstCurves(curves), runs: groups[0]?.id ?? OPEN };
  const curve = query.get("curve");
  if (curve !== null && known.has(curve)) choices.curve = curve;
  else if (curve !== null) problems.push(leftOut([curve], UNMEASURED));
  if (query.has("with")) {
    const asked = (query.get("with") ?? "").split(",").filter(Boolean);
    const found = [...new Set(asked)].filter((id) => known.has(id) && id !== choices.curve);
    choices.with = found.slice(0, MOST_CURVES - 1);
    const lacking = asked.filter((id) => !known.has(id)), beyond = found.slice(MOST_CURVES - 1);
    if (lacking.length) problems.push(leftOut(lacking, UNMEASURED));
    if (beyond.length) problems.push(leftOut(beyond, `at most ${MOST_CURVES} measurements are shown at once`));
  } else choices.with = choices.with.filter((/** @type {string} */ id) => id !== choices.curve);
  for (const [name, { low, high, step, words }] of Object.entries(SPANS)) {
    const given = query.get(name);
    if (given === null) continue;
    const value = /^\d{1,3}(\.\d{1,4})?$/.test(given) ? Math.round(Number(given) / step) * step : NaN;
    if (value >= low && value <= high) choices[name] = Number(value.toFixed(2));
    else problems.push(leftOut([name], `${words} must be a number from ${low} to ${high}`));
  }
  for (const [name, values] of Object.entries(LISTS)) {
    const given = query.get(name);
    const value = values.find((each) => String(each) === given);
    if (value !== undefined) choices[name] = value;
    else if (given !== null) problems.push(leftOut([name], `choose one of ${values.join(", ")}`));
  }
  const runs = query.get("runs");
  if (runs === OPEN || runs === FOLDER || groups.some(({ id }) => id === runs)) choices.runs = runs;
  else if (runs !== null) problems.push(leftOut(["runs"], "this page has no such recorded runs"));
  problems.push(...unknownFields(query, Object.keys(choices)));
  return { choices, problems };
};

/**
 * Return the query that names these choices; initial values are left out.
 * @param {Choices} choices
 * @param {Curve[]} curves
 * @param {RunGroup[]} groups
 */
export const queryOf = (choices, curves, groups) => {
  const query = new URLSearchParams({ screen: "cost" }), first = firstCurves(curves);
  if (choices.curve !== first.curve) query.set("curve", choices.curve);
  if (choices.with.join() !== first.with.filter((id) => id !== choices.curve).join()) query.set("with", choices.with.join());
  if (choices.runs !== groups[0]?.id) query.set("runs", choices.runs);
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const chosen = choices[/** @type {keyof typeof DEFAULTS} */ (name)];
    if (chosen !== value) query.set(name, String(chosen));
  }
  return query.toString();
};
