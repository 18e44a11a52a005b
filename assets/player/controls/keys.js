// The player's keys, unless the focused element uses them itself; never while something is being typed.
import { toggleFullScreen } from "./full_screen.js";
import { dialog } from "../dom/dialog.js";
import { el } from "../dom/elements.js";
import { glossary } from "../text/glossary.js";

/** @import { Player } from "../player.js" */

const KEYS = [
  ["Space", "play or pause"],
  ["← →", "step back and forward; with Shift by ten"],
  ["Home End", "first and last step"],
  ["[ ]", "previous and next rejection"],
  [", .", "previous and next phase of the step"],
  ["1 – 9", "open and go to the view with that number; on the full screen, show it in the stage's place"],
  ["n p", "pin the next or the previous token of the step"],
  ["i", "facts of the step"],
  ["f", "full screen"],
  ["/", "find a token; Enter and Shift Enter go on and back"],
  ["c", "put into a race"],
  ["Esc", "release the pinned token, leave the full screen"],
  ["?", "these keys, and what the words of the page mean"],
];

// What a class is shown on the full screen, in few words.
const STRIP = [
  ["Space", "play"], ["← →", "step"], [", .", "phase"], ["[ ]", "rejection"], ["n p", "token"], ["1 – 9", "view"],
  ["f", "leave"],
];

/** @type {{ [key: string]: (player: Player, event: KeyboardEvent) => void }} */
const ACTIONS = {
  " ": (player) => player.togglePlay(),
  ArrowLeft: (player, event) => player.stepBy(event.shiftKey ? -10 : -1),
  ArrowRight: (player, event) => player.stepBy(event.shiftKey ? 10 : 1),
  Home: (player) => player.seek(0),
  End: (player) => player.seek(player.record.last),
  "[": (player) => player.jump("rejection", -1),
  "]": (player) => player.jump("rejection", 1),
  ",": (player) => player.sub(-1),
  ".": (player) => player.sub(1),
  c: (player) => player.on.compare?.(player.place()),
  n: (player) => player.detail.step(1),
  p: (player) => player.detail.step(-1),
  i: (player) => player.change({ facts: !player.state.facts }),
  f: (player) => toggleFullScreen(player.root, player),
  "/": (player) => player.transport.search(),
  "?": (player) => player.help.open(),
  Escape: (player) => player.escape(),
};

/** @param {Element} target */
const typed = (target) =>
  (target instanceof HTMLElement && target.isContentEditable) || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);

/** @param {Element} target */
const presses = (target) => /^(BUTTON|A|SUMMARY)$/.test(target.tagName);

/**
 * Return true for a plain button: tabs and the like have keys of their own.
 * @param {Element} target
 */
const plain = (target) => presses(target) && !target.hasAttribute("role");

/**
 * Listen to the keys of the page for `root`, as long as it is seen; returns a function that ends that. `lent` may be
 * typed into, and is ours all the same.
 * @param {HTMLElement} root
 * @param {(event: KeyboardEvent) => boolean} act
 * @param {HTMLElement | null} [lent]
 */
export const listenToKeys = (root, act, lent = null) => {
  const seen = () => root.getClientRects().length > 0 && !document.querySelector("dialog[open]");
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const { target } = event;
    if (!(target instanceof Element)) return;
    const ours = root.contains(target) || target.contains(root) || plain(target); // around it: the page, or a lesson's root
    if (!ours || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!seen() || (typed(target) && target !== lent) || (event.key === " " && presses(target))) return;
    if (act(event)) event.preventDefault();
  };
  /**
   * A button that was pressed with the mouse does not keep the keys to itself: Space is not to press Run again.
   * @param {PointerEvent} event
   */
  const release = (event) => {
    const pressed = event.pointerType === "mouse" && event.target instanceof Element && event.target.closest("button");
    if (pressed && plain(pressed) && seen()) root.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", press);
  document.addEventListener("click", release);
  return () => {
    document.removeEventListener("keydown", press);
    document.removeEventListener("click", release);
  };
};

/** @param {Player} player */
export const listenToPlayerKeys = (player) => listenToKeys(player.root, (event) => {
  const view = player.cards.views?.[Number(event.key) - 1]; // no number: none
  const action = view ? () => player.cards.goto(view.name) : ACTIONS[event.key];
  if (!action || !player.record.play) return false;
  action(player, event);
  return true;
}, player.transport.scrubber);

/** @param {string} key */
const named = (key) => (key === "–" ? " – " : el("kbd", {}, key));

/** @param {string} keys */
const allNamed = (keys) => keys.split(" ").map(named);

export class Help {
  /** @param {Player} player */
  constructor({ on }) {
    const rows = KEYS.filter(([key]) => key !== "c" || on.compare).map(([key, words]) => el("tr", {},
      el("th", { scope: "row" }, ...allNamed(key)), el("td", {}, words)));
    this.strip = el("ul", { class: "ss-strip", "aria-label": "Keys" },
      ...STRIP.map(([key, words]) => el("li", {}, ...allNamed(key), ` ${words}`)));
    this.node = dialog("Keys and words", el("table", { class: "ss-table" }, el("tbody", {}, ...rows)),
      el("p", { class: "ss-quiet" }, "Point at a token to see it in every view; press it to pin it."),
      el("h2", { class: "ss-words-title" }, "Words"), glossary());
  }

  open() {
    this.node.showModal();
  }
}
