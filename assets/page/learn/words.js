// Texts of lessons as elements; words of the glossary have explanations for pointer, keyboard and touch.
import { el } from "../../player/dom/elements.js";
import { addressOf, write } from "../address.js";
import { shown } from "../shown.js";
import { turnTo } from "../tabs.js";

/** @import { Block, Span } from "./types.d.ts" */

export class Words {
  /** @param {{ [entry: string]: string }} glossary */
  constructor(glossary) {
    this.glossary = glossary;
  }

  /** @param {Span[]} spans */
  spans(spans) {
    return spans.map(({ text, kind, entry, screen }) => {
      if (screen !== undefined) return linkTo(screen, text);
      if (entry !== undefined) return this.explained(text, this.glossary[entry] ?? "");
      if (kind === "bold") return el("strong", {}, text);
      return kind === "code" ? el("code", {}, text) : text;
    });
  }

  /**
   * @param {string} word
   * @param {string} meaning
   */
  explained(word, meaning) {
    const note = el("span", { class: "app-gloss-note", role: "note" }, meaning);
    return el("dfn", { class: "app-gloss", tabindex: 0 }, word, note);
  }

  /**
   * Return paragraphs and lists.
   * @param {Block[]} blocks
   */
  blocks(blocks) {
    /** @type {HTMLElement[]} */
    const nodes = [];
    for (const { kind, spans } of blocks) {
      const last = nodes.at(-1);
      if (kind === "p") nodes.push(el("p", {}, ...this.spans(spans)));
      else if (last?.tagName === "UL") last.append(el("li", {}, ...this.spans(spans)));
      else nodes.push(el("ul", {}, el("li", {}, ...this.spans(spans))));
    }
    return nodes;
  }
}

/**
 * A link to another screen, which is turned to in this page; but the form of a run is filled as the page is loaded.
 * @param {string} query
 * @param {string} words
 */
const linkTo = (query, words) => {
  const link = el("a", { class: "app-learn-link", href: addressOf(query, {}) }, words);
  if (new URLSearchParams(query).get("screen") === "run") return link;
  link.addEventListener("click", (event) => {
    const { button, ctrlKey, metaKey, shiftKey, altKey } = event;
    if (button || ctrlKey || metaKey || shiftKey || altKey) return;
    event.preventDefault();
    write(addressOf(query, {}), true);
    turnTo(new URLSearchParams(query).get("screen") ?? "run");
    shown.cost?.returned(); // it follows the address by itself where it has not been seen yet
  });
  return link;
};

/** @param {Span[]} spans */
export const plainText = (spans) => spans.map(({ text }) => text).join("");
