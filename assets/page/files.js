// Files that a visitor opens and saves.
import { el } from "../player/dom/elements.js";

/** @import { Saved } from "./types.d.ts" */

/** The formats in which a run can be saved: the server's name of each, and its label. */
const FORMS = [
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

/**
 * The menu of files: one to open, and those that a run can be saved as. It closes on a choice, on Esc, and as soon as
 * anything outside it is pressed or has the focus.
 * @param {() => void} open
 * @param {(form: string) => void} download
 * @param {AbortSignal} signal ends it
 */
export const fileMenu = (open, download, signal) => {
  const button = el("summary", { class: "app-button" }, "File");
  const menu = el("details", { class: "app-menu" }, button);
  /** @param {() => void} act */
  const closing = (act) => () => {
    menu.open = false;
    act();
  };
  menu.append(el("div", { class: "app-list" },
    el("button", { type: "button", onclick: closing(open) }, "Open a trace"),
    ...FORMS.map(([form, label]) => el("button", { type: "button", "data-form": form,
      onclick: closing(() => download(form)) }, `Download: ${label}`))));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation(); // it is no key of the player's
    menu.open = false;
    button.focus();
  });
  /** @param {Event} event */
  const leave = ({ target }) => {
    if (target instanceof Node && !menu.contains(target)) menu.open = false;
  };
  for (const kind of ["pointerdown", "focusin", "click"]) document.addEventListener(kind, leave, { signal });
  return menu;
};

/**
 * Accept files dropped anywhere on the page: otherwise a browser would leave the page for a file dropped beside the player.
 * @param {(files: File[]) => void} open
 * @param {AbortSignal} signal ends it
 */
export const catchDrops = (open, signal) => {
  const cover = el("div", { class: "app-drop", hidden: true }, "Drop a trace or a record here");
  /** @param {DragEvent} event */
  const files = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragover", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    cover.hidden = false;
  }, { signal });
  addEventListener("dragleave", (event) => { cover.hidden ||= !event.relatedTarget; }, { signal });
  addEventListener("drop", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    cover.hidden = true;
    open([...(event.dataTransfer?.files ?? [])]);
  }, { signal });
  document.body.append(cover);
  signal.addEventListener("abort", () => cover.remove());
};
