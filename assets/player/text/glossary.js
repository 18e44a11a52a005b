// Explains the page's terms where each first occurs in a sentence.
import { el } from "../dom/elements.js";
import { ENTRIES } from "./glossary_entries.js";
import { explained } from "./tooltip.js";

/** @import { Player } from "../player.js" */

/** The forms in which entries are met, by their names. @type {{ [name: string]: RegExp }} */
const FORMS = {
  token: /tokens?/, target: /target/, drafter: /drafters?/, guess: /guess(?:es|ed)?/, step: /steps?/, pass: /pass(?:es)?/,
  accept: /accepted|agreed/, reject: /rejected/, root: /root/, branch: /branch(?:es)?/, "n-gram": /n-grams?/, pool: /pool/,
  chunk: /chunks?/, cache: /cache/, block: /blocks?/, lossless: /lossless/, greedy: /greedy/,
};
const TERMS = ENTRIES.filter(([name]) => Object.hasOwn(FORMS, name));
const QUOTED = /(?<=[\s(])'.*?'(?=[\s,;.)]|$)/.source; // texts of tokens
const WORD = new RegExp(`${QUOTED}|(?<![\\w-])(?:${TERMS.map(([name]) => `(${FORMS[name].source})`).join("|")})(?![\\w-])`, "gi");

/**
 * Return a sentence in which each term has an explanation at its first use, for pointer, keyboard and touch.
 * @param {string} sentence
 * @param {Player} player
 * @returns {(string | HTMLElement)[]}
 */
export const withTerms = (sentence, player) => {
  /** @type {(string | HTMLElement)[]} */
  const parts = [];
  const met = new Set();
  let from = 0;
  for (const found of sentence.matchAll(WORD)) {
    const at = found.slice(1).findIndex((word) => word !== undefined);
    if (at < 0 || met.has(at)) continue;
    met.add(at);
    parts.push(sentence.slice(from, found.index), term(found[0], TERMS[at][2], player));
    from = found.index + found[0].length;
  }
  return [...parts, sentence.slice(from)];
};

/**
 * @param {string} word
 * @param {string} meaning
 * @param {Player} player
 */
const term = (word, meaning, player) =>
  explained(el("dfn", { class: "ss-term", tabindex: 0, title: " " }, word), player, () => meaning);

/** Return the whole glossary, as a list. */
export const glossary = () => el("dl", { class: "ss-glossary" }, ...ENTRIES.flatMap(([, word, meaning]) =>
  [el("dt", {}, word), el("dd", {}, meaning)]));
