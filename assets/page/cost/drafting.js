// Computes when a draft pays: the tokens and the cost of a step, and the least acceptance with which it is faster than none.

/** @import { Drafting, PassCost } from "./types.d.ts" */

export const MOST_DRAFT = 16; // guesses of a step
const HALVINGS = 40; // of the range in which an acceptance is looked for

/**
 * Return the expected tokens of a step: each guess that is accepted with all before it, and the target's own token.
 * @param {Pick<Drafting, "draft" | "accept" | "keep">} drafting
 */
export const expectedTokens = ({ draft, accept, keep }) => {
  let tokens = 1, all = 1, chance = accept; // all: that every guess so far is accepted
  for (let guess = 0; guess < draft; guess += 1) {
    all *= chance;
    tokens += all;
    chance *= keep;
  }
  return tokens;
};

/**
 * Return the cost of a step, in passes over one token: its pass reads the guesses and the token before them.
 * @param {PassCost} cost
 * @param {Pick<Drafting, "draft" | "share">} drafting
 */
export const stepCost = (cost, { draft, share }) => cost(draft + 1) + draft * share;

/**
 * Return the expected speed-up over one token a pass; not a number where the pass was not measured.
 * @param {PassCost} cost
 * @param {Drafting} drafting
 */
export const speedUp = (cost, drafting) => expectedTokens(drafting) / stepCost(cost, drafting);

/**
 * Return the acceptance of the first guess from which on the draft is no loss: 0 where it never is one, null where even
 * certain guesses are one, or where the pass was not measured.
 * @param {PassCost} cost
 * @param {Omit<Drafting, "accept">} drafting
 */
export const breakEven = (cost, drafting) => {
  const needed = stepCost(cost, drafting);
  if (needed <= 1) return 0;
  if (!(expectedTokens({ ...drafting, accept: 1 }) >= needed)) return null;
  let [low, high] = [0, 1];
  for (let halving = 0; halving < HALVINGS; halving += 1) {
    const accept = (low + high) / 2;
    if (expectedTokens({ ...drafting, accept }) < needed) low = accept;
    else high = accept;
  }
  return high;
};

/**
 * Return the draft length with the greatest speed-up, as a chart of all shows it: no guess at all, with a speed-up of 1,
 * where none is faster to two digits.
 * @param {PassCost} cost
 * @param {Omit<Drafting, "draft">} drafting
 */
export const bestDraft = (cost, drafting) => {
  let best = { draft: 0, speedup: 1 };
  for (let draft = 1; draft <= MOST_DRAFT; draft += 1) {
    const speedup = speedUp(cost, { ...drafting, draft });
    if (hundredths(speedup) > 1 && speedup > best.speedup) best = { draft, speedup };
  }
  return best;
};

/** @param {number} factor */
const hundredths = (factor) => Number(factor.toFixed(2));

/** @param {number} factor */
export const times = (factor) => `${factor.toFixed(2)} times`;

/** @param {number} count */
const guesses = (count) => `${count} guess${count === 1 ? "" : "es"}`;

/**
 * Return whether to draft on a machine, in words.
 * @param {PassCost} cost
 * @param {Drafting} drafting
 */
export const verdict = (cost, drafting) => {
  const { draft } = drafting;
  const best = bestDraft(cost, drafting), here = speedUp(cost, drafting), needed = breakEven(cost, drafting);
  const lacks = Number.isNaN(here) ? `Passes over ${draft + 1} tokens were not measured.`
    : needed === null ? `With ${guesses(draft)} a step, not even certain guesses would pay.`
      : `With ${guesses(draft)} a step, the first would have to be accepted ${percent(needed)} of the time.`;
  if (best.draft === 0) return `Do not speculate here: no draft length is faster than one token a pass. ${lacks}`;
  const most = `${guesses(best.draft)} a step ${best.draft === 1 ? "is" : "are"} best: ${times(best.speedup)} as fast as one token a pass`;
  const chosen = `${guesses(draft)} a step ${draft === 1 ? "is" : "are"} ${times(here)} as fast as one token a pass`;
  if (Number.isNaN(here)) return `Speculation pays here: ${most}. ${lacks}`;
  if (best.draft === draft) return `Speculation pays here: ${most}.`;
  if (here < 1) return `Speculation pays here, but not with ${guesses(draft)}, which are ${times(here)} as fast. ${most[0].toUpperCase()}${most.slice(1)}.`;
  if (hundredths(here) === hundredths(best.speedup)) return `Speculation pays here: ${chosen}, and ${best.draft} would do as well.`;
  return `Speculation pays here: ${chosen}, and ${best.draft} would be best: ${times(best.speedup)}.`;
};

/** @param {number} share */
export const percent = (share) => `${Math.ceil(100 * share - 1e-6)}%`;
