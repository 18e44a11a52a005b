// What a race came to, in one line of measured numbers; and why a lane that needs fewer passes can be slower.
import { milliseconds } from "../text/words.js";

/**
 * A lane that came to its own end.
 * @typedef {{ label: string, plain: boolean, passes: number, ids: number[], ms: number }} Finished
 */

/**
 * Autoregressive decoding against the lane with the fewest passes; null where one of them is missing.
 * @param {Finished[]} lanes
 * @returns {{ words: string, times: string } | null}
 */
export const headline = (lanes) => {
  const base = lanes.find(({ plain }) => plain);
  const others = lanes.filter((lane) => lane !== base);
  if (!base || !others.length) return null;
  const best = others.reduce((one, other) => (other.passes < one.passes ? other : one));
  const who = others.length > 1 ? `${best.label}: ` : "";
  const same = sameIds(base.ids, best.ids) ? ", the same text" : "";
  const words = best.passes < base.passes ? `${who}${best.passes} passes instead of ${base.passes}${same}.`
    : `No method needed fewer passes than the ${base.passes} of autoregressive decoding.`;
  return { words, times: `${milliseconds(best.ms)} instead of ${milliseconds(base.ms)}` };
};

/**
 * @param {number[]} one
 * @param {number[]} other
 */
const sameIds = (one, other) => one.length === other.length && one.every((id, i) => id === other[i]);

/**
 * Why a lane is slower than autoregressive decoding: its steps cost more than the tokens that they write are worth.
 * @param {{ label: string, speedup: number, cost: number, plainMs: number, model: string, device: string }} lane
 *   `cost` is its average step in average plain ones
 */
export const slowSentence = ({ label, speedup, cost, plainMs, model, device }) =>
  `${label} ran at ${speedup.toFixed(2)}× the speed of autoregressive decoding: its average step wrote `
  + `${(speedup * cost).toFixed(2)} tokens, but cost as much as ${cost.toFixed(2)} autoregressive ones. `
  + `Those take only ${milliseconds(plainMs)} with ${model} on this ${device === "cpu" ? "CPU" : "device"}, so that the `
  + "method's own work and every further row show.";
