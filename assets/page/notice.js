// Sentences that belong to no step: over the foot of the player, or beside Run. They move nothing on the page.
import { el, write } from "../player/dom/elements.js";

export class Notice {
  constructor() {
    this.words = el("span", {});
    this.node = el("div", { class: "app-notice", role: "alert", hidden: true }, this.words,
      el("button", { type: "button", class: "app-close", "aria-label": "Close", onclick: () => this.say("") }));
    this.place = el("div", { class: "app-notice-place" }, this.node);
  }

  /** @param {string} sentence none takes the last one away */
  say(sentence) {
    this.show(sentence);
    sayAtRun("");
  }

  /** @param {string} sentence */
  show(sentence) {
    write(this.words, sentence);
    this.node.hidden = !sentence;
  }

  /**
   * What came of a press that starts a run: said once, beside Run if that is in sight, or else here.
   * @param {string} sentence
   */
  answer(sentence) {
    const there = inSight(document.querySelector("#run-go"));
    this.show(there ? "" : sentence);
    sayAtRun(there ? sentence : "");
  }
}

/** @param {string} sentence */
export const sayAtRun = (sentence) => sayIn("#run-form", sentence);

/**
 * @param {string} form
 * @param {string} sentence
 */
export const sayIn = (form, sentence) => {
  const said = document.querySelector(`${form} .app-said`);
  if (said) write(said, sentence);
};

/** @param {Element | null} node */
const inSight = (node) => {
  const { top, bottom, height } = node?.getBoundingClientRect() ?? new DOMRect();
  return height > 0 && top >= 0 && bottom <= innerHeight;
};
