// The rows of the tables of figures, by the kind that a view's base names: read off what the figure shows.
import { boardRows, cellRows } from "./board_rows.js";
import { chunks } from "./chunks.js";
import { allNodes, nodeRows } from "./node_rows.js";
import { points } from "./points.js";
import { slotRows } from "./slot_rows.js";
import { unescapeMarkup } from "../stream/escape.js";
import { FATE, isJudged } from "../stream/fates.js";
import { isRejection } from "../stream/jumps.js";
import { treeRows } from "../stream/tree.js";
import { fillTemplate } from "../text/words.js";

/** @import { Player } from "../player.js" */
/** @import { Asked, Figure, QuerySpec, Rows, TableRow, View } from "../types.d.ts" */

/**
 * @param {Player} player
 * @param {Asked} asked
 * @returns {Rows}
 */
export const figureRows = (player, { view, spec, figure }) => {
  switch (spec.kind) {
    case "queries": return queryRows(player, view, spec);
    case "branches": return branchRows(player, view);
    case "shares": return shareRows(player, view, figure());
    case "steps": return stepRows(player);
    case "slots": return slotRows(player, spec, figure());
    case "cells": return cellRows(player, spec, figure());
    case "board": return boardRows(player, spec, figure());
    default: return spec;
  }
};

/**
 * The attention mask: first the text that is still unread, chunk by chunk, then a row for every node.
 * @param {Player} player
 * @param {View} view
 * @param {QuerySpec} spec
 * @returns {Rows}
 */
const queryRows = (player, view, spec) => {
  const { record, state } = player;
  const { window } = record.head.header;
  const words = record.head.words?.mask ?? {};
  const sees = fillTemplate(window ? words["unread.window"] : words.unread, { window });
  /** @type {TableRow[]} */
  const unread = chunks(record, state.step).map(({ first, stop, name }) =>
    ({ cells: ["text", `${first} to ${stop - 1}`, player.fate(FATE.PROMPT).label, sees, name, null] }));
  const nodes = allNodes(player);
  const rows = [...unread, ...nodeRows(player, view, nodes.slice(0, spec.most))];
  return { rows: nodes.length ? rows : [], count: nodes.length ? unread.length + nodes.length : 0 };
};

/**
 * The tree: its nodes, and behind the accepted path the target's own token.
 * @param {Player} player
 * @param {View} view
 * @returns {Rows}
 */
const branchRows = (player, view) => {
  const { record, state } = player;
  const nodes = record.nodes(state.step);
  if (!nodes) return { rows: [] };
  const known = treeRows(nodes);
  const rows = nodeRows(player, view, allNodes(player).filter((node) => known[node] !== null));
  const own = record.emitted(state.step).findLast((token) => token.own);
  if (!own || !isJudged(state)) return { rows };
  const { token, fate, node } = own;
  const told = [record.visible(token), null, nodes.depth[node] + 1, node, "the target itself"];
  return { rows: [...rows, { cells: [...told, player.fate(fate).label, null, null] }] };
};

/**
 * The timeline, from the steps themselves: all that are known, as in the chart.
 * @param {Player} player
 * @returns {Rows}
 */
const stepRows = (player) => {
  const { ACCEPTED, CORRECTION, BONUS } = FATE;
  const headings = ["Step", "Accepted", "The target's own", "A guess was rejected", "Tokens read",
    ...["Forward", "Draft", "Accept", "Commit", "Other", "Whole"].map((part) => `${part} ms`)];
  const rows = player.record.steps.map((step, k) => {
    const own = step.emitted_fates.find((fate) => fate === CORRECTION || fate === BONUS);
    const accepted = step.emitted_fates.filter((fate) => fate === ACCEPTED).length;
    const [draft, forward, accept, commit, whole] = step.ms;
    const other = Math.max(0, whole - draft - forward - accept - commit);
    return { step: k, cells: [k, accepted, own === undefined ? "none" : player.fate(own).label,
      isRejection(step) ? "yes" : "no", step.pending && !k ? `${step.fed}, with the prompt` : step.fed,
      forward, draft, accept, commit, other, whole] };
  });
  return { headings, rows };
};

/**
 * Target against drafter: a row for every token that has a bar.
 * @param {Player} player
 * @param {View} view
 * @param {Figure} figure
 * @returns {Rows}
 */
const shareRows = (player, view, figure) => {
  const headings = ["Token", "p of the target", "q of the drafter", "Guessed at node", "Sign"];
  const { detail } = view.base;
  if (!detail) return { headings, rows: [] };
  const [target, names, said] = [detail.target, detail.names, detail.say].map((number) => figure.data[number]);
  const signs = points(player, figure, detail.marks);
  /** @param {number} row */
  const sign = (row) => signs.filter(({ y }) => y === row)
    .map(({ symbol }) => (symbol === "diamond" ? "taken" : "the guess")).join(", ");
  const rows = Array.from(names.text ?? [], (text, row) => {
    const node = target.customdata?.[row] ?? -1;
    const p = target.visible === false ? null : target.x?.[row];
    const q = names.customdata?.[row];
    return { node, cells: [unescapeMarkup(text), p, q, node < 0 ? null : node, sign(row)] };
  });
  const words = said.visible === false ? [] : Array.from(said.text ?? [], unescapeMarkup);
  return { headings, rows, say: words.filter(Boolean) };
};
