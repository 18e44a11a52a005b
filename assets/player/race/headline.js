// The result of a race, in one line of its clock's numbers; and why a lane that needs fewer passes can be slower.
import { milliseconds, plural } from "../text/words.js";
import { MEASURED_GPU } from "./pace.js";

/** @import { Pace } from "./pace.js" */
/**
 * A lane that came to its own end: its time by the race's clock, that time in words, and why it may be no finding.
 * @typedef {{ label: string, plain: boolean, passes: number, ids: number[], time: number, words: string, doubt?: string }} Finished
 */

const WOULD = ["would finish first", "would take"];
/** @type {Record<Pace, string[]>} what a sentence begins with, and its verbs */
const CLOCKS = {
  recorded: ["", "finished first", "took"],
  passes: ["If every pass cost the same, ", ...WOULD],
  measured: [`With passes as measured on an ${MEASURED_GPU} GPU, `, ...WOULD],
  projected: ["Projected for an H100 GPU, ", ...WOULD],
};

/**
 * Return who finished first by the race's clock, and as a second fact who needed the fewest passes.
 * @param {Finished[]} lanes
 * @param {Pace} [pace]
 * @returns {{ words: string, passes: string }}
 */
export const headline = (lanes, pace = "recorded") => {
  if (lanes.length < 2) {
    const words = lanes.length ? `Only ${lanes[0].label} finished: there is nothing to compare it with.`
      : "No run finished.";
    return { words, passes: "" };
  }
  const soonest = lanes.reduce((one, other) => (other.time < one.time ? other : one));
  const first = lanes.filter((lane) => lane.words === soonest.words); // less is not to be seen, and is noise
  const base = lanes.find(({ plain }) => plain);
  const [before, finishes, takes] = CLOCKS[pace];
  const names = first.map(({ label }) => label);
  const who = [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");
  const doubts = first.map(({ doubt }) => (doubt ? ` ${doubt}` : "")).join("");
  const words = `${before}${who} ${finishes}, in ${timesOf(first, base, takes)}.${doubts}`;
  return { words, passes: passSentence(lanes, base, first) };
};

/**
 * @param {Finished[]} first those that finished first
 * @param {Finished | undefined} base
 * @param {string} takes
 */
const timesOf = (first, base, takes) => {
  const [best] = first;
  if (first.length > 1) return `${best.words} each`;
  if (!base) return best.words;
  return best === base ? `${best.words}: no method was faster`
    : `${best.words}; autoregressive decoding ${takes} ${base.words}${otherText(base, best)}`;
};

/**
 * Return who needed the fewest passes, if somebody needed fewer than the others.
 * @param {Finished[]} lanes
 * @param {Finished | undefined} base
 * @param {Finished[]} first those that finished first
 */
const passSentence = (lanes, base, first) => {
  const fewest = lanes.reduce((one, other) => (other.passes < one.passes ? other : one));
  const most = base ?? lanes.reduce((one, other) => (other.passes > one.passes ? other : one));
  if (fewest.passes === most.passes) {
    return base ? `No method needed fewer passes than the ${base.passes} of autoregressive decoding.`
      : `Each needed ${plural(most.passes, "pass", "passes")}.`;
  }
  const passes = `${fewest.passes} instead of ${most.passes}`;
  const [best] = first;
  const same = base && best !== base && first.length === 1 && sameText(base, best);
  if (first.length === 1 && best.passes === fewest.passes) {
    return `It ${same ? "wrote the same text in" : "needed"} ${lanes.length > 2 ? "the fewest" : "fewer"} passes: ${passes}.`;
  }
  return `${same ? "It wrote the same text. " : ""}${fewest.label} needed the fewest passes: ${passes}.`;
};

/**
 * Say that the texts differ, since a shorter one takes less time.
 * @param {Finished} base
 * @param {Finished} best
 */
const otherText = (base, best) => {
  if (sameText(base, best)) return "";
  const [ours, theirs] = [best.ids.length, base.ids.length];
  return ours === theirs ? ", but wrote another text" : `, but wrote ${plural(theirs, "token")} instead of ${ours}`;
};

/**
 * @param {Finished} one
 * @param {Finished} other
 */
const sameText = (one, other) => one.ids.length === other.ids.length && one.ids.every((id, i) => id === other.ids[i]);

/**
 * Return a lane's speedup over autoregressive decoding; null where that is a measuring error: a step
 * does all that an autoregressive one does, so that the tokens per step, to the two digits that are shown, limit it.
 * `credible_speedup` in decoding/trace/metrics.py is the same rule. It is needed here too, since the page compares by clocks
 * that only it has, and the passes that one of them takes were measured as well.
 * @param {number} speedup
 * @param {number} tokensPerStep
 */
export const credibleSpeedup = (speedup, tokensPerStep) =>
  (speedup > 0 && Number(speedup.toFixed(2)) <= Number(tokensPerStep.toFixed(2)) ? speedup : null);

/**
 * Return why a lane has no speedup where `credibleSpeedup` is null.
 * @param {{ label: string, speedup: number, tokensPerStep: number }} lane
 */
export const doubtSentence = ({ label, speedup, tokensPerStep }) =>
  `${speedup.toFixed(2)}× the speed of autoregressive decoding is more than ${label} can reach with ${tokensPerStep.toFixed(2)} `
  + "tokens per step: one of the two times is a measuring error.";

/**
 * Return why a lane is slower than autoregressive decoding: its steps cost more than the tokens that they write are worth.
 * @param {{ label: string, speedup: number, cost: number, plainMs: number, model: string, processor?: string | null }} lane
 *   `cost` is its average step in average plain ones; the processor is the one that ran it, which may be another machine's
 */
export const slowSentence = ({ label, speedup, cost, plainMs, model, processor }) =>
  `${label} ran at ${speedup.toFixed(2)}× the speed of autoregressive decoding: its average step wrote `
  + `${(speedup * cost).toFixed(2)} tokens, but cost as much as ${cost.toFixed(2)} autoregressive ones. `
  + `Those take only ${milliseconds(plainMs)}, the first step included, with ${[model, processor].filter(Boolean).join(" on ")}, so that the `
  + "method's own work and every further row are noticeable.";
