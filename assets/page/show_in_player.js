// Moves from one tab to a place in another.
import { addressOf, write } from "./address.js";
import { shown } from "./shown.js";
import { turnTo } from "./tabs.js";

/** @import { RunLine } from "./types.d.ts" */

/** Wait up to 120 frames until something holds. @param {() => unknown} holds */
const until = (holds) => new Promise((done) => {
  let frames = 120;
  const look = () => {
    frames -= 1;
    if (holds() || !frames) done(undefined);
    else requestAnimationFrame(look);
  };
  look();
});

/** Wait until something is on the screen: Gradio shows what is behind a tab only later. @param {HTMLElement} node */
export const untilSeen = (node) => until(() => node.offsetParent);

/** Act once something is first in sight. @param {HTMLElement} node @param {() => unknown} act */
export const onceInSight = (node, act) => {
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    seen.disconnect();
    act();
  });
  seen.observe(node);
};

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

/** Open files on the Debug tab. @param {File[]} files */
export const showInDebug = async (files) => {
  turnTo("debug");
  await until(() => shown.debug);
  await shown.debug?.bring(files);
};
