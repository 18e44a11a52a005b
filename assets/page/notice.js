// Notices that belong to no step: over the foot of the player, or beside Run. They move nothing on the page.
import { el, write } from "../player/dom/elements.js";

/** @typedef {{ label: string, act: () => void }} Offer what can be done about a sentence, by a button beside it */

export class Notice {
  /** @param {() => void} closed where the focus goes when a visitor closes it */
  constructor(closed) {
    this.words = el("span", {});
    this.offer = el("button", { type: "button", class: "app-button app-offer", hidden: true });
    this.node = el("div", { class: "app-notice", role: "alert", hidden: true }, this.words, this.offer,
      el("button", { type: "button", class: "app-close", "aria-label": "Close", onclick: () => {
        this.say("");
        closed();
      } }));
    this.place = el("div", { class: "app-notice-place" }, this.node);
  }

  /**
   * @param {string} sentence none takes the last one away
   * @param {Offer} [offer]
   */
  say(sentence, offer) {
    this.show(sentence, offer);
    sayAtRun("");
  }

  /**
   * @param {string} sentence
   * @param {Offer} [offer]
   */
  show(sentence, offer) {
    write(this.words, sentence);
    this.node.hidden = !sentence;
    this.offer.hidden = !offer;
    write(this.offer, offer?.label ?? "");
    this.offer.onclick = () => {
      this.say("");
      offer?.act();
    };
  }

  /** @param {string} sentence beside what was said before */
  add(sentence) {
    this.show([this.words.textContent, sentence].filter(Boolean).join(" "));
  }

  /**
   * Show the outcome of pressing Run once: beside Run if that is in sight, or else here.
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
