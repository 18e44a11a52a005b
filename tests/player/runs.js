// Small runs for the tests, as viz/stream/play.py writes them.
import { RunRecord } from "../../assets/player/stream/record.js";

const SIZES = { i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array };

/** Numbers as the stream packs them; `shape` makes a matrix of them. */
export const pack = (values, dtype = "i2", shape = undefined) => {
  const bytes = new Uint8Array(SIZES[dtype].from(values).buffer);
  const packed = { dtype, bdata: Buffer.from(bytes).toString("base64") };
  return shape ? { ...packed, shape } : packed;
};

const JUDGED = ["accepted", "rejected", "matched", "twin"];
const FATES = ["Proposed", "Root", "Accepted", "Rejected", "Matched", "Explored", "Correction", "Bonus", "Inspired",
  "Prompt", "Own", "Twin"].map((label, code) => ({ fate: label.toLowerCase(), code, judged: JUDGED.includes(label.toLowerCase()),
  label, words: `${label}.`, colour: "$ink", symbol: `symbol-${code}` }));

/** The codes of these runs' fates. */
export const FATE = Object.fromEntries(FATES.map(({ label, code }) => [label.toUpperCase(), code]));

const HEADER = {
  method: "lookahead", label: "Lookahead", model: { name: "toy" }, sampling: { temperature: 0 }, lossless: true,
  prompt_length: 3, prefill_chunk: 512, record: "full", window: null,
};

export const playLine = ({ header = {}, views = [], ...rest } = {}) => ({
  kind: "play", header: { ...HEADER, ...header }, prompt: pack([1, 2, 3]), themes: { light: { ink: "#000" } },
  fates: FATES, views, ...rest,
});

/** A step's line: `nodes` are plain arrays of tokens, parents and fates, and whatever else is known of them. */
export const stepLine = ({ k = 0, nodes, ...rest } = {}) => ({
  kind: "step", k, start: 4, pending: 0, fed: 1, accepted: 0, drafted: 0, emitted: [], emitted_fates: [], branch: false,
  ms: [1, 2, 3, 4, 10], say: `Step ${k}.`, views: {},
  ...(nodes && { nodes: { ...packed(nodes) } }), ...rest,
});

const packed = ({ token, parent, fate, source = [], p, q, choice, inspired, row }) => ({
  token: pack(token, "i4"), parent: pack(parent), fate: { fates: pack(fate, "u1") }, source: pack(source, "u2"),
  ...(p && { p: pack(p, "f4") }), ...(q && { q: pack(q, "f4") }), ...(choice && { choice: pack(choice, "i4") }),
  ...(inspired && { inspired: pack(inspired, "u2") }), ...(row && { row: pack(row, "i1") }),
});

export const feed = (record, ...lines) => record.feed(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));

export const run = (play, ...lines) => {
  const record = new RunRecord();
  feed(record, playLine(play), ...lines);
  return record;
};
