// The tests for the transport's jumps: steps with a rejected guess, with many accepted ones, with branches.

/** @import { StepLine } from "../types.d.ts" */
/** @import { RunRecord } from "./record.js" */

/**
 * @param {StepLine} step
 * @param {RunRecord} record
 */
export const isRejection = (step, { fates }) => step.emitted_fates.includes(fates.correction);

/** @param {StepLine} step */
const isHit = (step) => step.accepted > 0;

/** @param {StepLine} step */
const isBranch = (step) => step.branch;

/**
 * "Big" is measured by the run itself: three quarters of its best step, and at least two guesses.
 * @param {RunRecord} record
 */
export const bigAcceptance = (record) => {
  const best = Math.max(0, ...record.steps.map((step) => step.accepted));
  return Math.max(2, Math.ceil(best * 0.75));
};

/**
 * Every step's line tells what these ask for, a thin one too.
 * @typedef {"rejection" | "hit" | "branch"} Jump
 * @type {{ [jump in Jump]: { label: string, test: (step: StepLine, record: RunRecord) => boolean } }}
 */
export const JUMPS = {
  rejection: { label: "rejection", test: isRejection },
  hit: { label: "hit", test: isHit },
  branch: { label: "branch", test: isBranch },
};

/**
 * Return the nearest step on that side for which the jump's test holds, or -1.
 * @param {RunRecord} record
 * @param {number} from
 * @param {1 | -1} direction
 * @param {Jump} jump
 */
export const findStep = (record, from, direction, jump) => {
  for (let k = from + direction; k >= 0 && k <= record.last; k += direction) {
    if (JUMPS[jump].test(record.steps[k], record)) return k;
  }
  return -1;
};
