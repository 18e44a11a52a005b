import { button } from "./buttons.js";
import { el } from "./elements.js";

/** @import { Child } from "./elements.js" */

/**
 * @param {string} title
 * @param {...Child} children
 */
export const dialog = (title, ...children) => {
  const close = button("close", "Close", () => box.close(), { key: "Esc" });
  const head = el("div", { class: "ss-dialog-head" }, el("h2", {}, title), close);
  const box = el("dialog", { class: "ss-dialog", "aria-label": title }, head, ...children);
  box.addEventListener("click", (event) => event.target === box && box.close());
  box.addEventListener("keydown", (event) => event.stopPropagation());
  return box;
};
