import { button } from "./buttons.js";
import { el } from "./elements.js";

export const dialog = (title, ...children) => {
  const box = el("dialog", { class: "ss-dialog", "aria-label": title });
  const close = button("close", "Close", () => box.close(), { key: "Esc" });
  box.append(el("div", { class: "ss-dialog-head" }, el("h2", {}, title), close), ...children);
  box.addEventListener("click", (event) => event.target === box && box.close());
  box.addEventListener("keydown", (event) => event.stopPropagation());
  return box;
};
