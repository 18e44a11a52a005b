// The roofline: the least time of a pass, by what it reads and computes. Nothing here is measured.
import { GPU } from "../../player/race/pace.js";
import { bestDraft, breakEven, speedUp } from "./drafting.js";

/** @import { Choices, Drafting, PassCost } from "./types.d.ts" */

/**
 * @typedef {object} Device from its data sheet: dense bfloat16 operations of the tensor cores
 * @property {string} id
 * @property {string} name
 * @property {number} bytesPerSecond
 * @property {number} operationsPerSecond
 * @property {number} memory bytes
 *
 * @typedef {object} Shape of a model
 * @property {string} id
 * @property {string} name
 * @property {number} vocabulary
 * @property {number} width
 * @property {number} inner
 * @property {number} layers
 * @property {number} heads
 * @property {number} headSize
 * @property {number} kvHeads
 *
 * @typedef {object} Load
 * @property {number} bits of a weight; they are multiplied in bfloat16, and so are keys and values stored
 * @property {number} context tokens of each text
 * @property {number} batch texts
 */

/** @type {Device[]} */
export const DEVICES = [
  { id: "h200", name: "NVIDIA H200 SXM", bytesPerSecond: 4.8e12, operationsPerSecond: 989e12, memory: 141e9 },
  { id: "h100", ...GPU, name: `NVIDIA ${GPU.name}`, memory: 80e9 },
  { id: "a100", name: "NVIDIA A100 80GB SXM", bytesPerSecond: 2.039e12, operationsPerSecond: 312e12, memory: 80e9 },
  { id: "l40s", name: "NVIDIA L40S", bytesPerSecond: 864e9, operationsPerSecond: 362e12, memory: 48e9 },
  { id: "a10", name: "NVIDIA A10", bytesPerSecond: 600e9, operationsPerSecond: 125e12, memory: 24e9 },
  { id: "l4", name: "NVIDIA L4", bytesPerSecond: 300e9, operationsPerSecond: 121e12, memory: 24e9 },
];

/** Those of benchmarks/gpu_shapes.py, by which passes were measured, and the largest of Llama 3.1 by its configuration. @type {Shape[]} */
export const SHAPES = [
  { id: "135M", name: "135M (SmolLM2)", vocabulary: 49152, width: 576, inner: 1536, layers: 30, heads: 9, headSize: 64, kvHeads: 3 },
  { id: "1B", name: "1B (Llama 3.2)", vocabulary: 128256, width: 2048, inner: 8192, layers: 16, heads: 32, headSize: 64, kvHeads: 8 },
  { id: "7B", name: "7B (Mistral)", vocabulary: 32000, width: 4096, inner: 14336, layers: 32, heads: 32, headSize: 128, kvHeads: 8 },
  { id: "13B", name: "13B (Llama 2)", vocabulary: 32000, width: 5120, inner: 13824, layers: 40, heads: 40, headSize: 128, kvHeads: 40 },
  { id: "70B", name: "70B (Llama 3.1)", vocabulary: 128256, width: 8192, inner: 28672, layers: 80, heads: 64, headSize: 128, kvHeads: 8 },
];

export const BITS = [16, 8, 4];
export const CONTEXTS = [0, 256, 1024, 4096, 16384, 65536, 131072];
export const BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/**
 * Return the weights that a pass reads: all but those of the words that go in, of which it reads a row a token.
 * @param {Shape} shape
 */
export const parameters = ({ vocabulary, width, inner, layers, heads, headSize, kvHeads }) => {
  const attention = 2 * width * heads * headSize + 2 * width * kvHeads * headSize;
  return layers * (attention + 3 * width * inner + 2 * width) + width * vocabulary + width;
};

/**
 * Return the bytes of the keys and values of one token.
 * @param {Shape} shape
 */
export const tokenBytes = ({ layers, kvHeads, headSize }) => 2 * 2 * layers * kvHeads * headSize;

/**
 * Return what a pass over some tokens of each text reads and computes.
 * @param {Shape} shape
 * @param {Load} load
 * @param {number} tokens
 */
export const work = (shape, { bits, context, batch }, tokens) => ({
  bytes: (parameters(shape) * bits) / 8 + batch * (context + tokens) * tokenBytes(shape),
  operations: batch * tokens * (2 * parameters(shape) + 4 * shape.layers * shape.heads * shape.headSize * (context + tokens)),
});

/**
 * Return the seconds of a pass: as long as the slower of reading and computing takes, each at its best.
 * @param {Device} device
 * @param {Shape} shape
 * @param {Load} load
 * @param {number} tokens
 */
export const passSeconds = (device, shape, load, tokens) => {
  const { bytes, operations } = work(shape, load, tokens);
  return Math.max(bytes / device.bytesPerSecond, operations / device.operationsPerSecond);
};

/**
 * Return c(T) by the roofline.
 * @param {Device} device
 * @param {Shape} shape
 * @param {Load} load
 * @returns {PassCost}
 */
export const rooflineCost = (device, shape, load) => (tokens) =>
  passSeconds(device, shape, load, tokens) / passSeconds(device, shape, load, 1);

/**
 * Return whether weights and texts fit into the device's memory.
 * @param {Device} device
 * @param {Shape} shape
 * @param {Load} load
 */
export const fits = (device, shape, load) => work(shape, load, 1).bytes <= device.memory;

/**
 * @param {Shape} shape
 * @param {Load} load
 */
export const gigabytes = (shape, load) => Math.round(work(shape, load, 1).bytes / 1e9);

/**
 * Return the first batch from which on drafting is slower than none, of those that the page offers; null if there is none.
 * @param {Device} device
 * @param {Shape} shape
 * @param {Load} load
 * @param {Drafting} drafting
 */
export const losesFrom = (device, shape, load, drafting) => {
  const lost = BATCHES.map((batch) => speedUp(rooflineCost(device, shape, { ...load, batch }), drafting) < 1);
  const last = lost.lastIndexOf(false);
  return last === BATCHES.length - 1 ? null : BATCHES[last + 1];
};

/** @param {Pick<Choices, "gpu" | "model">} choices */
export const chosenDevice = ({ gpu, model }) => ({
  device: DEVICES.find(({ id }) => id === gpu) ?? DEVICES[0], shape: SHAPES.find(({ id }) => id === model) ?? SHAPES[0],
});

/**
 * Return in words what the roofline shows for a draft.
 * @param {Device} device
 * @param {Shape} shape
 * @param {Load} load
 * @param {Drafting} drafting
 */
export const rooflineSentences = (device, shape, load, drafting) => {
  const cost = rooflineCost(device, shape, load), tokens = drafting.draft + 1;
  const faster = speedUp(cost, drafting), needed = breakEven(cost, drafting), from = losesFrom(device, shape, load, drafting);
  const best = bestDraft(cost, drafting);
  const { bytes, operations } = work(shape, load, tokens);
  const computes = operations / device.operationsPerSecond > bytes / device.bytesPerSecond;
  const first = `Projected for ${shape.id} on ${device.name} with a batch of ${load.batch}: a pass over ${tokens} tokens of each text costs `
    + `${cost(tokens).toFixed(2)} times as much as one over a single token, and ${computes ? "computing" : "memory"} limits it.`;
  const pays = Number(faster.toFixed(2)) > 1 ? `The draft above makes decoding ${faster.toFixed(2)} times as fast.`
    : Number(best.speedup.toFixed(2)) > 1 ? `The draft above makes decoding ${faster.toFixed(2)} times as fast; ${best.draft} guess${best.draft === 1 ? "" : "es"} a step `
      + `would be best: ${best.speedup.toFixed(2)} times.`
      : `Do not speculate here: the draft above makes decoding ${faster.toFixed(2)} times as fast${needed === null ? ", and no acceptance would change that" : ""}.`;
  const batches = from === null ? `This draft pays at every batch up to ${BATCHES[BATCHES.length - 1]}.`
    : from === 1 ? "This draft loses at every batch." : `This draft loses from a batch of ${from} on.`;
  const room = fits(device, shape, load) ? [] : [`Weights and texts take ${gigabytes(shape, load)} GB, more than the `
    + `${device.memory / 1e9} GB of the device.`];
  return [first, pays, batches, ...room];
};
