// Numbers and other values in words.

/** @type {[unit: string, size: number][]} */
const UNITS = [["B", 1e9], ["M", 1e6], ["k", 1e3]];

/** @param {number} number */
export const compact = (number) => {
  for (const [unit, size] of UNITS) if (number >= size) return `${+(number / size).toPrecision(3)} ${unit}`;
  return String(number);
};

const MODELS = new Map([["smollm2", "SmolLM2 135M"]]);

/**
 * Return the page's label of a model; records, measurements and addresses have its id.
 * @param {string} model
 */
export const modelName = (model) => MODELS.get(model) ?? model;

/** @param {number} p */
export const probability = (p) => (p >= 0.001 || p === 0 ? p.toFixed(3) : p.toExponential(1));

/**
 * @param {number} count
 * @param {string} word
 */
export const plural = (count, word, many = `${word}s`) => `${count} ${count === 1 ? word : many}`;

const ENDINGS = ["th", "st", "nd", "rd"];

/** @param {number} place from 1 on */
export const ordinal = (place) => {
  const teen = place % 100 > 10 && place % 100 < 14;
  return `${place}${(!teen && ENDINGS[place % 10]) || ENDINGS[0]}`;
};

/**
 * Name a step; steps are counted from the one that reads the prompt.
 * @param {number} step
 */
export const stepName = (step) => (step === 0 ? "0, prompt" : String(step));

/** @param {number} ms */
export const milliseconds = (ms) => (ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`);

/** @type {{ [finish: string]: string }} */
const FINISHES = {
  length: "ended at its token limit", end_of_text: "ended with an end-of-text token", stop: "ended at a stop string",
  cancelled: "stopped before its end", time: "stopped at its time limit", error: "failed",
  torn: "was interrupted",
};

/** @param {unknown} finish */
export const finishWords = (finish) => {
  const name = String(finish ?? "ended");
  return Object.hasOwn(FINISHES, name) ? FINISHES[name] : name;
};
