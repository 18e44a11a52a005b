// Why a row of the mask sees what it sees, with the templates of the stream: the counterpart of
// viz/views/mask_words.py.
import { seenNodes } from "../stream/tree.js";
import { fillTemplate } from "./words.js";

/** @import { RunRecord } from "../stream/record.js" */
/** @import { Nodes, StepLine } from "../types.d.ts" */

const MOST_CELLS = 8;

/**
 * Row and column of a window's cell.
 * @param {string | undefined} source
 */
const cell = (source) => {
  const found = /^window:(\d{1,4}),(\d{1,4})$/.exec(source ?? "");
  return found ? [Number(found[1]), Number(found[2])] : [-1, -1];
};

/** @param {Nodes} nodes */
const isChain = (nodes) => nodes.parent.every((parent, node) => parent === node - 1);

/**
 * What a node sees of the text in front of the step's nodes.
 * @param {{ [name: string]: string }} words
 * @param {StepLine} step
 * @param {number} depth
 * @param {number | null | undefined} window
 */
const text = (words, step, depth, window) => {
  const last = depth ? step.start - 1 : step.start - 2;
  const first = window ? Math.max(0, step.start + depth - window) : 0;
  let name = first === 0 ? "text" : "window";
  if (last < 0) name = "begins";
  else if (first > last) name = "nothing";
  else if (depth && first === last) name = "root";
  return fillTemplate(words[name], { first, last, window });
};

/**
 * @param {RunRecord} record
 * @param {{ [name: string]: string }} words
 * @param {Nodes} nodes
 * @param {number[]} chosen
 */
const cells = (record, words, nodes, chosen) =>
  chosen.slice(0, MOST_CELLS).map((node) => record.visible(nodes.token[node])).join(" ")
    + (chosen.length > MOST_CELLS ? words.cut : "");

/**
 * What a node sees, and the reason; nothing where it is not known.
 * @param {RunRecord} record
 * @param {number} k
 * @param {number} node
 */
export const sees = (record, k, node) => {
  const nodes = record.nodes(k);
  const words = record.head.words?.mask;
  if (!nodes || !words) return [];
  const { window } = record.head.header;
  const near = seenNodes(nodes, node, window).filter((other) => other !== 0 && other !== node);
  const [row, column] = cell(nodes.source[node]);
  const parts = [text(words, record.steps[k], nodes.depth[node], window)];
  const upto = column - (row === 0 ? 1 : 0);
  /**
   * @param {string} name
   * @param {number[]} chosen
   */
  const add = (name, chosen) =>
    parts.push(fillTemplate(words[name], { column: upto, cells: cells(record, words, nodes, chosen) }));
  const level = near.filter((other) => cell(nodes.source[other])[0] === 0);
  const above = near.filter((other) => cell(nodes.source[other])[0] > 0);
  if (row >= 0 && level.length) add("level", level);
  if (row >= 0 && above.length) add("above", above);
  if (row < 0 && near.length) add("before", near);
  let reason = isChain(nodes) ? "chain" : "guess";
  if (node === 0) reason = "root";
  else if (row >= 0) reason = row === 0 ? "row 0" : "column";
  return [parts.join(words.join) + words.last + words.itself, words[`reason.${reason}`]];
};

/**
 * @param {RunRecord} record
 * @param {number} k
 * @param {number} node
 */
export const explain = (record, k, node) => {
  const [parts, reason] = sees(record, k, node);
  if (!parts) return "";
  const { token, depth } = record.nodesAt(k);
  return fillTemplate(record.head.words?.mask?.subject, {
    token: record.visible(token[node]), id: token[node], place: record.steps[k].start - 1 + depth[node], parts, reason,
  });
};
