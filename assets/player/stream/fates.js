// What became of tokens, and which of it is seen in each phase of a step.


export const FATE = {
  PROPOSED: 0, ROOT: 1, ACCEPTED: 2, REJECTED: 3, MATCHED: 4, EXPLORED: 5, CORRECTION: 6, BONUS: 7, INSPIRED: 8,
  PROMPT: 9,
};

export const PHASES = ["propose", "verify", "accept", "commit"];

export const isJudged = ({ phase }) => PHASES.indexOf(phase) >= PHASES.indexOf("accept");

// Until the target has judged them, guesses are only guesses.
const JUDGEMENTS = new Set([FATE.ACCEPTED, FATE.REJECTED, FATE.MATCHED]);

export const seenFate = (fate, judged) => (!judged && JUDGEMENTS.has(fate) ? FATE.PROPOSED : fate);

// How many nodes of each fate a step has.
export const fateCounts = (nodes, judged) => {
  const counts = new Map();
  for (const code of nodes.fate) {
    const fate = seenFate(code, judged);
    counts.set(fate, (counts.get(fate) ?? 0) + 1);
  }
  return counts;
};
