// What became of tokens, and which of it is seen in each phase of a step.

/** @import { Nodes, Phase } from "../types.d.ts" */

export const FATE = {
  PROPOSED: 0, ROOT: 1, ACCEPTED: 2, REJECTED: 3, MATCHED: 4, EXPLORED: 5, CORRECTION: 6, BONUS: 7, INSPIRED: 8,
  PROMPT: 9, OWN: 10, TWIN: 11,
};

/** @type {Phase[]} */
export const PHASES = ["propose", "verify", "answers", "accept", "commit"]; // in lessons p, v, w, a and c

/** @param {{ phase: Phase }} state */
export const isAnswered = ({ phase }) => PHASES.indexOf(phase) >= PHASES.indexOf("answers");

/** @param {{ phase: Phase }} state */
export const isJudged = ({ phase }) => PHASES.indexOf(phase) >= PHASES.indexOf("accept");

// Until the target has judged them, guesses are only guesses.
const JUDGEMENTS = new Set([FATE.ACCEPTED, FATE.REJECTED, FATE.MATCHED, FATE.TWIN]);

/**
 * @param {number} fate
 * @param {boolean} judged
 */
export const seenFate = (fate, judged) => (!judged && JUDGEMENTS.has(fate) ? FATE.PROPOSED : fate);

/**
 * Return how many nodes of each fate a step has.
 * @param {Nodes} nodes
 * @param {boolean} judged
 * @returns {Map<number, number>}
 */
export const fateCounts = (nodes, judged) => {
  const counts = new Map();
  for (const code of nodes.fate) {
    const fate = seenFate(code, judged);
    counts.set(fate, (counts.get(fate) ?? 0) + 1);
  }
  return counts;
};
