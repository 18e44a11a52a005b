// From another screen into the player of the Run tab.
import { addressOf, write } from "./address.js";
import { shown } from "./shown.js";
import { turnTo } from "./tabs.js";

/** @import { RunLine } from "./types.d.ts" */

/** Wait until something is on the screen: Gradio shows what is behind a tab only later. @param {HTMLElement} node */
export const untilSeen = (node) => new Promise((done) => {
  let frames = 120;
  const look = () => {
    frames -= 1;
    if (node.offsetParent || !frames) done(undefined);
    else requestAnimationFrame(look);
  };
  look();
});

/**
 * Show a run at a step.
 * @param {RunLine[]} lines
 * @param {string} run
 * @param {number} step
 */
export const showInPlayer = async (lines, run, step) => {
  const { viewer } = shown;
  if (!viewer) return;
  write(addressOf(`run=${run}`, { step }), true); // the one entry that turning and showing make
  turnTo("run");
  viewer.opening?.leave();
  await untilSeen(viewer.root);
  viewer.show(lines);
  viewer.root.scrollIntoView({ block: "start" });
};
