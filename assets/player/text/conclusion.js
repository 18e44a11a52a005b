// The result of a run, once its end is on the screen: a line of measured numbers, and a link to a step to learn from.
import { el, show, write } from "../dom/elements.js";
import { withTerms } from "./glossary.js";
import { plural } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */

export class Conclusion {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.words = el("p", { class: "ss-headline", role: "status" });
    this.example = el("button", { type: "button", class: "ss-button ss-worded", onclick: () => this.open() });
    this.node = el("div", { class: "ss-conclusion", hidden: true }, this.words, this.example);
  }

  update() {
    const { record, state, root } = this.player;
    const ended = record.end !== null && state.step === record.last && state.phase === "commit" && !state.playing;
    const words = ended && !state.full && !state.asking ? conclusion(record) : "";
    show(this.node, words !== "");
    root.classList.toggle("ss-concluded", words !== "");
    if (this.words.textContent !== words) this.words.replaceChildren(...withTerms(words, this.player));
    const k = words ? exampleStep(record, state.example) : -1;
    show(this.example, k >= 0);
    if (k >= 0) write(this.example, `See a step that wrote ${plural(record.steps[k].emitted.length, "token")}`);
  }

  open() {
    const { record, state, root } = this.player;
    this.player.seek(exampleStep(record, state.example));
    root.focus({ preventScroll: true }); // this button goes
  }
}

/**
 * Return a step whose guesses paid off: the one that was named or, where that wrote less than the average that is shown beside it,
 * the one that wrote most; -1 where none accepted a guess.
 * @param {Pick<RunRecord, "steps">} record
 * @param {number | null} named
 */
export const exampleStep = ({ steps }, named) => {
  const written = steps.map(({ accepted, emitted }) => (accepted ? emitted.length : 0));
  if (named !== null && written[named] && written[named] >= tokensOf(steps) / steps.length) return named;
  const most = Math.max(0, ...written);
  return most ? written.indexOf(most) : -1;
};

/** @param {RunRecord["steps"]} steps */
const tokensOf = (steps) => steps.reduce((sum, { emitted }) => sum + emitted.length, 0);

/**
 * Return what a run took to write its text; "" where it wrote nothing.
 * @param {RunRecord} record
 */
export const conclusion = ({ steps, end, speedup }) => {
  const tokens = tokensOf(steps);
  if (!tokens) return "";
  const each = (tokens / steps.length).toFixed(2);
  const rate = end?.summary?.tokens_per_second;
  const pace = typeof rate === "number" ? `, ${rate.toFixed(rate < 10 ? 1 : 0)} tokens/s` : "";
  const faster = typeof speedup === "number" ? ` ${speedup.toFixed(2)}× the speed of autoregressive decoding.` : "";
  return `${plural(steps.length, "pass", "passes")} wrote ${plural(tokens, "token")}: ${each} a pass${pace}.${faster}`;
};
