// Counts the characters of text fields near their limit, and lets no run start while one has too many. A browser's
// maxlength would cut a longer text silently. The server checks the limits again.
import { el, write } from "../player/dom/elements.js";
import { sayIn } from "./notice.js";

const STARTS = "#run-go, #run-beside, #race-go";
const NEAR = 0.9; // of what it may hold: from there on it is counted
const NAMED = /\bapp-most-(\d+)\b/; // a class of the field

/** @param {Element} field */
const mostOf = (field) => Number(NAMED.exec(field.closest("[class*='app-most-']")?.className ?? "")?.[1] ?? Infinity);

/**
 * Its characters as the server counts them.
 * @param {HTMLTextAreaElement} field
 */
const lengthOf = ({ value }) => [...value].length;

/** @param {HTMLTextAreaElement} field */
const count = (field) => {
  const most = mostOf(field), box = field.closest(".block");
  if (!Number.isFinite(most) || !box) return;
  /** @type {Element} */
  const words = box.querySelector(".app-count") ?? el("p", { class: "app-count", id: `${box.id}-count` });
  if (!words.isConnected) {
    box.append(words);
    field.setAttribute("aria-describedby", words.id);
  }
  const length = lengthOf(field), over = length > most;
  if (!over && field.ariaInvalid === "true") sayIn(formOf(field), "");
  field.ariaInvalid = String(over);
  words.classList.toggle("app-over", over);
  if (over) write(words, tooLong(length, most));
  else write(words, length < NEAR * most ? "" : `${named(length)} of ${named(most)} characters`);
};

/** @param {Element} part */
const formOf = (part) => `#${part.closest(".app-form")?.id}`;

/** @param {HTMLTextAreaElement} field */
const isTooLong = (field) => field.offsetParent !== null && lengthOf(field) > mostOf(field);

/**
 * @param {number} length
 * @param {number} most
 */
const tooLong = (length, most) => `${named(length)} characters: shorten it to ${named(most)}`;

/** @param {number} number */
const named = (number) => number.toLocaleString("en");

export const followLimits = () => {
  for (const kind of ["input", "focusin"]) {
    document.addEventListener(kind, ({ target }) => {
      if (target instanceof HTMLTextAreaElement) count(target);
    });
  }
  // What a menu cuts off, as the name of a model, is read by pointing at it.
  document.addEventListener("pointerover", ({ target }) => {
    if (target instanceof HTMLInputElement && target.getAttribute("role") === "combobox") target.title = target.value;
  });
  addEventListener("click", (event) => {
    const form = event.target instanceof Element && event.target.closest(STARTS)?.closest(".app-form");
    if (!form) return;
    const wrong = [...form.querySelectorAll("textarea")].find(isTooLong);
    if (!wrong) return;
    event.stopImmediatePropagation();
    const name = wrong.closest("label")?.querySelector("span")?.textContent?.trim() ?? "The text";
    sayIn(formOf(form), `“${name}” has ${tooLong(lengthOf(wrong), mostOf(wrong))}.`);
    wrong.focus();
  }, true);
};
