// Lists the steps that a bar counts; each opens in the player.
import { dialog } from "../../player/dom/dialog.js";
import { el, write } from "../../player/dom/elements.js";
import { count } from "./table.js";

/** @import { StepRow, StepRows, StepsIo } from "./types.d.ts" */

/** The classes of the player's legend. */
const FATES = { accepted: "ss-fate-2", rejected: "ss-fate-3", wanted: "ss-fate-6", bonus: "ss-fate-7" };
/** @type {{ [fate: string]: string }} */
const SAYS = { wanted: "the target's own choice", bonus: "bonus: the target's own token after guesses that were all right" };

/**
 * A token's text, in which ends of lines are seen.
 * @param {string} text
 * @param {keyof typeof FATES} fate
 */
const token = (text, fate) => el("span", { class: `ss-token ${FATES[fate]}`, title: SAYS[fate] ?? fate },
  text === "" ? "∅" : text.replace(/\n/g, "↵"));

/** @param {StepRow} row */
const words = (row) => {
  const known = [row.category, row.turn > 1 ? `turn ${row.turn}` : "", row.label,
    row.setting === "default" ? "" : row.setting, `step ${row.step}`,
    row.start === null ? "" : `context ${row.start.toLocaleString("en")}`,
    row.ms === null ? "" : `${row.ms.toFixed(1)} ms`, `${row.accepted} of ${row.drafted ?? "?"} accepted`];
  return known.filter(Boolean).join(" · ");
};

/**
 * @param {StepRow} row
 * @param {(row: StepRow) => void} play
 */
const item = (row, play) => {
  const pieces = row.pieces.map(([text, fate]) => token(text, fate));
  if (row.wanted !== null) pieces.push(token(row.wanted, "wanted"));
  if (!pieces.length && row.text) pieces.push(el("span", { class: "ss-token" }, row.text.replace(/\n/g, "↵")));
  const name = `Question ${row.question}`;
  return el("li", { class: "app-debug-step" },
    el("button", { type: "button", class: "ss-button ss-worded", title: "Open this step in the player",
      "aria-label": `${name}, step ${row.step}`, onclick: () => play(row) }, name),
    pieces.length ? el("span", { class: "ss-mono app-debug-pieces" }, ...pieces) : null,
    el("span", { class: "ss-quiet" }, words(row)));
};

/** @param {StepRows} answer */
const about = ({ count: all, whole, slowest }) => {
  if (!all) return "None of the chosen steps is counted here.";
  const of = whole ? "This number is made of " : "";
  const order = slowest ? ", the slowest first" : "";
  return `${of}${count(all, "step")}${order}. Press one to open it in the player.`;
};

/**
 * Shows the list in a dialog. It closes when a step is played, and opens again on the way back.
 * @param {HTMLElement} root
 * @param {string} title
 * @param {string[]} sides the selections that are compared, or none
 * @param {boolean} second whether the second of them is listed
 * @param {StepsIo} io
 */
export const showSteps = (root, title, sides, second, io) => {
  let left = false; // for the player
  let listed = second;
  const list = el("ol", { class: "app-debug-steps" });
  const status = el("p", { class: "ss-quiet", role: "status" });
  const say = (/** @type {string} */ sentence) => write(status, sentence);
  const further = el("button", { type: "button", class: "ss-button ss-worded", hidden: true,
    onclick: () => fill() }, "More steps");
  const choice = sides.length > 1 ? sides.map((name, place) => el("button", { type: "button", class: "ss-toggle ss-button",
    onclick: () => turn(place === 1) }, name)) : [];
  const box = dialog(title, el("div", { class: "ss-contents" },
    choice.length ? el("div", { class: "app-tools", role: "group", "aria-label": "Selection" }, ...choice) : null,
    status, list, further));
  const play = async (/** @type {StepRow} */ row, /** @type {boolean} */ of) => {
    const answer = await io.run(row, of, say);
    if (!answer?.lines || !box.open) return;
    left = true;
    box.close(); // or the player could not have the keys
    await io.play(answer.lines, answer.run ?? "", row.step);
  };
  const fill = async () => {
    const of = listed;
    const answer = await io.steps(of, list.childElementCount, say);
    if (of !== listed || !answer) return;
    list.append(...answer.steps.map((row) => item(row, (chosen) => play(chosen, of))));
    say(about(answer));
    further.hidden = list.childElementCount >= answer.count;
  };
  const turn = (/** @type {boolean} */ to) => {
    listed = to;
    choice.forEach((node, place) => node.setAttribute("aria-pressed", String((place === 1) === to)));
    list.replaceChildren();
    further.hidden = true;
    say("Looking for steps");
    return fill();
  };
  box.addEventListener("close", () => {
    if (!left) box.remove();
    left = false;
  });
  root.append(box);
  box.showModal();
  turn(second);
  return box;
};
