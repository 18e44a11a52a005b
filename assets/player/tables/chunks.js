/** @import { RunRecord } from "../stream/record.js" */

const MOST_CHUNKS = 400;

/** @typedef {{ first: number, stop: number, name: string }} Chunk */

/**
 * The places of a step's unread tokens, chunk by chunk: the counterpart of chunks in viz/cache_slots.py.
 * @param {RunRecord} record
 * @param {number} k
 */
export const chunks = (record, k) => {
  const { start, pending } = record.steps[k];
  const root = start - 1;
  const size = Math.max(1, record.head.header.prefill_chunk, Math.ceil(pending / MOST_CHUNKS));
  /** @type {Chunk[]} */
  const found = [];
  for (let first = root - pending; first < root; first += size) {
    found.push({ first, stop: Math.min(first + size, root), name: `chunk ${found.length + 1}` });
  }
  return found.length > 1 ? found : found.map((chunk) => ({ ...chunk, name: "unread text" }));
};
