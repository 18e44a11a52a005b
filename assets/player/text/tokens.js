// Tokens on the page: one span each, marked by its fate. A character that several of them encode is shown whole at the last.
import { el, write } from "../dom/elements.js";
import { specialWord } from "./special.js";

/** @import { RunRecord } from "../stream/record.js" */

/**
 * What is shown at one of a row of tokens; `lends` where a part of it is shown at a later one, which completes it.
 * @typedef {{ text: string, lends: boolean }} Part
 */

// Characters that would vanish or turn their neighbours around become signs; spaces and line ends stay as they are.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|\u034f|\u17b4|\u17b5/u;
const EMOJI = /(\p{ExtPict}[\ufe0f\p{EMod}]*(?:\u200d\p{ExtPict}[\ufe0f\p{EMod}]*)*)/u;
const BYTES = /^(?:<0x[0-9A-F]{2}>)+$/;
const GOES_ON = /^[\p{M}\p{EMod}\u200d]/u; // the character before it
const LONGEST = 24; // units of one character: what is longer, a hostile text, stays apart
const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** @param {string} raw */
export const isBytes = (raw) => BYTES.test(raw);

/**
 * @param {RunRecord} record
 * @param {number} id
 */
const tokenText = (record, id) => {
  const raw = record.raw(id);
  const plain = raw.replace(/[\n\t]/g, "");
  if (raw === "") return "∅";
  return isBytes(raw) || UNSAFE.test(plain) || /^\p{M}/u.test(raw) ? record.visible(id) : raw.replace(/\n/g, "↵\n");
};

/**
 * Return what a token became and, beside that, whether the target had helped to make its guess.
 * @param {RunRecord} record
 * @param {number} id
 * @param {number} fate
 */
export const tokenSpan = (record, id, fate, inspired = false) => {
  const special = specialWord(record, id) ? " ss-special" : "";
  return el("span", { class: `ss-token ss-fate-${fate}${inspired ? ` ss-fate-${record.fates.inspired}` : ""}${special}` },
    tokenText(record, id));
};

/**
 * Return the bytes of tokens in a row as the characters that they spell; bytes that spell none become ⟨F09F⟩.
 * @param {string[]} raws
 * @returns {Part[]}
 */
const decoded = (raws) => {
  const bytes = raws.flatMap((raw, at) => Array.from(raw.matchAll(/[0-9A-F]{2}/g), ([hex]) => ({ hex, at })));
  const parts = raws.map(() => ({ text: "", lends: false }));
  for (let from = 0; from < bytes.length;) {
    const first = parseInt(bytes[from].hex, 16);
    const size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    const spelled = bytes.slice(from, from + size);
    const character = spelled.length === size && characterOf(spelled.map(({ hex }) => parseInt(hex, 16)));
    if (character) {
      for (const { at } of spelled) parts[at].lends ||= at < spelled[size - 1].at;
      parts[spelled[size - 1].at].text += character;
    } else {
      parts[bytes[from].at].text += `⟨${bytes[from].hex}⟩`;
    }
    from += character ? size : 1;
  }
  for (const part of parts) part.text = part.text.replaceAll("⟩⟨", "");
  return parts;
};

/** @param {number[]} bytes */
const characterOf = (bytes) => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
  } catch {
    return "";
  }
};

/**
 * Move marks, and what is joined to an emoji, to the letter that they belong to: it is shown at the last token.
 * @param {Part} one
 * @param {Part} other
 */
const attach = (one, other) => {
  const both = /\p{RI}$/u.test(one.text) && /^\p{RI}/u.test(other.text);
  if (!both && !GOES_ON.test(other.text) && !one.text.endsWith("\u200d")) return false;
  const edge = segmenter.segment(one.text + other.text).containing(one.text.length);
  if (!edge || edge.index >= one.text.length || edge.segment.length > LONGEST) return false;
  other.text = one.text.slice(edge.index) + other.text;
  one.text = one.text.slice(0, edge.index);
  one.lends = true;
  return true;
};

/**
 * Return what is shown at each token of a row.
 * @param {string[]} raws
 * @returns {Part[]}
 */
export const partsOf = (raws) => {
  /** @type {Part[]} */
  const parts = [];
  /** @type {string[]} */
  let bytes = [];
  for (const raw of raws) {
    if (isBytes(raw)) {
      bytes.push(raw);
      continue;
    }
    parts.push(...decoded(bytes), { text: raw, lends: false });
    bytes = [];
  }
  parts.push(...decoded(bytes));
  /** @type {Part | undefined} */
  let before;
  for (const part of parts) {
    if (!part.text) continue;
    if (before) attach(before, part);
    before = part;
  }
  return parts;
};

/**
 * Return a text without signs that do something: each stays as it is, but where it joins an emoji.
 * @param {string} text
 */
const safe = (text) => text.split(EMOJI).map((piece, i) => (i % 2 ? piece : Array.from(piece, (sign) =>
  (!/[\n\t]/.test(sign) && UNSAFE.test(sign) ? `⟨U+${Number(sign.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0")}⟩` : sign))
  .join(""))).join("").replace(/\n/g, "↵\n");

/**
 * Return tokens in a row as one text.
 * @param {RunRecord} record
 * @param {number[]} ids
 */
export const joinedText = (record, ids) => partsOf(ids.map((id) => record.raw(id))).map(({ text }) => text).join("");

/**
 * A token of the text, and whether some of it is shown at a later one.
 * @typedef {{ span: HTMLElement, id: number, lends?: boolean }} Written
 */

/**
 * Write whole characters into the spans of tokens in a row, from a place on.
 * @param {RunRecord} record
 * @param {Written[]} row
 */
export const joinTokens = (record, row, from = 0) => {
  if (from >= row.length) return;
  let first = from;
  const raw = (/** @type {number} */ at) => record.raw(row[at].id);
  while (first > 0 && (isBytes(raw(first)) || isBytes(raw(first - 1)) || GOES_ON.test(raw(first)) || row[first - 1].lends)) first -= 1;
  const tail = row.slice(Math.max(0, first - 1));
  const raws = tail.map(({ id }) => record.raw(id));
  partsOf(raws).forEach((part, i) => {
    const token = tail[i];
    if (part.text === raws[i] && !token.lends && !part.lends) return;
    token.lends = part.lends;
    writePart(record, token, part);
  });
};

/**
 * @param {RunRecord} record
 * @param {Written} token
 * @param {Part | null} part null: the token as it is alone
 */
export const writePart = (record, { span, id }, part) => {
  const text = part ? (part.text === record.raw(id) ? tokenText(record, id) : safe(part.text)) : tokenText(record, id);
  write(span, text);
  span.classList.toggle("ss-piece-of", text === "");
};
