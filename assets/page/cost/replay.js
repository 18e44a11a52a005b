// Projects a recorded run onto another machine: its own steps, with passes as measured there.
import { isMeasured, mostTokens, passCost } from "./curves.js";

/** @import { StepLine } from "../../player/types.d.ts" */
/** @import { Curve, PlainPass, Replay, RunSteps } from "./types.d.ts" */

const DRAFT = 0; // of a step's milliseconds

/**
 * Return the cost of each step on a machine, and the speed-up of the run there over one token per pass.
 * @param {RunSteps} run
 * @param {Curve} curve
 * @param {boolean} drafts whether drafting counts
 * @returns {Replay}
 */
export const replay = ({ fed, wrote, drafting }, curve, drafts) => {
  const cost = passCost(curve);
  const costs = fed.map((tokens, at) => cost(tokens) + (drafts ? (drafting?.[at] ?? NaN) : 0));
  const tokens = wrote.reduce((sum, each) => sum + each, 0);
  return {
    speedup: tokens / costs.reduce((sum, each) => sum + each, 0),
    costs,
    between: fed.filter((each) => each <= mostTokens(curve) && !isMeasured(curve, each)).length,
    beyond: fed.filter((each) => each > mostTokens(curve)).length,
  };
};

/**
 * Return why a run has no projection on a machine; empty where it has one.
 * @param {RunSteps} run
 * @param {Curve} curve
 * @param {boolean} drafts
 */
export const lacking = (run, curve, drafts) => {
  const { beyond } = replay(run, curve, false);
  if (!run.fed.length) return "the run has a single step";
  if (beyond) return `${beyond} of ${run.fed.length} steps read more than the ${mostTokens(curve)} tokens that were measured`;
  if (drafts && !run.drafting) return "what drafting costs is unknown: no pass over one token was recorded on its machine";
  return "";
};

/**
 * Return the steps of a run in the player, after the first.
 * @param {Pick<StepLine, "fed" | "emitted" | "ms">[]} steps
 * @param {PlainPass | undefined} plain what drafting is measured in
 * @returns {RunSteps}
 */
export const stepsOf = (steps, plain) => {
  const later = steps.slice(1);
  return {
    fed: later.map(({ fed }) => fed),
    wrote: later.map(({ emitted }) => emitted.length),
    drafting: plain ? later.map(({ ms }) => ms[DRAFT] / plain.milliseconds) : null,
  };
};

/**
 * Return by how much projections differ from what was measured on the same machine: the median, as a share; null where there
 * is nothing to compare.
 * @param {{ projected: number, measured: number | null }[]} pairs
 */
export const typicalError = (pairs) => {
  const errors = pairs.flatMap(({ projected, measured }) =>
    (measured && projected ? [Math.abs(projected / measured - 1)] : [])).sort((a, b) => a - b);
  const middle = errors.length >> 1;
  if (!errors.length) return null;
  return errors.length % 2 ? errors[middle] : (errors[middle - 1] + errors[middle]) / 2;
};
