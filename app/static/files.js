// Files that a visitor opens and saves.
import { el } from "../../assets/player/dom/elements.js";

/** @import { Saved } from "./types.d.ts" */

/** What a run can be saved as: the server's name of each form, and its label. */
export const FORMS = [
  ["trace", "Trace (JSONL, packed)"], ["html", "Replay as one HTML file"], ["perfetto", "Timeline for Perfetto"],
  ["csv", "Steps as CSV"], ["vllm", "Metrics as vLLM reports them"],
];

/** @param {Blob} blob */
export const base64 = async (blob) => {
  /** @type {string} */
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(String(reader.result)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(blob);
  });
  return url.slice(url.indexOf(",") + 1);
};

/** @param {Saved} file */
export const save = ({ name, type, text, bytes }) => {
  const content = bytes === undefined ? (text ?? "") : Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};
