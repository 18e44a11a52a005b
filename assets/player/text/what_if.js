// "What if": at a pinned token, a button to continue with its guess, and a field for other text.
import { el, show, write } from "../dom/elements.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */
/** @import { Fork, Spot } from "../types.d.ts" */

const LONGEST = 200; // characters of a text

/**
 * What may be written at a position instead: its guess, and a text after so many tokens of the step.
 * @typedef {{ guess: boolean, keep: number | null }} Choice
 */

export class WhatIf {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    /** @type {Spot | null} */
    this.spot = null;
    /** @type {Choice} */
    this.choice = { guess: false, keep: null };
    this.guess = el("button", { type: "button", class: "ss-fork-guess", onclick: () => this.ask() });
    this.text = el("input", { type: "text", maxlength: LONGEST, autocomplete: "off", spellcheck: "false" });
    this.word = el("span", {});
    this.typed = el("form", {}, el("label", {}, this.word, this.text), el("button", { type: "submit" }, "Go on"));
    this.typed.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.text.value) this.ask(this.text.value);
    });
    this.node = el("div", { class: "ss-fork", role: "group", "aria-label": "What if", hidden: true },
      el("strong", {}, "What if?"), this.guess, this.typed);
  }

  /** @param {Spot | null} spot what is pinned, once the target has judged it */
  update(spot) {
    const { on, record } = this.player;
    const choice = spot && on.fork && !record.live ? choiceAt(record, spot) : null;
    const seen = choice !== null && (choice.guess || choice.keep !== null);
    show(this.node, seen);
    if (!choice || !seen || !spot) return;
    this.spot = spot;
    this.choice = choice;
    show(this.guess, choice.guess);
    show(this.typed, choice.keep !== null);
    const word = record.visible(record.nodesAt(spot.step).token[spot.node]);
    write(this.guess, `Go on with “${word}”`);
    write(this.word, choice.guess ? "or with your own text " : "Go on with another text ");
  }

  /** @param {string} [text] */
  ask(text) {
    const { spot, choice: { keep } } = this;
    if (!spot) return;
    const { step, node } = spot;
    if (text === undefined) this.player.on.fork?.({ step, node });
    else if (keep !== null) this.player.on.fork?.({ step, keep, text });
  }
}

/**
 * @param {RunRecord} record
 * @param {Spot} spot
 * @returns {Choice}
 */
export const choiceAt = (record, { step: k, node, own }) => {
  if (own) return { guess: false, keep: record.ownAt(k).place };
  const nodes = record.nodesAt(k);
  if (node === 0 || nodes.explored.has(node)) return { guess: false, keep: null };
  const { root, accepted, twin } = record.fates;
  /** @param {number} each */
  const written = (each) => [root, accepted, twin].includes(nodes.fate[each]);
  const guess = !written(node);
  const place = nodes.depth[node] - 1;
  // A guess after a rejected guess has no position in the text.
  const keep = written(nodes.parent[node]) && place <= record.steps[k].emitted.length ? place : null;
  return { guess, keep };
};
