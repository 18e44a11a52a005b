// The steps behind a bar: a list in which each leads into the player.
import { dialog } from "../../../assets/player/dom/dialog.js";
import { el } from "../../../assets/player/dom/elements.js";

/** @import { StepRow, StepRows } from "./types.d.ts" */

/** The classes of the player's legend. */
const FATES = { accepted: "ss-fate-2", rejected: "ss-fate-3", wanted: "ss-fate-6" };

/**
 * A token's text, in which ends of lines are seen.
 * @param {string} text
 * @param {keyof typeof FATES} fate
 */
const token = (text, fate) => el("span", { class: `ss-token ${FATES[fate]}`, title: fate === "wanted" ? "the target's own choice" : fate },
  text === "" ? "∅" : text.replace(/\n/g, "↵"));

/** @param {StepRow} row */
const words = (row) => {
  const known = [row.category, row.turn > 1 ? `turn ${row.turn}` : "", row.method,
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
  if (!pieces.length) pieces.push(el("span", { class: "ss-token" }, (row.text ?? "").replace(/\n/g, "↵")));
  return el("li", { class: "app-debug-step" },
    el("button", { type: "button", class: "ss-button ss-worded", title: "Open this step in the player",
      onclick: () => play(row) }, `Question ${row.question}`),
    el("span", { class: "ss-mono app-debug-pieces" }, ...pieces), el("span", { class: "ss-quiet" }, words(row)));
};

/**
 * @param {HTMLElement} root
 * @param {string} title
 * @param {(offset: number) => Promise<StepRows | null>} ask
 * @param {(row: StepRow) => Promise<void>} play
 */
export const showSteps = async (root, title, ask, play) => {
  const list = el("ol", { class: "app-debug-steps" });
  const count = el("p", { class: "ss-quiet", role: "status" }, "Looking for steps");
  const further = el("button", { type: "button", class: "ss-button ss-worded", hidden: true,
    onclick: () => fill() }, "More steps");
  const box = dialog(title, el("div", { class: "ss-contents" }, count, list, further));
  const fill = async () => {
    const found = await ask(list.childElementCount);
    if (!found) return box.close(); // the page says why
    list.append(...found.steps.map((row) => item(row, async (chosen) => {
      box.close();
      await play(chosen);
    })));
    count.textContent = found.count ? `${found.count.toLocaleString("en")} steps. Press one to open it in the player.` :
      "No chosen step is behind this.";
    further.hidden = list.childElementCount >= found.count;
    return undefined;
  };
  box.addEventListener("close", () => box.remove());
  root.append(box);
  box.showModal();
  await fill();
};
