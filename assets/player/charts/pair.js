// Target against drafter at the pinned node: the counterpart of pair_detail in viz/views/pair.py, from the detail line.
import { cutText, escapeMarkup } from "../stream/escape.js";
import { FATE } from "../stream/fates.js";
import { seenNodes, siblings } from "../stream/tree.js";
import { fillTemplate } from "../text/words.js";

/** @import { RunRecord } from "../stream/record.js" */
/** @import { Header, Distribution, Nodes, Numbers, PairDetail, Patch, Spot, StepLine } from "../types.d.ts" */

const { ACCEPTED, REJECTED, MATCHED, EXPLORED, TWIN } = FATE;

/** @type {{ [fate: number]: string }} */
const JUDGED = {
  [ACCEPTED]: "accepted", [REJECTED]: "rejected", [MATCHED]: "right, but after a wrong one",
  [TWIN]: "accepted in another row",
};

/**
 * @typedef {[token: number, p: number]} Share
 * @typedef {{ top: Share[], best: Distribution, node: number, rivals: number[], said: number, drafter: Map<number, number>,
 *   most: number }} Choice
 * @typedef {{ token: number, p: number, q?: number, node: number, written: boolean, guessed: boolean }} PairRow a token's
 *   shares, the node where it was guessed, and whether it was written, or is the guess that is looked at
 * @typedef {{ rows: PairRow[], fate: number, say: string[] }} Pair
 */

/**
 * A guess's number in a column; null where none is known.
 * @param {Numbers | null} values
 * @param {number} node
 */
const known = (values, node) => (values && node > 0 && !Number.isNaN(values[node]) ? values[node] : null);

/**
 * A share as it is in the record: numbers of four bytes have no end behind its six digits.
 * @param {number} value
 */
const share = (value) => Math.round(value * 1e6) / 1e6;

/**
 * What the target took behind a node: what was written there, or what is likeliest.
 * @param {StepLine} step
 * @param {Nodes} nodes
 * @param {number} parent
 */
const taken = (step, nodes, parent) => {
  const at = nodes.path.findIndex((node) => nodes.place[node] === nodes.place[parent]);
  if (at >= 0 && at < step.emitted.length) return step.emitted[at];
  return nodes.choice ? nodes.choice[parent] : -1;
};

/**
 * The drafter's shares of tokens behind a node: of its guesses there, and of its best ones.
 * @param {Nodes} nodes
 * @param {Distribution} best
 * @param {number[]} rivals
 */
const drafterShares = (nodes, best, rivals) => {
  /** @type {Map<number, number>} */
  const shares = new Map();
  for (const guess of rivals) {
    const q = known(nodes.q, guess);
    if (q !== null && q > 0) shares.set(nodes.token[guess], share(q));
  }
  for (const [token, q] of best) shares.set(token, q);
  return shares;
};

/**
 * Tokens and the target's shares of them, the likeliest first: the guess itself, what was taken, the drafter's best,
 * and whatever else has the longest bars.
 * @param {Nodes} nodes
 * @param {Choice} choice
 * @returns {Share[]}
 */
const ranked = (nodes, { top, best, node, rivals, said, drafter, most }) => {
  /** @type {Map<number, number>} */
  const shares = new Map();
  for (const [token, , p] of best) shares.set(token, p);
  for (const [token, p] of top) shares.set(token, p);
  for (const guess of [node, ...rivals]) {
    const token = nodes.token[guess];
    const p = known(nodes.p, guess);
    if (p !== null && !shares.has(token)) shares.set(token, share(p));
  }
  const first = new Set([said, ...best.slice(0, 1).map(([token]) => token)]);
  if (node > 0) first.add(nodes.token[node]);
  /** @param {Share} share */
  const longest = ([token, p]) => Math.max(p, drafter.get(token) ?? 0);
  /** @param {Share} share */
  const leads = ([token]) => Number(first.has(token));
  const order = [...shares].sort((a, b) => leads(b) - leads(a) || longest(b) - longest(a) || a[0] - b[0]);
  return order.slice(0, most).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
};

/**
 * Why the target never came to a guess: the run was cut before it, or it hangs off a rejected one.
 * @param {StepLine} step
 * @param {Nodes} nodes
 * @param {number} node
 */
const never = (step, nodes, node) => {
  const way = nodes.path.map((at) => nodes.place[at]);
  const above = seenNodes(nodes, nodes.parent[node]).map((at) => nodes.place[at]);
  if (step.emitted.length === step.accepted && above.includes(way[way.length - 1])) return "cut";
  return way.includes(above[above.length - 1]) ? "" : "untried";
};

/**
 * @param {PairDetail["words"]} words
 * @param {Header} header
 * @param {StepLine} step
 * @param {Nodes} nodes
 * @param {number} node
 * @param {number} best
 */
const sentence = (words, header, step, nodes, node, best) => {
  const [p, q, fate] = [known(nodes.p, node), known(nodes.q, node) ?? 0, nodes.fate[node]];
  if (p === null) return words.none;
  const why = never(step, nodes, node);
  let kind = q ? (fate === REJECTED ? "residual" : "sampled") : "copied";
  if (fate === EXPLORED) kind = "explored";
  else if (!header.sampling?.temperature) kind = "greedy";
  else if (why && (header.lossless || why === "cut")) kind = why;
  else if (!header.lossless) kind = "typical";
  const keep = q ? Math.min(1, p / q) : p;
  return fillTemplate(words[kind], {
    fate: JUDGED[fate] ?? "", p: p.toFixed(3), best: Math.max(best, p).toFixed(3), keep: keep.toFixed(3),
  });
};

/**
 * Where what the target took stood in the drafter's distribution there or, where none is known, among the guesses.
 * @param {PairDetail} detail
 * @param {Nodes} nodes
 * @param {number[]} rivals
 * @param {number} said
 * @param {Distribution} best
 */
const rank = ({ words, ranks }, nodes, rivals, said, best) => {
  const liked = best.findIndex(([token]) => token === said);
  if (liked >= 0) return fillTemplate(words.liked, { rank: ranks[liked], q: best[liked][1].toFixed(3) });
  if (best.length) return fillTemplate(words.unliked, { count: best.length > 1 ? ` ${best.length}` : "" });
  if (!rivals.length) return "";
  const at = rivals.findIndex((guess) => nodes.token[guess] === said);
  return fillTemplate(words[at >= 0 ? "rank" : "missed"], { rank: at + 1, count: rivals.length });
};

/**
 * What is compared at a node; null where the alternatives are not known. An `own` token is the target's, no guess.
 * @param {RunRecord} record
 * @param {PairDetail} detail
 * @param {number} k
 * @param {{ node: number, own?: boolean }} spot
 * @returns {Pair | null}
 */
export const pairAt = (record, detail, k, { node: chosen, own = false }) => {
  const nodes = record.nodes(k);
  const top = record.details.get(k);
  if (!nodes || !top?.length || chosen < 0 || chosen >= nodes.count) return null;
  const step = record.steps[k];
  const parent = own ? chosen : Math.max(0, nodes.parent[chosen]);
  const node = own ? 0 : chosen;
  const rivals = siblings(nodes, parent);
  const best = (record.distributions.get(k)?.[parent] ?? []).slice(0, detail.ranks.length);
  const said = taken(step, nodes, parent);
  const drafter = drafterShares(nodes, best, rivals);
  const rows = ranked(nodes, { top: top[parent], best, node, rivals, said, drafter, most: detail.rows });
  const most = Math.max(0, ...top[parent].map(([, p]) => p));
  return {
    rows: rows.map(([token, p]) => ({
      token, p, q: drafter.get(token), node: rivals.find((guess) => nodes.token[guess] === token) ?? -1,
      written: token === said, guessed: node > 0 && token === nodes.token[node],
    })),
    fate: nodes.fate[node],
    say: [
      own ? detail.words.own : sentence(detail.words, record.head.header, step, nodes, node, most),
      rank(detail, nodes, rivals, said, best),
    ],
  };
};

/**
 * The patch of a pinned node, plain values; null where the alternatives are not known.
 * @param {RunRecord} record
 * @param {PairDetail} detail
 * @param {number} k
 * @param {Spot} pin
 * @returns {Patch | null}
 */
export const pairPatch = (record, detail, k, pin) => {
  const pair = pairAt(record, detail, k, pin);
  if (!pair) return null;
  const { rows } = pair;
  const drawn = rows.flatMap(({ q, node }, i) => (q === undefined ? [] : [{ q, node, i }]));
  /** @type {[x: number, row: number, symbol: string][]} */
  const signs = rows.flatMap(({ written }, i) => (written ? [[1.17, i, "diamond"]] : []));
  rows.forEach(({ guessed }, i) => guessed && signs.push([1.1, i, record.head.fates[pair.fate].symbol]));
  /** @type {{ [attribute: string]: unknown }[]} */
  const data = [];
  data[detail.target] = { x: rows.map(({ p }) => p), customdata: rows.map(({ node }) => node) };
  data[detail.draft] = {
    x: drawn.map(({ q }) => q), y: drawn.map(({ i }) => i + 0.2), customdata: drawn.map(({ node }) => node),
  };
  data[detail.names] = {
    y: rows.map((_, i) => i), text: rows.map(({ token }) => escapeMarkup(cutText(record.visible(token), 14))),
  };
  data[detail.marks] = {
    x: signs.map(([x]) => x), y: signs.map(([, y]) => y), sign: signs.map(([, , symbol]) => symbol),
  };
  data[detail.say] = { text: pair.say.map(escapeMarkup) };
  return { data };
};
