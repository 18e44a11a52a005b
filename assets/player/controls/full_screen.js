// The full screen, for a view or the whole player, which shows its stage there. A view takes along what explains it: the
// line that names the run, the legend, the chip with what is pinned, the tooltip. They come back when it does.

/** @import { Player } from "../player.js" */

/** @type {WeakMap<Element, () => void>} by what fills the screen: what puts everything back */
const back = new WeakMap();

/**
 * @param {HTMLElement} card
 * @param {Player} player
 */
const moveInto = (card, { status, legend, detail, tooltip }) => {
  const parts = [status.slim, legend.node, detail.chip, tooltip.node];
  const places = parts.map(() => document.createComment(""));
  parts.forEach((part, i) => part.replaceWith(places[i]));
  card.firstElementChild?.before(status.slim);
  card.firstElementChild?.nextElementSibling?.after(legend.node);
  card.append(detail.chip, tooltip.node);
  return () => places.forEach((place, i) => place.replaceWith(parts[i]));
};

/**
 * Show the stage without a view in its place; returns a function that opens the earlier one again.
 * @param {Player} player
 */
const raiseStage = (player) => {
  const { view } = player.state;
  player.change({ full: true, view: null });
  return () => player.change({ full: false, view });
};

/**
 * @param {HTMLElement} node
 * @param {Player} player
 */
const fill = (node, player) => {
  for (const other of player.root.querySelectorAll(".ss-filled")) unfill(other);
  node.classList.add("ss-filled");
  back.set(node, node === player.root ? raiseStage(player) : moveInto(node, player));
};

/** @param {Element} node */
export const unfill = (node) => {
  node.classList.remove("ss-filled");
  back.get(node)?.();
  back.delete(node);
};

/**
 * Fill the window where a browser has no full screen for elements.
 * @param {HTMLElement} node
 * @param {Player} player
 */
export const toggleFullScreen = (node, player) => {
  if (document.fullscreenElement) return document.exitFullscreen();
  if (node.classList.contains("ss-filled")) return unfill(node);
  fill(node, player);
  if (!node.requestFullscreen) return undefined;
  const left = () => {
    if (document.fullscreenElement === node) return;
    document.removeEventListener("fullscreenchange", left);
    unfill(node);
  };
  document.addEventListener("fullscreenchange", left);
  return node.requestFullscreen().catch(() => document.removeEventListener("fullscreenchange", left));
};

/**
 * Put what fills the screen back to its place.
 * @param {Player} player
 */
export const leaveFullScreen = ({ root }) => {
  const filled = root.matches(".ss-filled") ? root : root.querySelector(".ss-filled");
  if (filled && document.fullscreenElement === filled) document.exitFullscreen();
  else if (filled) unfill(filled);
};
