// Lines that grow: what of a stream is for this page, what of it is new, and whether it still lives.

/** @import { PageFacts } from "./types.d.ts" */

const QUIET_MS = 4000;
const LATE_MS = 10_000;
const HEARD = 300; // of a text's beginning: its first line holds an id of its own

/**
 * Lines for this page are taken out of a stream; the rest goes to the player as it is.
 * @param {string} text
 * @returns {[PageFacts, string]}
 */
export const split = (text) => {
  /** @type {PageFacts} */
  const facts = {};
  const rest = text.replace(/^\{"kind":"host",.*\n/gm, (line) => {
    Object.assign(facts, JSON.parse(line));
    return "";
  });
  return [facts, rest];
};

/**
 * A text that only grows, or another one: calls back with what is new, and whether all before it is void.
 * @param {(tail: string, anew: boolean) => void} take
 * @returns {(whole: string | null | undefined) => void}
 */
export const growing = (take) => {
  let heard = "";
  return (whole) => {
    const text = String(whole ?? "");
    const grown = heard !== "" && text.length >= heard.length && text.startsWith(heard.slice(0, HEARD));
    if (grown && text.length === heard.length) return;
    const tail = grown ? text.slice(heard.length) : text;
    heard = text;
    take(tail, !grown);
  };
};

/**
 * A stream that breaks says nothing: where lines stay away, the server is asked twice whether more will come.
 * @param {() => Promise<{ lives: boolean } | null>} lives
 * @param {(sentence: string) => void} lost
 * @returns {(waits: boolean) => void}
 */
export const pulse = (lives, lost) => {
  let timer = 0;
  const late = () => new Promise((_, fail) => setTimeout(fail, LATE_MS));
  /** @param {boolean} missed */
  const wait = (missed) => {
    const mine = (timer = setTimeout(async () => {
      const more = await Promise.race([lives(), late()]).then((answer) => answer?.lives === true, () => false);
      if (mine !== timer) return; // lines came, or none are waited for any more
      if (more || !missed) wait(!more);
      else lost("The connection was lost: this is what came before. Reload the page to start again.");
    }, QUIET_MS));
  };
  return (waits) => {
    clearTimeout(timer);
    timer = 0;
    if (waits) wait(false);
  };
};

/**
 * What a run that has not begun waits for, or why it cannot begin.
 * @param {string} text
 */
export const waiting = (text) => {
  const last = text.trimEnd().split("\n").at(-1) ?? "";
  const { kind, sentence = "", share } = last ? JSON.parse(last) : { kind: "" };
  if (kind !== "state" && kind !== "fault") return "";
  return typeof share === "number" ? `${sentence} ${Math.round(100 * share)} %` : sentence;
};
