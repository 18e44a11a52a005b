// c(T): the cost of a pass over T tokens on a measured machine, in passes over one token.
import { interpolatedMs } from "../../player/race/pace.js";
import { modelName } from "../../player/text/words.js";

/** @import { Counted, Curve, PassCost } from "./types.d.ts" */

const CHEAP = 1.2; // passes over one token: a pass that costs no more than this is called cheap

/**
 * @param {Curve} curve
 * @returns {PassCost}
 */
export const passCost = (curve) => (tokens) => interpolatedMs(curve, tokens) / interpolatedMs(curve, 1);

/**
 * Return whether a pass over so many tokens was measured itself.
 * @param {Curve} curve
 * @param {number} tokens
 */
export const isMeasured = ({ rows }, tokens) => rows.includes(tokens);

/** @param {Curve} curve */
export const mostTokens = ({ rows }) => rows[rows.length - 1];

/**
 * Return the most tokens up to which every measured pass is cheap.
 * @param {Curve} curve
 */
export const cheapUpTo = (curve) => {
  const { rows } = curve, cost = passCost(curve);
  const dear = rows.findIndex((tokens) => cost(tokens) > CHEAP);
  return dear < 0 ? mostTokens(curve) : rows[dear - 1];
};

/** @param {Curve} curve */
export const machineName = ({ device, threads }) => (threads ? `${device}, ${threads} thread${threads > 1 ? "s" : ""}` : device);

/** @param {Curve} curve */
export const curveName = (curve) => `${machineName(curve)} (${modelName(curve.model)} after ${curve.context.toLocaleString("en")} tokens)`;

/**
 * Return in one sentence what a curve shows.
 * @param {Curve} curve
 */
export const curveSentence = (curve) => {
  const cheap = cheapUpTo(curve), most = mostTokens(curve), cost = passCost(curve);
  const times = (/** @type {number} */ tokens) => `${cost(tokens).toFixed(2)} times as much as one over a single token`;
  if (cheap === most) return `${curveName(curve)}: even a pass over ${most} tokens costs only ${times(most)}.`;
  if (cheap === 1) return `${curveName(curve)}: a pass over ${curve.rows[1]} tokens costs ${times(curve.rows[1])}, over ${most} ${cost(most).toFixed(2)} times.`;
  return `${curveName(curve)}: up to ${cheap} tokens, a pass costs at most ${CHEAP} times as much as one over a single token; over ${most} tokens it is `
    + `${cost(most).toFixed(2)} times.`;
};

/**
 * Return where and when a curve was measured.
 * @param {Curve} curve
 */
export const provenance = (curve) => {
  const { dtype, date, versions, here, noisy } = curve;
  const doubt = noisy.length ? ` At T = ${noisy.join(", ")}, the middle half of the times lies more than 15% apart.` : "";
  return `${curveName(curve)}: measured ${here ? "here " : ""}on ${date} in ${dtype} (${versions}).${doubt}`;
};

/**
 * Return how the tokens of steps were counted.
 * @param {Counted} counted
 */
export const countedHow = ({ model, questions, max_new_tokens, date }) => `Tokens per step: ${modelName(model)}'s greedy answers to ${questions} questions, `
  + `${max_new_tokens} tokens each, without their first steps, counted on ${date}. They are the same on all machines, but for rounding.`;
