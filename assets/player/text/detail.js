// The facts on one token: as a tooltip under the pointer, and as a pane for the pinned token. The pane is over the page,
// so that nothing moves when it appears, and can show the facts of a step as well.
import { button } from "../dom/buttons.js";
import { el, facts, show, write } from "../dom/elements.js";
import { unpack } from "../stream/decode.js";
import { isAnswered, isJudged } from "../stream/fates.js";
import { sentence } from "./status.js";
import { specialWord } from "./special.js";
import { isBytes } from "./tokens.js";
import { WhatIf } from "./what_if.js";
import { milliseconds, probability, stepName } from "./words.js";

/** @import { Facts } from "../dom/elements.js" */
/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */
/** @import { Nodes, Spot, StepLine } from "../types.d.ts" */

export class Detail {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.chip = el("button", { type: "button", class: "ss-chip", onclick: () => player.release() });
    this.list = el("dl", { class: "ss-facts" });
    this.why = el("p", { class: "ss-why" });
    this.best = el("div", { class: "ss-best" });
    this.title = el("h3", {});
    this.whatIf = new WhatIf(player);
    this.walk = el("div", { class: "ss-walk", role: "group", "aria-label": "Nodes of the step" },
      button("back", "Previous node", () => this.step(-1)), button("forward", "Next node", () => this.step(1)));
    this.close = button("close", "Close", () => player.release(), { key: "Esc" });
    this.pane = el("aside", { class: "ss-detail", "aria-label": "Details" },
      el("div", { class: "ss-detail-head" }, this.title, this.chip, this.walk, this.close), this.why,
      this.whatIf.node, el("div", { class: "ss-detail-body" }, this.list, this.best));
    this.node = el("div", { class: "ss-aside", hidden: true }, this.pane); // holds its place on the screen
    this.chip.hidden = true;
    /** @type {Element | null} the view that a token was last pressed in */
    this.from = null;
    /** @type {Element | null} the view that the pane is below, instead of over the page */
    this.above = null;
  }

  /** @param {Set<string>} changed */
  update(changed) {
    if (!["step", "phase", "pin", "facts", "record", "detail", "withheld", "asking"].some((name) => changed.has(name))) return;
    const { record, state } = this.player;
    const nodes = state.pin ? record.nodes(state.pin.step) : record.nodes(state.step);
    const pinned = Boolean(state.pin && nodes && state.pin.node < nodes.count);
    const seen = pinned || (state.facts && state.step >= 0);
    show(this.node, seen);
    show(this.chip, pinned);
    show(this.close, !pinned);
    show(this.walk, Boolean(nodes));
    if (!seen) return;
    this.whatIf.update(pinned && nodes && state.pin && this.judged(state.pin.step) ? state.pin : null);
    if (pinned && nodes && state.pin) this.drawPin(nodes, state.pin);
    else this.drawStep();
  }

  /** @param {EventTarget | null} target of a press */
  pressed(target) {
    if (target instanceof Element) this.from = target.closest(".ss-card") ?? this.from;
  }

  // The pane changes its side rather than cover what it tells of: the view where a token was pressed, and what is
  // pinned in any other. A view as wide as the page has it below.
  avoid() {
    const { root, state } = this.player;
    const view = !state.full && this.from?.isConnected ? this.from : null;
    if (this.node.hidden || (view && view === this.above)) return;
    this.place(null);
    const rects = [...root.querySelectorAll(".ss-piece.ss-pinned, .ss-mark-pinned[d]"), ...(view ? [view] : [])]
      .map((each) => each.getBoundingClientRect());
    const covers = () => {
      const { left, right, top, bottom } = this.pane.getBoundingClientRect();
      return rects.some((its) => its.left < right && its.right > left && its.top < bottom && its.bottom > top);
    };
    if (covers()) this.node.classList.add("ss-at-left");
    if (view && covers()) this.place(view);
  }

  /** @param {Element | null} view that it is below; null: over the page, at the right */
  place(view) {
    const { activeElement: focused } = document;
    this.above = view;
    this.node.classList.remove("ss-at-left");
    this.node.classList.toggle("ss-below", view !== null);
    const home = this.player.root.querySelector(".ss-body");
    if (view) view.after(this.node);
    else if (home && this.node !== home.lastElementChild) home.append(this.node);
    if (focused instanceof HTMLElement && this.node.contains(focused)) focused.focus({ preventScroll: true });
    if (!view) return;
    // As much of it is brought into sight as leaves the view there.
    const { transport, legend } = this.player;
    const over = Number(transport.bar.parentElement?.offsetHeight) + legend.node.offsetHeight; // stays at the top
    const hidden = this.pane.getBoundingClientRect().bottom + 8 - innerHeight;
    scrollBy({ top: Math.max(0, Math.min(hidden, view.getBoundingClientRect().top - over)) });
  }

  /**
   * @param {Nodes} nodes
   * @param {Spot} pin
   */
  drawPin(nodes, pin) {
    const { record } = this.player;
    const { step, node, own } = pin;
    if (!record.details.has(step)) this.player.fetch.ask("detail", step);
    write(this.title, own ? `Target's own token of step ${step}` : `Node ${node} of step ${step}`);
    write(this.chip, `Pinned ${this.named(nodes, pin)} – press to release (Esc)`);
    this.list.replaceChildren(...facts(this.about(pin, true)));
    write(this.why, this.player.state.asking ? "" : record.sees(step, node));
    this.drawBest(nodes, pin);
  }

  /**
   * @param {Nodes} nodes
   * @param {Spot} pin
   */
  named(nodes, { step, node, own }) {
    const { record } = this.player;
    if (!own) return quoted(record, nodes.token[node]);
    if (!this.judged(step)) return "the target's own token";
    return `${quoted(record, record.ownAt(step).token)}, the target's own token after ${quoted(record, nodes.token[node])}`;
  }

  /**
   * Return true if it may be shown what became of a step.
   * @param {number} k
   */
  judged(k) {
    const { state } = this.player;
    return k !== state.step || isJudged(state);
  }

  /**
   * Return true if the target's answers to a step may be shown.
   * @param {number} k
   */
  answered(k) {
    const { state } = this.player;
    return k !== state.step || isAnswered(state);
  }

  drawStep() {
    const { record, state } = this.player;
    const step = record.steps[state.step];
    write(this.title, step ? `Step ${stepName(state.step)}` : "Details");
    write(this.why, step ? sentence(step, state) : "");
    this.best.replaceChildren();
    if (!step) return this.list.replaceChildren();
    return this.list.replaceChildren(...facts(stepRows(step, isJudged(state))));
  }

  /**
   * Return the facts on the hovered or pinned token. Before the target has judged, none of its answers is shown.
   * @param {Spot} spot
   * @param {boolean} [whole]
   * @returns {Facts}
   */
  about({ step, node, own }, whole) {
    if (!own) return this.rows(step, node, whole);
    if (!this.judged(step)) return [["Token", "not chosen yet"]];
    return this.emittedRows({ step, place: this.player.record.ownAt(step).place, node }, whole);
  }

  /**
   * Return what a token is, where its text alone does not say it.
   * @param {number} id
   * @returns {Facts}
   */
  naming(id) {
    const { record } = this.player;
    /** @type {Facts} */
    const rows = [["Token", record.visible(id)]];
    const special = specialWord(record, id);
    if (special) rows.push(["Special token", special]);
    if (isBytes(record.raw(id))) rows.push(["Bytes", "part of a character that several tokens encode"]);
    return rows;
  }

  /**
   * Return where the target chose a token itself.
   * @param {number} k
   * @param {number} node
   * @returns {[string, string]}
   */
  decided(k, node) {
    const { record } = this.player;
    return ["Decided at", `${node ? `node ${node}` : "the root"}, ${quoted(record, record.nodesAt(k).token[node])}`];
  }

  /**
   * @param {number} k
   * @param {number} node
   * @param {boolean} [whole]
   * @returns {Facts}
   */
  rows(k, node, whole) {
    const { record } = this.player;
    const nodes = record.nodesAt(k);
    const step = record.steps[k];
    const judged = this.judged(k), answered = this.answered(k);
    const fate = this.player.fate(record.seenFate(nodes.fate[node], judged));
    // Where tokens are drawn, the likeliest need not be what was written.
    const drawn = Number(record.head.header.sampling?.temperature ?? 0) > 0;
    /** @type {Facts} */
    const rows = this.naming(nodes.token[node]);
    rows.push(["Fate", whole ? `${fate.label}: ${fate.words}` : fate.label]);
    const helped = nodes.inspired.has(node) ? ", inspired or refined" : "";
    rows.push(["Where from", (nodes.source[node] ?? "") + helped]);
    const parent = nodes.parent[node];
    if (answered && nodes.choice && parent >= 0 && nodes.choice[parent] !== nodes.token[node]) {
      rows.push([drawn ? "Target's likeliest" : "Target's choice", record.visible(nodes.choice[parent])]);
    }
    if (answered) rows.push(...chances(nodes, node, judged));
    if (whole || parent < 0) rows.push(["Token id", String(nodes.token[node])]);
    rows.push(["Position", String(step.start - 1 + nodes.depth[node])]);
    if (!whole) return rows;
    rows.push(["Depth", String(nodes.depth[node])]);
    if (nodes.readers[node]) rows.push(["Read by", readers(nodes.readers[node])]);
    if (answered && nodes.choice) {
      rows.push([drawn ? "Likeliest next" : "Target's next token", record.visible(nodes.choice[node])]);
    }
    return rows;
  }

  /**
   * Return the same for a token that no guess brought: the prompt's, or the target's own.
   * @param {{ prompt: number } | { step: number, place: number, node: number }} at
   * @returns {Facts}
   */
  emittedRows(at, whole = false) {
    const { record } = this.player;
    /** @param {number} code */
    const fate = (code) => this.player.fate(code);
    if ("prompt" in at) {
      const id = unpack(record.head.prompt)[at.prompt];
      return [...this.naming(id), ["Fate", fate(record.fates.prompt).label], ["Token id", String(id)],
        ["Position", String(at.prompt)]];
    }
    const step = record.steps[at.step];
    const id = step.emitted[at.place];
    const { label, words } = fate(step.emitted_fates[at.place]);
    return [...this.naming(id), ["Fate", whole ? `${label}: ${words}` : `${label}, step ${at.step}`],
      ...(at.node >= 0 ? [this.decided(at.step, at.node)] : []),
      ["Token id", String(id)], ["Position", String(step.start + at.place)]];
  }

  /**
   * Return what the target would have put in the token's place: asked for when it is pinned.
   * @param {Nodes} nodes
   * @param {Spot} pin
   */
  drawBest(nodes, { step: k, node, own }) {
    const { record } = this.player;
    const [parent, token] = own ? [node, record.ownAt(k).token] : [nodes.parent[node], nodes.token[node]];
    const best = record.details.get(k)?.top[parent];
    if (!(own ? this.judged(k) : this.answered(k)) || parent < 0 || record.head.header.record !== "full") return this.best.replaceChildren();
    if (!best?.length) return this.best.replaceChildren();
    const parts = [el("h4", {}, "The target's best tokens here"), this.bars(best, token)];
    const left = own || !this.judged(k) ? undefined : record.details.get(k)?.left?.[node];
    if (left) parts.push(el("h4", {}, "The next token is drawn from max(0, p - q)"), this.bars(left, record.own(k)?.token));
    return this.best.replaceChildren(...parts);
  }

  /**
   * Return tokens with a bar for the share of each.
   * @param {[id: number, share: number][]} rows
   * @param {number | undefined} marked the token that is marked
   */
  bars(rows, marked) {
    return el("ol", {}, ...rows.map(([id, share]) => {
      const bar = el("i", {});
      bar.style.width = `${(share * 100).toFixed(1)}%`;
      return el("li", { class: id === marked ? "ss-same" : null },
        el("span", { class: "ss-mono" }, this.player.record.visible(id)), el("b", {}, bar), el("span", {}, probability(share)));
    }));
  }

  /** @param {1 | -1} direction */
  step(direction) {
    const { record, state } = this.player;
    const k = state.pin?.step ?? state.step;
    const count = record.nodesAt(k).count + (record.own(k) ? 1 : 0);
    const at = state.pin ? record.number(state.pin) : direction > 0 ? -1 : count;
    const next = record.spot(k, ((at ?? 0) + direction + count) % count);
    if (next) this.player.pin(k, next.node, next.own);
  }
}

/**
 * Return the processes that read a node; the choice of the first counts.
 * @param {string} ranks
 */
const readers = (ranks) => {
  const several = ranks.split(", ");
  return several.length > 1 ? `ranks ${ranks}; the choice of ${several[0]} counts` : `rank ${ranks}`;
};

/**
 * Return what a step did, and how long it took; nothing of the verdict before it is shown.
 * @param {StepLine} step
 * @param {boolean} judged
 * @returns {Facts}
 */
const stepRows = (step, judged) => {
  /** @type {Facts} */
  const rows = [["Guesses", String(step.drafted)]];
  const own = Math.max(0, step.emitted.length - step.accepted);
  const written = own ? `${step.emitted.length}, ${own} of them the target's own` : String(step.emitted.length);
  if (judged) rows.push(["Accepted", String(step.accepted)], ["Tokens written", written]);
  rows.push(["Tokens the target processed", step.pending ? `${step.fed}, ${step.pending} of them pending` : String(step.fed)]);
  if (step.experts !== undefined) rows.push(["Experts read in a layer", String(step.experts)]);
  const [draft, forward, accept, commit, total] = step.ms.map(milliseconds);
  if (judged) rows.push(["Time", total], ["by phase", `draft ${draft}, forward ${forward}, accept ${accept}, commit ${commit}`]);
  return rows;
};

/**
 * @param {RunRecord} record
 * @param {number} id
 */
const quoted = (record, id) => `“${record.visible(id)}”`;

/**
 * @param {Nodes} nodes
 * @param {number} node
 * @param {boolean} judged
 */
const chances = (nodes, node, judged) => {
  const [p, q] = [nodes.p?.[node] ?? NaN, nodes.q?.[node] ?? NaN];
  /** @type {Facts} */
  const rows = [];
  if (!Number.isNaN(p)) rows.push(["p, the target's", probability(p)]);
  if (!Number.isNaN(q)) rows.push(["q, the drafter's", probability(q)]);
  if (!Number.isNaN(p) && q > 0) rows.push(["min(1, p/q)", probability(Math.min(1, p / q))]);
  const u = nodes.u?.[node] ?? NaN;
  if (judged && !Number.isNaN(u)) rows.push(["u, drawn", `${probability(u)}, ${nodes.path.includes(node) ? "below min(1, p/q)" : "not below min(1, p/q)"}`]);
  return rows;
};
