// A tooltip, for the pointer and for the keyboard.
import { el, facts } from "../dom/elements.js";

/** @import { Facts } from "../dom/elements.js" */
/** @import { Player } from "../player.js" */

let made = 0;

export class Tooltip {
  constructor() {
    made += 1;
    this.node = el("div", { class: "ss-tooltip", role: "tooltip", id: `ss-tooltip-${made}` });
    this.hide();
  }

  /**
   * @param {Facts} rows
   * @param {Event} [event]
   */
  rows(rows, event) {
    this.node.replaceChildren(el("dl", { class: "ss-facts" }, ...facts(rows)));
    this.place(event);
  }

  /**
   * @param {string} words
   * @param {Event} [event]
   */
  words(words, event) {
    this.node.replaceChildren(words);
    this.place(event);
  }

  /** @param {Event} [event] */
  place(event) {
    this.node.hidden = false;
    const box = event?.target instanceof Element ? event.target.getBoundingClientRect() : undefined;
    const { clientX, clientY } = /** @type {Partial<MouseEvent>} */ (event ?? {}); // the keyboard's have neither
    const x = clientX ?? box?.left ?? 0;
    const y = clientY !== undefined && (clientY || clientX) ? clientY : (box?.bottom ?? 0);
    const { offsetWidth, offsetHeight } = this.node;
    this.node.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - offsetWidth - 8))}px`;
    this.node.style.top = `${y + 18 + offsetHeight > innerHeight ? Math.max(8, y - offsetHeight - 12) : y + 18}px`;
  }

  hide() {
    this.node.hidden = true;
  }
}

/**
 * Return a tooltip in words, for the pointer and for the keyboard.
 * @param {HTMLElement} node
 * @param {Player} player
 * @param {() => string} words
 */
export const explained = (node, player, words) => {
  /** @param {Event} event */
  const say = (event) => {
    node.setAttribute("aria-describedby", player.tooltip.node.id);
    player.tooltip.words(words(), event);
  };
  node.addEventListener("mouseenter", say);
  node.addEventListener("focus", say);
  node.addEventListener("mouseleave", () => player.tooltip.hide());
  node.addEventListener("blur", () => player.tooltip.hide());
  return node;
};
