// Sentences that belong to no step. They lie over the foot of the player and in the form, and move nothing on the page.
import { el, write } from "../../assets/player/dom/elements.js";

export class Notice {
  constructor() {
    this.words = el("span", {});
    this.node = el("div", { class: "app-notice", role: "alert", hidden: true }, this.words,
      el("button", { type: "button", class: "app-close", "aria-label": "Close", onclick: () => this.say("") }));
    this.place = el("div", { class: "app-notice-place" }, this.node);
  }

  /** @param {string} sentence none takes the last one away */
  say(sentence) {
    write(this.words, sentence);
    this.node.hidden = !sentence;
    sayAtRun("");
  }

  /**
   * What came of a press on Run: it is said there as well, since the player may be out of sight.
   * @param {string} sentence
   */
  answer(sentence) {
    this.say(sentence);
    sayAtRun(sentence);
  }
}

/** @param {string} sentence */
export const sayAtRun = (sentence) => {
  const said = document.querySelector(".app-said");
  if (said) write(said, sentence);
};
