// The phases of a step, and the fates of its nodes that each phase shows. The codes of the fates come with the run.

/** @import { Nodes, Phase } from "../types.d.ts" */

/** @type {Phase[]} */
export const PHASES = ["propose", "verify", "answers", "accept", "commit"]; // in lessons p, v, w, a and c

/** @param {{ phase: Phase }} state */
export const isAnswered = ({ phase }) => PHASES.indexOf(phase) >= PHASES.indexOf("answers");

/** @param {{ phase: Phase }} state */
export const isJudged = ({ phase }) => PHASES.indexOf(phase) >= PHASES.indexOf("accept");

/**
 * Return how many nodes of each fate a step has.
 * @param {Nodes} nodes
 * @param {(fate: number) => number} seen
 * @returns {Map<number, number>}
 */
export const fateCounts = (nodes, seen) => {
  const counts = new Map();
  for (const code of nodes.fate) {
    const fate = seen(code);
    counts.set(fate, (counts.get(fate) ?? 0) + 1);
  }
  return counts;
};
