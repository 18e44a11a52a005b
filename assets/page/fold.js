// The form beside a record is folded away until the visitor opens it. The visitor's own choice is stored.
import { asked } from "./address.js";

const STORED = "specscope-form";
/** The fields of an address that do not concern the form. */
const ELSEWHERE = ["__theme", "screen", "step", "phase", "view", "node"];

export class Fold {
  /**
   * @param {HTMLElement} root what is seen beside the form
   * @param {HTMLElement} button
   */
  constructor(root, button) {
    this.root = root;
    this.button = button;
    /** @type {HTMLElement | null} */
    this.page = root.closest(".app-page");
    button.hidden = !this.page;
    button.setAttribute("aria-controls", "run-form");
    button.addEventListener("click", () => this.choose(!this.folded));
    const query = asked();
    const names = [...query.keys()].filter((name) => !ELSEWHERE.includes(name));
    this.set(stored() ? stored() === "folded" : query.has("run") || !names.length);
  }

  get form() {
    return this.page?.querySelector(".app-form");
  }

  /**
   * The visitor's own choice, which lasts.
   * @param {boolean} folded
   */
  choose(folded) {
    store(folded ? "folded" : "open");
    this.set(folded);
    const form = this.form; // below the player on a phone
    if (!folded && form && form.getBoundingClientRect().top > innerHeight - 80) form.scrollIntoView({ block: "start" });
  }

  /** Give a playing record the space, unless the visitor wants the form or is writing in it. */
  yieldRoom() {
    if (!this.folded && stored() !== "open" && !this.form?.contains(document.activeElement)) this.set(true);
  }

  /**
   * What is seen beside the form stays where it is.
   * @param {boolean} folded
   */
  set(folded) {
    this.folded = folded;
    const { top } = this.root.getBoundingClientRect();
    if (this.page) { // it stays long enough to be scrolled as far as it is
      const needed = innerHeight - this.page.getBoundingClientRect().top;
      this.page.style.minHeight = folded && scrollY ? `${needed}px` : "";
    }
    this.page?.classList.toggle("app-folded", folded);
    this.button.setAttribute("aria-expanded", String(!folded));
    const moved = this.root.getBoundingClientRect().top - top;
    if (moved) scrollBy({ top: moved, behavior: "instant" });
  }
}

const stored = () => {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null; // a browser without storage
  }
};

/** @param {string} choice */
const store = (choice) => {
  try {
    localStorage.setItem(STORED, choice);
  } catch { /* a browser that keeps nothing */ }
};
