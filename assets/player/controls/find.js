// Finds where a text occurs: in the written text, among the guesses, in the window.
import { el } from "../dom/elements.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */

/**
 * Return the first node of a step whose token holds the text, -2 where only the written tokens do, -1 where none does.
 * @param {RunRecord} record
 * @param {number} k
 * @param {string} wanted
 */
const found = (record, k, wanted) => {
  /** @param {number} id */
  const holds = (id) => [record.raw(id), record.visible(id)].some((text) => text.toLowerCase().includes(wanted));
  const nodes = record.nodes(k);
  const node = nodes ? Array.from(nodes.token).findIndex((id, at) => at > 0 && holds(id)) : -1;
  return node < 0 && record.steps[k].emitted.some(holds) ? -2 : node;
};

export class Find {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.input = el("input", {
      type: "search", class: "ss-select ss-find", placeholder: "Find a token", "aria-label": "Find a token (/)",
      maxlength: 60,
    });
    this.input.addEventListener("keydown", (event) => this.press(event));
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault(); // a browser would empty the field
    if (event.key === "Enter") this.go(event.shiftKey ? -1 : 1);
    else this.player.root.focus({ preventScroll: true });
  }

  /**
   * Go to the next step, or the one before, that has the text, and pin the token there.
   * @param {1 | -1} direction
   */
  go(direction) {
    const { player } = this;
    const { record } = player;
    const wanted = this.input.value.toLowerCase();
    if (!wanted || record.last < 0) return;
    for (let k = player.state.step + direction; k >= 0 && k <= record.last; k += direction) {
      const node = found(record, k, wanted);
      if (node === -1) continue;
      player.seek(k);
      player.change({ pin: node >= 0 ? { step: k, node } : null });
      return;
    }
    const loaded = record.partial ? " among those loaded" : "";
    player.announce(`No ${direction > 0 ? "later" : "earlier"} step${loaded} has this text.`);
  }
}
