// A token on the page: one span, marked by its fate.
import { el } from "../dom/elements.js";
import { FATE } from "../stream/fates.js";

/** @import { RunRecord } from "../stream/record.js" */

// Characters that would vanish or turn their neighbours around stand as signs; spaces and line ends stay themselves.
const UNSAFE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|\u034f|\u17b4|\u17b5/u;

/**
 * @param {RunRecord} record
 * @param {number} id
 */
export const tokenText = (record, id) => {
  const raw = record.raw(id);
  const plain = raw.replace(/[\n\t]/g, "");
  if (raw === "") return "∅";
  return UNSAFE.test(plain) || /^\p{M}/u.test(raw) ? record.visible(id) : raw.replace(/\n/g, "↵\n");
};

/**
 * What a token became and, beside that, whether the target had helped to make its guess.
 * @param {RunRecord} record
 * @param {number} id
 * @param {number} fate
 */
export const tokenSpan = (record, id, fate, inspired = false) =>
  el("span", { class: `ss-token ss-fate-${fate}${inspired ? ` ss-fate-${FATE.INSPIRED}` : ""}` },
    tokenText(record, id));
