// Shows the turns of a conversation. Their text comes from a model, an address or a file: it is data, never markup.
import { el, write } from "../player/dom/elements.js";

/** @import { Io } from "./types.d.ts" */

/** @type {{ [role: string]: string }} */
const NAMES = { user: "User", assistant: "Assistant" };
const LONG = 320, LINES = 6; // characters and lines above which a turn is folded

/**
 * The turns of a conversation; what is no turn is left out.
 * @param {unknown} text
 * @returns {{ role: string, content: string }[]}
 */
const turnsIn = (text) => {
  try {
    const turns = JSON.parse(String(text ?? "[]"));
    return Array.isArray(turns) ? turns.filter((turn) => Object.hasOwn(NAMES, turn?.role) && typeof turn.content === "string") : [];
  } catch {
    return [];
  }
};

/** @param {{ role: string, content: string }} turn */
const drawn = ({ role, content }) => {
  const words = el("p", { dir: "auto" }, content);
  const turn = el("li", { class: `app-turn app-turn-${role}` }, el("strong", {}, NAMES[role]), words);
  if (content.length <= LONG && content.split("\n").length <= LINES) return turn;
  turn.classList.add("app-turn-folded");
  const unfold = el("button", { type: "button", "aria-expanded": "false", onclick: () => {
    const folded = turn.classList.toggle("app-turn-folded");
    unfold.setAttribute("aria-expanded", String(!folded));
    write(unfold, folded ? "Show all" : "Show less");
  } }, "Show all");
  turn.append(unfold);
  return turn;
};

/**
 * @param {HTMLElement} element
 * @param {Io} io
 */
export const showChat = (element, { props, watch }) => {
  const turns = el("ol", { class: "app-turns" });
  const scroll = el("div", { class: "app-talk-scroll", role: "log", tabindex: 0, "aria-label": "Conversation so far" }, turns);
  const draw = () => {
    turns.replaceChildren(...turnsIn(props.value).map(drawn));
    scroll.hidden = !turns.childElementCount;
    scroll.scrollTop = scroll.scrollHeight;
  };
  element.replaceChildren(scroll);
  draw();
  watch("value", draw);
};
