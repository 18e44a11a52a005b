// Gradio's loading indicator requests every next frame, also after it is gone: sixty empty frames per second while the
// page is open, at the expense of everything else on the machine.
import { shown } from "./shown.js";

const SURE = 60; // frames in a row

const plays = () => [shown.viewer?.player, shown.viewer?.opening?.race, shown.race].some((each) => each?.state.playing);

/**
 * End a loop that requests exactly one frame in each frame while nothing plays. Requests are numbered in order:
 * between two of ours there is then one of another's, and it is the one before ours.
 */
export const restFrames = () => {
  let before = 0, others = 0, seen = 0;
  const look = () => {
    const mine = requestAnimationFrame(look);
    const between = mine - before - 1;
    before = mine;
    seen = between === others && !plays() ? seen + 1 : 0;
    others = between;
    if (seen < SURE || others > 1) return;
    cancelAnimationFrame(mine);
    if (others) cancelAnimationFrame(mine - 1);
  };
  look();
};
