// The text as it is written: one span per token, marked by its fate; later tokens are hidden.
import { el } from "../dom/elements.js";
import { unpack } from "../stream/decode.js";
import { isJudged } from "../stream/fates.js";
import { joinTokens, tokenSpan, writePart } from "./tokens.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */
/** @import { Nodes, Spot } from "../types.d.ts" */

/** @typedef {{ span: HTMLElement, id: number, step: number, place: number, lends?: boolean }} Written */

/**
 * Return the first guess of a step, and down from it the first one after each.
 * @param {Nodes} nodes
 */
const firstBranch = ({ parent, explored, count }) => {
  const branch = [0];
  for (let node = 1; node < count; node += 1) {
    if (parent[node] === branch.at(-1) && !explored.has(node)) branch.push(node);
  }
  return branch.slice(1);
};

export class TextView {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.prompt = el("span", { class: "ss-prompt" });
    this.body = el("span", {});
    this.ghosts = el("span", { class: "ss-ghosts", "aria-hidden": "true" });
    this.node = el("div", { class: "ss-text", tabindex: 0, role: player.role, "aria-label": "The text" },
      this.prompt, this.body, this.ghosts);
    this.node.addEventListener("mouseover", (event) => this.over(event));
    this.node.addEventListener("mouseout", () => this.out());
    this.node.addEventListener("click", (event) => this.click(event));
    this.reset();
  }

  reset() {
    /** @type {number} */
    this.version = -1;
    /** @type {Written[]} of all steps */
    this.tokens = [];
    /** @type {number[]} by step: tokens up to and with it */
    this.ends = [];
    /** @type {number} tokens that are seen */
    this.until = 0;
    /** @type {Written[]} those whose characters are not whole yet on the screen */
    this.loose = [];
    /** @type {HTMLElement[]} */
    this.marked = [];
    /** @type {RunRecord["check"]} */
    this.checked = null;
    this.prompt.replaceChildren();
    this.body.replaceChildren();
    this.ghosts.replaceChildren();
  }

  /** @param {Set<string>} changed */
  update(changed) {
    const { record } = this.player;
    if (this.version !== record.version) {
      this.reset();
      this.version = record.version;
    }
    if (!record.play) return;
    if (changed.has("record")) this.grow();
    if (["record", "step", "phase", "withheld"].some((name) => changed.has(name))) this.show();
    if (["hover", "pin", "step", "phase"].some((name) => changed.has(name))) this.mark();
  }

  grow() {
    const { record } = this.player;
    if (!this.prompt.childNodes.length) {
      const row = Array.from(unpack(record.head.prompt), (id, place) =>
        ({ id, span: this.span(id, record.fates.prompt, { prompt: place }) }));
      joinTokens(record, row);
      this.prompt.append(...row.map(({ span }) => span));
    }
    /** @type {HTMLElement[]} */
    const made = [];
    const before = this.tokens.length;
    for (let k = this.ends.length; k <= record.last; k += 1) {
      record.steps[k].emitted.forEach((id, place) => {
        const { emitted_fates: fates, inspired } = record.steps[k];
        const span = this.span(id, fates[place], { at: this.tokens.length }, inspired?.includes(place));
        span.hidden = true;
        this.tokens.push({ span, id, step: k, place });
        made.push(span);
      });
      this.ends.push(this.tokens.length);
    }
    joinTokens(record, this.tokens, before);
    this.body.append(...made);
    this.near();
  }

  /**
   * @param {number} id
   * @param {number} fate
   * @param {{ [name: string]: number }} data
   * @param {boolean} [inspired]
   */
  span(id, fate, data, inspired) {
    const span = tokenSpan(this.player.record, id, fate, inspired);
    Object.assign(span.dataset, data);
    return span;
  }

  // Tokens that a plain second reading found at a near-tie, or not to be the target's choice.
  near() {
    const { record } = this.player;
    if (!record.check || this.checked === record.check) return;
    this.checked = record.check;
    for (const { position } of record.check.places ?? []) {
      this.tokens[position]?.span.classList.add(record.check.violations ? "ss-broken" : "ss-near");
    }
  }

  show() {
    const { state } = this.player;
    const whole = state.phase === "commit" ? state.step : state.step - 1;
    const until = whole < 0 ? 0 : (this.ends[whole] ?? this.tokens.length);
    for (let i = Math.min(until, this.until); i < Math.max(until, this.until); i += 1) {
      this.tokens[i].span.hidden = i >= until;
    }
    this.until = until;
    if (state.withheld) for (const { span } of this.tokens.slice(until)) span.remove();
    else if (this.body.childNodes.length < this.tokens.length) this.body.append(...this.tokens.map(({ span }) => span));
    this.loosen();
    this.showGhosts();
  }

  // Show the tokens of a character whose last token is still to come separately.
  loosen() {
    const { record } = this.player;
    if (this.loose.length) joinTokens(record, this.tokens, this.tokens.indexOf(this.loose[0]));
    this.loose = [];
    for (let at = this.until - 1; at >= 0 && this.until < this.tokens.length && this.tokens[at].lends; at -= 1) {
      this.loose.unshift(this.tokens[at]);
      writePart(record, this.tokens[at], null);
    }
  }

  // After the text come the guesses of this step: the draft's first branch before they are judged, then the accepted ones
  // and the missed ones, and once it is committed the missed ones alone.
  showGhosts() {
    const { record, state } = this.player;
    const nodes = record.nodes(state.step);
    const patch = record.steps[state.step]?.views?.text;
    if (!nodes || !patch) {
      this.ghosts.replaceChildren();
      return;
    }
    const judged = isJudged(state);
    const missed = patch.ghosts ? Array.from(unpack(patch.ghosts)) : [];
    const line = !judged ? firstBranch(nodes) : state.phase === "commit" ? missed : [...nodes.path.slice(1), ...missed];
    const row = line.map((node) => {
      const fate = record.seenFate(nodes.fate[node], judged), id = nodes.token[node];
      const span = tokenSpan(record, id, fate, nodes.inspired.has(node));
      span.dataset.node = String(node);
      return { span, id };
    });
    joinTokens(record, row);
    this.ghosts.replaceChildren(...row.map(({ span }) => span));
  }

  // Reads positions, which makes the browser lay the page out: once, after everything else.
  scroll() {
    const last = this.tokens[this.until - 1]?.span ?? this.prompt.lastChild;
    if (!(last instanceof HTMLElement) || !last.offsetParent) return;
    const box = this.node;
    const [top, bottom] = [last.offsetTop, last.offsetTop + last.offsetHeight]; // within the box, which is positioned
    const room = this.ghosts.childNodes.length ? 28 : 4;
    if (bottom + room > box.scrollTop + box.clientHeight) box.scrollTop = bottom + room - box.clientHeight;
    else if (top < box.scrollTop) box.scrollTop = Math.max(0, top - 8);
  }

  mark() {
    const { state } = this.player;
    for (const span of this.marked) span.classList.remove("ss-hovered", "ss-pinned");
    this.marked = [];
    for (const span of state.hover ? this.spansOf(state.hover) : []) this.markSpan(span, "ss-hovered");
    for (const span of state.pin ? this.spansOf(state.pin) : []) this.markSpan(span, "ss-pinned");
  }

  /**
   * @param {HTMLElement} span
   * @param {string} name
   */
  markSpan(span, name) {
    span.classList.add(name);
    this.marked.push(span);
  }

  /**
   * Return the spans of a node: the token that it became, and its ghost; or that of the target's own token there.
   * @param {Spot} spot
   */
  spansOf({ step, node, own = false }) {
    const { record, state } = this.player;
    /** @type {HTMLElement[]} */
    const found = [];
    if (record.nodes(step)) {
      record.emitted(step).forEach((each, place) => {
        const written = this.tokens[(this.ends[step - 1] ?? 0) + place];
        if (written && each.own === own && each.node === node) found.push(written.span);
      });
    }
    /** @type {HTMLElement | null} */
    const ghost = step === state.step && !own ? this.ghosts.querySelector(`[data-node="${Number(node)}"]`) : null;
    return ghost ? [...found, ghost] : found;
  }

  /**
   * Return what a span represents: a position of the prompt, or a node of a step, where one is known.
   * @param {EventTarget | null} target
   * @returns {{ prompt: number } | { step: number, place: number, node: number, own: boolean } | null}
   */
  at(target) {
    /** @type {HTMLElement | null} */
    const span = target instanceof Element ? target.closest(".ss-token") : null;
    if (!span || !this.node.contains(span)) return null;
    const { record, state } = this.player;
    if (span.dataset.node !== undefined) {
      return { step: state.step, place: -1, node: Number(span.dataset.node), own: false };
    }
    if (span.dataset.prompt !== undefined) return { prompt: Number(span.dataset.prompt) };
    const { step, place } = this.tokens[Number(span.dataset.at)];
    const { node, own } = record.emitted(step)[place];
    return { step, place, node, own };
  }

  /** @param {Event} event */
  over(event) {
    const at = this.at(event.target);
    if (!at) return;
    if (!("prompt" in at) && at.node >= 0) this.player.hover(at.step, at.node, event, at.own);
    else this.player.tooltip.rows(this.player.detail.emittedRows(at), event);
  }

  out() {
    this.player.hover(-1);
  }

  /** @param {Event} event */
  click(event) {
    const at = this.at(event.target);
    if (!at || "prompt" in at) return;
    if (at.node < 0) this.player.seek(at.step);
    else this.player.togglePin(at.step, at.node, at.own);
  }
}
