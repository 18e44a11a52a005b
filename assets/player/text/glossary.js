// The words of the page that a newcomer does not know: what each means, where it is first met in a sentence.
import { el } from "../dom/elements.js";
import { explained } from "./tooltip.js";

/** @import { Player } from "../player.js" */

/** @type {[term: string, words: RegExp, meaning: string][]} */
const TERMS = [
  ["token", /tokens?/, "The unit that a model reads and writes: a word, part of a word, or a punctuation mark."],
  ["target", /target/, "The model whose text you get. It reads all guesses of a step at once and decides which to accept."],
  ["drafter", /drafters?/, "A smaller model, or a part of the target, that writes guesses quickly for the target to check."],
  ["guess", /guess(?:es|ed)?/, "A token proposed before the target has chosen one for that position."],
  ["step", /steps?/, "One turn: the method proposes guesses, the target reads them in one pass, and accepted ones join the text. Step 0 reads the prompt."],
  ["pass", /pass(?:es)?/, "One run through all layers of the target. A pass reads several tokens in little more time than one."],
  ["accepted", /accepted|agreed/, "A guess is accepted if it is what the target would have written itself."],
  ["rejected", /rejected/, "A guess is rejected if the target would have written something else. It is dropped, with all guesses after it."],
  ["root", /root/, "The last token of the text so far. The guesses of a step follow it."],
  ["branch", /branch(?:es)?/, "One of several continuations that are guessed at the same time."],
  ["n-gram", /n-grams?/, "Several tokens in a row."],
  ["pool", /pool/, "The n-grams that a method has collected to guess from."],
  ["chunk", /chunks?/, "A part of a long prompt, which the target reads in one pass."],
  ["cache", /cache/, "What the target has computed for tokens that it has read, so that it need not read them again."],
  ["lossless", /lossless/, "A lossless method writes what the target alone would have written, only in fewer passes."],
  ["greedy", /greedy/, "The target always takes its likeliest token; nothing is drawn by chance."],
];
const QUOTED = /(?<=[\s(])'.*?'(?=[\s,;.)]|$)/.source; // texts of tokens
const WORD = new RegExp(`${QUOTED}|(?<![\\w-])(?:${TERMS.map(([, words]) => `(${words.source})`).join("|")})(?![\\w-])`, "gi");

/**
 * Return a sentence in which each term, where it is first met, explains itself to the pointer, the keyboard and a finger.
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

/** Return all terms, as a list. */
export const glossary = () => el("dl", { class: "ss-glossary" }, ...TERMS.flatMap(([name, , meaning]) =>
  [el("dt", {}, name), el("dd", {}, meaning)]));
