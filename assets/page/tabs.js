// The page's tabs: an address names the visible one.
import { addressOf, asked, write } from "./address.js";
import { lessonShown } from "./lesson_first.js";
import { shown } from "./shown.js";

/** @import { Viewer } from "./viewer.js" */

const TAB = "#app-tabs [role=tab]";

/** @type {{ [screen: string]: () => string }} */
const ADDRESS = {
  run: () => {
    const { player, address, opening } = /** @type {Viewer} */ (shown.viewer);
    return opening?.covers || !player.record.play ? addressOf("", {}) : addressOf(address.query, player.place());
  },
  race: () => addressOf(shown.race?.address ?? "screen=race", {}),
  debug: () => addressOf(shown.debug?.address ?? "screen=debug", {}),
  cost: () => addressOf(shown.cost?.address ?? "screen=cost", {}),
  learn: () => shown.learn?.address() ?? addressOf("screen=learn", {}),
};

/** The page's name leads to its opening, in this page: a run goes on meanwhile. */
export const followHome = () => {
  document.addEventListener("click", (event) => {
    const { target, button, ctrlKey, metaKey, shiftKey, altKey } = event;
    const link = target instanceof Element && target.closest(".app-home");
    if (!link || !shown.viewer || button || ctrlKey || metaKey || shiftKey || altKey) return;
    event.preventDefault();
    shown.viewer.address.home();
  });
};

export const followTabs = () => {
  document.addEventListener("click", ({ target, pointerType }) => {
    /** @type {HTMLElement | null} */
    const tab = target instanceof Element ? target.closest(TAB) : null;
    const screen = tab?.getAttribute("aria-controls") ?? "";
    if (pointerType === "mouse") tab?.blur(); // the keys are for what it shows
    if (screen === "run") lessonShown();
    const another = screen !== (asked().get("screen") ?? "run"); // or the address is what turned to it
    if (Object.hasOwn(ADDRESS, screen) && another) write(ADDRESS[screen](), true);
  });
};

/** @param {string} screen */
export const turnTo = (screen) => {
  /** @type {HTMLElement | null} */
  const tab = document.querySelector(`${TAB}[aria-controls="${screen}"]`);
  if (tab?.getAttribute("aria-selected") === "false") tab.click();
};

// The server turns to it too, but half a second later, with the form's settings.
export const turnToAddress = () => {
  const screen = asked().get("screen") ?? "";
  if (Object.hasOwn(ADDRESS, screen)) turnTo(screen);
};
