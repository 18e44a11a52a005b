// Special tokens: markers of a model's format, which are not text.

/** @import { RunRecord } from "../stream/record.js" */

// The names that families of models have for them.
const NAME = /^(?:<\|[\w ./-]{1,40}\|>|<\/?(?:s|bos|eos|pad|unk|cls|sep|mask|start_of_turn|end_of_turn)>|\[\/?(?:INST|CLS|SEP|PAD|UNK|MASK|BOS|EOS)\])$/i;

/** @type {[RegExp, string][]} */
const MEANINGS = [
  [/^<s>$|bos|begin_of_text|startoftext/i, "begins the text"],
  [/im_start|start_header|start_of_turn/i, "begins a message; the speaker's name follows"],
  [/im_end|eot_id|end_of_turn|<\|end\|>/i, "ends a message"],
  [/end_header/i, "ends the speaker's name"],
  [/^<\/s>$|eos|endoftext|end_of_text/i, "ends the text"],
  [/user/i, "begins the user's message"], [/assistant/i, "begins the assistant's message"], [/system/i, "begins the instructions"],
  [/pad/i, "is padding without meaning"], [/unk/i, "replaces what the model cannot read"],
];

/**
 * Return what a special token means; "" for text.
 * @param {RunRecord} record
 * @param {number} id
 */
export const specialWord = (record, id) => {
  const raw = record.raw(id);
  const ends = record.head.header.end_tokens?.includes(id) ?? false;
  if (!NAME.test(raw)) return "";
  const meaning = MEANINGS.find(([name]) => name.test(raw))?.[1] ?? "a marker of the model's format, not text";
  return ends && !meaning.startsWith("ends") ? `${meaning}; the run ends here` : meaning;
};
