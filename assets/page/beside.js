// A second player beside the first, for example for the same run with another setting. The first one moves both.
import { el, write } from "../player/dom/elements.js";
import { Player } from "../player/player.js";
import { firstDifference } from "../player/race/results.js";
import { branchOf, difference, written } from "./fork.js";
import { factsIn } from "./streams.js";
import { settingName } from "../player/text/status.js";

/** @import { RunRecord } from "../player/stream/record.js" */
/** @import { BranchOf, Header, Source } from "../player/types.d.ts" */
/** @import { RunFacts, RunLine } from "./types.d.ts" */

export class Beside {
  /**
   * @param {HTMLElement} stage that holds the first player
   * @param {Player} lead
   * @param {string | undefined} run
   * @param {{ source: (run: () => string | undefined) => Source, close: () => void, alone: () => void, of?: string }} host
   * `of` is the first run
   */
  constructor(stage, lead, run, { source, close, alone, of }) {
    this.stage = stage;
    this.lead = lead;
    /** @type {RunFacts} */
    this.facts = { run };
    this.open = ""; // the views of the first player, of which this one opens the same
    this.of = of;
    this.drawn = ""; // of the difference
    this.difference = el("div", { class: "app-difference", hidden: true });
    this.verdict = el("p", { class: "app-verdict", role: "status" });
    const place = el("div", {});
    this.head = el("div", { class: "app-beside-head" }, this.verdict,
        el("button", { type: "button", class: "app-button", onclick: alone }, "Open alone"),
        el("button", { type: "button", class: "app-button app-beside-close", onclick: close }, "Close"));
    this.node = el("section", { class: "app-beside", "aria-label": "The run beside it" }, this.head, place);
    stage.append(this.node);
    stage.after(this.difference);
    stage.classList.add("app-two");
    this.player = new Player(place, { source: source(() => this.facts.run), follower: true });
    this.player.root.addEventListener("keydown", (event) => this.pass(event));
    this.sized = new ResizeObserver(() => this.align());
    for (const { root } of [lead, this.player]) this.sized.observe(root);
  }

  // Equal parts of both players are at the same height: the parts above them are as high as the higher of both.
  align() {
    const bar = /** @type {HTMLElement} */ (this.lead.transport.bar.parentElement);
    const abreast = this.node.offsetTop === this.lead.element.offsetTop;
    /** @param {Player} player */
    const parts = ({ status, conclusion, stage, cards }) => [status.notice, conclusion.node, stage.node, cards.tabs];
    const ours = [bar, ...parts(this.lead)], theirs = [this.head, ...parts(this.player)];
    for (const pair of ours.map((node, i) => [node, theirs[i]])) {
      for (const node of pair) node.style.minHeight = "";
      const [one, other] = pair.map((node) => node.offsetHeight);
      if (abreast && one && other && one !== other) pair[one < other ? 0 : 1].style.minHeight = `${Math.max(one, other)}px`;
    }
  }

  /**
   * Its keys are the first player's.
   * @param {KeyboardEvent} event
   */
  pass(event) {
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    const again = new KeyboardEvent("keydown", { key, shiftKey, ctrlKey, metaKey, altKey, cancelable: true, bubbles: true });
    if (!this.lead.root.dispatchEvent(again)) event.preventDefault();
  }

  /** @param {RunLine[]} lines */
  feed(lines) {
    Object.assign(this.facts, factsIn(lines));
    this.player.feed(lines);
    this.judge();
    if (!this.player.record.live) this.follow();
  }

  // Go to where as much of the text is written as in the first; and to the end when that is at its own.
  follow() {
    const { record, state } = this.lead;
    const { player } = this;
    const step = record.steps[state.step];
    if (!step || player.record.last < 0) return;
    const further = state.phase === "commit" ? step.emitted.length - 1 : 0;
    const begun = step.start - record.head.header.prompt_length + further - this.headStart;
    const ended = state.step === record.last && state.phase === "commit" && !record.live;
    if (ended) player.seek(player.record.last);
    else if (begun < 0) player.seek(0, "propose");
    else player.seekToken(begun, state.phase);
    const open = [...state.open, state.view].join();
    if (open !== this.open) {
      this.open = open;
      const has = (/** @type {string} */ name) => player.cards.buttons.has(name);
      const view = state.view && has(state.view) ? state.view : null;
      player.change({ open: new Set([...state.open].filter(has)), view });
    }
  }

  // How many new tokens of the first run come before those of a branch of it.
  get headStart() {
    const branch = branchOf(this.player.record, this.of);
    return branch ? branch.at + branch.forces : 0;
  }

  judge() {
    const [one, other] = [this.lead.record, this.player.record];
    const branch = branchOf(other, this.of);
    write(this.verdict, branch ? whatIf(one, other, branch) : verdict(one, other));
    const now = branch ? `${one.last} ${other.last} ${Boolean(one.end)} ${Boolean(other.end)}` : "";
    if (now === this.drawn) return;
    this.drawn = now;
    this.difference.replaceChildren(...difference(one, other));
    this.difference.hidden = false;
  }

  destroy() {
    this.sized.disconnect();
    for (const node of [this.lead.transport.bar.parentElement, this.lead.stage.node, this.lead.cards.tabs, this.lead.status.notice]) {
      if (node) node.style.minHeight = "";
    }
    this.player.destroy();
    this.node.remove();
    this.difference.remove();
    this.stage.classList.remove("app-two");
  }
}

/**
 * Describe the difference between two runs, and its effect.
 * @param {RunRecord} one
 * @param {RunRecord} other
 */
export const verdict = (one, other) => {
  if (!one.play || !other.play) return "";
  const changed = changes(one.head.header, other.head.header).join(", ") || "The same settings";
  if (!one.end || !other.end) return changed;
  const [before, after] = [one, other].map(({ steps }) => steps.length);
  const first = firstDifference(written(one), written(other));
  const text = first < 0 ? "the same text" : `another text from token ${first + 1} on`;
  const steps = after === before ? `${after} steps as before` : `${after} steps instead of ${before}`;
  return `${changed}: ${steps}, ${text}.`;
};

/**
 * Describe what a branch wrote instead.
 * @param {RunRecord} one
 * @param {RunRecord} other
 * @param {BranchOf} branch
 */
const whatIf = (one, other, branch) => {
  /** @param {RunRecord} record @param {number[]} tokens */
  const quoted = (record, tokens) => `“${tokens.map((token) => record.visible(token)).join("")}”`;
  const was = written(one).slice(branch.at, branch.at + 1);
  const instead = was.length ? ` instead of ${quoted(one, was)}` : "";
  const outcome = one.end && other.end ? ` ${other.steps.length} steps instead of ${one.steps.length - branch.step}.` : "";
  return `What if step ${branch.step} had written ${quoted(other, branch.forced)}${instead}?${outcome}`;
};

/**
 * The settings that differ, as "Window size (W) 4 → 7".
 * @param {Header} one
 * @param {Header} other
 */
const changes = (one, other) => {
  /** @param {Header} header */
  const settings = (header) => ({
    Model: header.model.name, "Prompt tokens": header.prompt_length, "New tokens": header.max_new_tokens,
    ...header.sampling,
    ...(one.method === other.method ? header.params : {}),
  });
  /** @type {[Record<string, unknown>, Record<string, unknown>]} */
  const [before, after] = [settings(one), settings(other)];
  const names = Object.keys({ ...before, ...after }).filter((name) => before[name] !== after[name]);
  const changed = names.map((name) => `${settingName(other, name)} ${before[name]} → ${after[name]}`);
  return one.method === other.method ? changed : [`${one.label} → ${other.label}`, ...changed];
};
