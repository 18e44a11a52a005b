// The clocks of a race: how long each step of a lane takes, as recorded, by passes, or as on a GPU.
import { MEASURED } from "./measured.js";

/** @import { StepLine } from "../types.d.ts" */
/** @typedef {"recorded" | "passes" | "measured" | "projected"} Pace */
/** @typedef {Pick<StepLine, "ms" | "fed">} Timed */

const [DRAFT, FORWARD, TOTAL] = [0, 1, 4]; // of a step's milliseconds
const SHORT_MS = 6000; // what a short race is stretched to

/** From NVIDIA's data sheet: bandwidth of the memory, and dense bf16 operations of the tensor cores. */
export const GPU = { name: "H100 SXM", bytesPerSecond: 3.35e12, operationsPerSecond: 989e12 };
/** Large enough that a GPU is kept busy, which the recorded models are not: their passes would be all overhead. */
export const MODEL = { name: "a model of 7 billion parameters in bf16", parameters: 7e9, bytesPerParameter: 2 };

const READ_MS = (1000 * MODEL.parameters * MODEL.bytesPerParameter) / GPU.bytesPerSecond;
const ROW_MS = (1000 * 2 * MODEL.parameters) / GPU.operationsPerSecond; // a multiplication and an addition each

/** The number of rows up to which reading the weights takes longer than computing with them. */
export const FREE_ROWS = Math.floor(READ_MS / ROW_MS);

/**
 * Return the milliseconds of a pass over some rows on the GPU: all weights are read once, and used for each row.
 * @param {number} rows
 */
export const gpuMs = (rows) => Math.max(READ_MS, ROW_MS * rows);

/** The measured device's name without its maker's. */
export const MEASURED_GPU = MEASURED.device.replace("NVIDIA ", "");

/** @typedef {{ rows: number[], milliseconds: number[] }} PassTimes what passes over some numbers of rows took, 1 first */

/**
 * Return the milliseconds of a pass over some rows: what was measured, or on the straight line between two measured numbers of
 * rows. Not a number beyond the most of them.
 * @param {PassTimes} measured
 * @param {number} rows
 */
export const interpolatedMs = ({ rows: counts, milliseconds: times }, rows) => {
  const above = counts.findIndex((count) => count >= rows), below = Math.max(0, above - 1);
  if (above < 0) return NaN;
  const share = above > below ? (rows - counts[below]) / (counts[above] - counts[below]) : 0;
  return times[below] + share * (times[above] - times[below]);
};

/**
 * Return the milliseconds of a pass over some rows on the measured device. More rows than the most that were measured take
 * several passes.
 * @param {number} rows
 * @returns {number}
 */
export const measuredMs = (rows) => {
  const most = /** @type {number} */ (MEASURED.rows.at(-1));
  return rows > most ? interpolatedMs(MEASURED, most) + measuredMs(rows - most) : interpolatedMs(MEASURED, rows);
};

/** @type {{ value: Pace, label: string }[]} */
export const PACES = [
  { value: "recorded", label: "recorded time" },
  { value: "passes", label: "every pass costs the same" },
  { value: "measured", label: `passes as measured on an ${MEASURED_GPU} GPU` },
  { value: "projected", label: "as on an H100 GPU (projected)" },
];

/**
 * Return the mean of a part of the steps after the first one, which reads the prompt.
 * @param {Timed[]} steps
 * @param {number} part
 */
const mean = (steps, part) => {
  const later = steps.slice(1);
  return later.length ? later.reduce((sum, { ms }) => sum + ms[part], 0) / later.length : 0;
};

/** @param {Timed[]} steps */
export const meanStep = (steps) => mean(steps, TOTAL);

/**
 * Return how long a step takes, in milliseconds. Drafting takes the same share of a plain pass as when it was recorded,
 * on other machines too.
 * @param {Pace} pace
 * @param {Timed[]} plain the steps whose passes the others are measured in: of autoregressive decoding, if it races
 * @param {boolean} [drafts] false for autoregressive decoding, whose loop takes a moment for it all the same
 * @returns {(step: Timed) => number}
 */
export const clockOf = (pace, plain, drafts = true) => {
  if (pace === "recorded") return ({ ms }) => ms[TOTAL];
  const forward = mean(plain, FORWARD);
  /** @param {Timed} step */
  const drafting = ({ ms }) => (drafts && forward ? ms[DRAFT] / forward : 0);
  if (pace === "measured") return (step) => measuredMs(step.fed) + drafting(step) * measuredMs(1);
  if (pace === "projected") return (step) => gpuMs(step.fed) + drafting(step) * gpuMs(1);
  const unit = passMs(plain);
  return (step) => unit * (1 + drafting(step));
};

/**
 * Return the time of a pass if all cost the same: the mean of the plain lane's steps.
 * @param {Timed[]} plain
 */
const passMs = (plain) => meanStep(plain) || 1;

/**
 * Return by what factor a short race is slowed, so that it lasts about six seconds; 1 for a long one.
 * @param {number} length milliseconds
 */
export const slowing = (length) => (length > 0 ? Math.max(1, Math.round(SHORT_MS / length)) : 1);

/**
 * Return a time in the words of its clock.
 * @param {Pace} pace
 * @param {number} time milliseconds
 * @param {Timed[]} plain
 */
export const timeWords = (pace, time, plain) =>
  (pace === "passes" ? `${(time / passMs(plain)).toFixed(1)} passes` : `${(time / 1000).toFixed(2)} s`);

/**
 * Return how long a lane takes: passes as a measure of time, since it also has a number of passes of its own.
 * @param {Pace} pace
 * @param {number} time milliseconds
 * @param {Timed[]} plain
 */
export const durationWords = (pace, time, plain) => `${pace === "passes" ? "the time of " : ""}${timeWords(pace, time, plain)}`;

/**
 * Return what is assumed, in one sentence.
 * @param {Pace} pace
 * @param {string} plain what drafting is measured in
 */
export const paceSentence = (pace, plain) => {
  if (pace === "recorded") return "";
  const drafting = `drafting counts as the share of ${plain} that it took when recorded`;
  if (pace === "passes") return `Every pass of the target counts as one, however many rows it has; ${drafting}.`;
  if (pace === "measured") {
    const examples = [1, 8, 64].map((rows) => `${rows} ${rows > 1 ? "rows" : "row"} in ${measuredMs(rows).toFixed(2)} ms`);
    return `Passes take what they took on one ${MEASURED.device} on ${MEASURED.date}, with random weights in the shape of a `
      + `${MEASURED.shape} model, in bf16 after ${MEASURED.context.toLocaleString("en")} tokens: ${examples.join(", ")}; ${drafting}.`;
  }
  const { bytesPerSecond: bytes, operationsPerSecond: operations, name } = GPU;
  return `Projected, not measured: a pass of T rows takes ${gpuMs(1).toFixed(2)} ms × max(1, T / ${FREE_ROWS}), as for `
    + `${MODEL.name} on one ${name}, which reads its weights at ${bytes / 1e12} TB/s and computes at `
    + `${operations / 1e12} TFLOP/s; attention and all overhead are left out, and ${drafting}.`;
};
