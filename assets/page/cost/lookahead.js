// The expected tokens of a Lookahead window: the paper's equations 5 and 7, with the two numbers that fit recorded runs best.

/** @import { LookaheadModel, PassCost, WindowRun } from "./types.d.ts" */

export const WINDOWS = [1, 2, 4, 8, 16, 32, 64];

/**
 * Return the tokens that a good step writes: the longest of so many guessed n-grams up to its first wrong token, and one more.
 * @param {LookaheadModel} model
 * @param {number} window
 */
const goodStep = ({ alpha, n }, window) => {
  let tokens = n;
  for (let token = 1; token < n; token += 1) tokens -= (1 - alpha ** token) ** window;
  return tokens;
};

/**
 * Return the tokens per step: one step in `every` guesses well, and the others write one token.
 * @param {LookaheadModel} model
 * @param {number} window columns of the window, and n-grams that are verified
 */
export const tokensPerStep = (model, window) => (model.every - 1 + goodStep(model, window)) / model.every;

/**
 * Return the tokens that a pass reads: the window and the n-grams, both without the token that begins the step.
 * @param {LookaheadModel} model
 * @param {number} window
 */
export const rowsOf = ({ n }, window) => 2 * window * (n - 1);

/**
 * @param {PassCost} cost
 * @param {LookaheadModel} model
 * @param {number} window
 */
export const windowSpeedUp = (cost, model, window) => tokensPerStep(model, window) / cost(rowsOf(model, window));

/**
 * Return the window with the greatest speed-up: none where no window is faster than one token a pass.
 * @param {PassCost} cost
 * @param {LookaheadModel} model
 */
export const bestWindow = (cost, model) => {
  let best = { window: 0, speedup: 1 };
  for (const window of WINDOWS) {
    const speedup = windowSpeedUp(cost, model, window);
    if (speedup > best.speedup) best = { window, speedup };
  }
  return best;
};

/**
 * Say whether Lookahead pays on a machine: with n-grams of this length, or else with any other.
 * @param {PassCost} cost
 * @param {LookaheadModel} model
 * @param {{ n: { low: number, high: number, step: number } }} spans
 */
export const windowVerdict = (cost, model, { n: lengths }) => {
  const { window, speedup } = bestWindow(cost, model);
  if (window) {
    const isLast = Number.isNaN(windowSpeedUp(cost, model, 2 * window)) ? ", the widest whose pass was measured," : "";
    return `W = ${window}${isLast} is fastest: ${speedup.toFixed(2)} times as fast as one token a pass.`;
  }
  const [other] = values(lengths).map((n) => ({ n, ...bestWindow(cost, { ...model, n }) })).sort((a, b) => b.speedup - a.speedup);
  const none = `by this formula, with n-grams of ${model.n} tokens, no window whose pass was measured is faster than one token a pass.`;
  if (!other.window) return `${none} Nor is any with n-grams of ${lengths.low} to ${lengths.high} tokens.`;
  return `${none} With n-grams of ${other.n}, W = ${other.window} is ${other.speedup.toFixed(2)} times as fast.`;
};

/** @param {WindowRun} run */
export const recordedTokens = ({ wrote }) => wrote.reduce((sum, count) => sum + count, 0) / wrote.length;

/**
 * Return how far the formula is from the recorded run that it misses by most, as a share of what was recorded.
 * @param {LookaheadModel} model
 * @param {WindowRun[]} runs
 */
export const worstError = (model, runs) => Math.max(...runs.map((run) =>
  Math.abs(tokensPerStep({ ...model, n: run.n }, run.window) / recordedTokens(run) - 1)));

/**
 * Return the numbers for which the formula is nearest to recorded runs, by least squares over what the sliders can show.
 * @param {WindowRun[]} runs
 * @param {{ alpha: { low: number, high: number, step: number }, every: { low: number, high: number, step: number } }} spans
 */
export const fitted = (runs, { alpha: alphas, every: everies }) => {
  const best = { alpha: alphas.low, every: everies.low, error: Infinity };
  for (const alpha of values(alphas)) {
    for (const every of values(everies)) {
      const error = runs.reduce((sum, run) => sum + (tokensPerStep({ alpha, every, n: run.n }, run.window) - recordedTokens(run)) ** 2, 0);
      if (error < best.error) Object.assign(best, { alpha, every, error });
    }
  }
  return { alpha: best.alpha, every: best.every };
};

/** @param {{ low: number, high: number, step: number }} span */
const values = ({ low, high, step }) => Array.from({ length: Math.round((high - low) / step) + 1 }, (_, at) => Number((low + at * step).toFixed(2)));
