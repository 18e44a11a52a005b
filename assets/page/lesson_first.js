// A lesson that the address names is drawn first; the first tab, which it hides, is drawn afterwards.
import { asked } from "./address.js";

/** @type {(value?: unknown) => void} */
let done = () => {};

/** Settles when the lesson that the page was opened with is on the screen; at once where it was opened with another address. */
export const lessonFirst = asked().get("screen") === "learn" && asked().has("lesson")
  ? new Promise((resolve) => { done = resolve; }) : Promise.resolve();

/** Say that nothing need wait any longer than until the screen is painted. */
export const lessonShown = () => requestAnimationFrame(() => setTimeout(done));
