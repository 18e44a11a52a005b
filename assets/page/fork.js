// A branch beside the run that it comes from: the differences from the position where it leaves that run.
import { el } from "../player/dom/elements.js";
import { joinedText } from "../player/text/tokens.js";

/** @import { RunRecord } from "../player/stream/record.js" */
/** @import { Fork } from "../player/types.d.ts" */

const BEFORE = 24; // tokens of the common text that are shown

/**
 * The fields of an address that name a branch.
 * @param {Fork} fork
 */
export const forkQuery = (fork) => {
  if ("node" in fork) return `branch=${fork.step}n${fork.node}`;
  return String(new URLSearchParams({ branch: `${fork.step}k${fork.keep}`, force: fork.text }));
};

/**
 * The same fields of an address that was opened; "" if it names none.
 * @param {URLSearchParams} query
 */
export const forkIn = (query) => {
  const named = /** @type {[string, string][]} */ (["branch", "force"].map((name) => [name, query.get(name)]));
  const given = named.filter(([, value]) => value !== null);
  return query.has("branch") ? String(new URLSearchParams(given)) : "";
};

/**
 * Return the branch in a run's first line, if it branches from the run of this id.
 * @param {RunRecord} record
 * @param {string | undefined} run
 */
export const branchOf = (record, run) => {
  const branch = record.play?.header.branch;
  return branch && branch.run === run ? branch : null;
};

/**
 * Compare both texts from that position on, and their steps.
 * @param {RunRecord} one
 * @param {RunRecord} other
 */
export const difference = (one, other) => {
  const branch = other.play?.header.branch;
  if (!branch) return [];
  const [was, is] = [written(one), [...branch.forced, ...written(other)]];
  const ours = was.slice(branch.at);
  const same = one.end && other.end ? commonEnd(ours, is) : 0;
  const before = was.slice(Math.max(0, branch.at - BEFORE), branch.at);
  return [
    el("p", { class: "app-common" }, branch.at > BEFORE ? "… " : "", joinedText(one, before)),
    el("div", { class: "app-ways" },
      way("As it was", one, ours, 1, same), way("What if", other, is, branch.forced.length, same)),
    counters(one, other, branch.step, ours.length),
  ];
};

/**
 * @param {string} label
 * @param {RunRecord} record
 * @param {number[]} tokens
 * @param {number} first how many of them are where both part
 * @param {number} same how many at the end both have
 */
const way = (label, record, tokens, first, same) => el("section", {}, el("h4", {}, label),
  el("p", {}, el("mark", {}, joinedText(record, tokens.slice(0, first))),
    joinedText(record, tokens.slice(first, tokens.length - same)),
    same > 0 && el("span", { class: "app-same", title: "The same in both" },
      joinedText(record, tokens.slice(tokens.length - same)))));

/**
 * @param {RunRecord} one
 * @param {RunRecord} other
 * @param {number} step where the branch leaves the first run
 * @param {number} tokens that the first run wrote from there on
 */
const counters = (one, other, step, tokens) => {
  const after = other.steps.reduce((sum, each) => sum + each.emitted.length, 0);
  const steps = [one.steps.length - step, other.steps.length];
  /** @param {RunRecord} record */
  const speed = (record) => {
    const rate = record.end?.summary?.tokens_per_second;
    return typeof rate === "number" ? rate.toFixed(0) : "–";
  };
  const rows = [
    ["Tokens written from here", String(tokens), String(after)],
    ["Steps from here", ...steps.map(String)],
    ["Tokens per step", ...[tokens, after].map((count, at) => (steps[at] ? (count / steps[at]).toFixed(2) : "–"))],
    ["Tokens a second, whole run", speed(one), speed(other)],
  ];
  return el("table", { class: "app-counters" },
    el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col" }, "As it was"), el("th", { scope: "col" }, "What if"))),
    el("tbody", {}, ...rows.map(([name, before, now]) =>
      el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, before), el("td", {}, now)))));
};

/**
 * All new tokens of a run.
 * @param {RunRecord} record
 */
export const written = (record) => record.steps.flatMap((step) => step.emitted);

/**
 * How many tokens both end with.
 * @param {number[]} one
 * @param {number[]} other
 */
const commonEnd = (one, other) => {
  let count = 0;
  while (count < Math.min(one.length, other.length) - 1 && one.at(-1 - count) === other.at(-1 - count)) count += 1;
  return count;
};
