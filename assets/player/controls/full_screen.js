// The full screen, for a view or the whole player. What a view is read with lies elsewhere on the page: the legend, the
// chip that tells what is pinned, the tooltip. A view takes them along, and they come back when it does.

/** @import { Player } from "../player.js" */

/** @type {WeakMap<Element, () => void>} by card: what puts everything back */
const lent = new WeakMap();

/**
 * @param {HTMLElement} card
 * @param {Player} player
 */
const moveInto = (card, { legend, detail, tooltip }) => {
  const parts = [legend.node, detail.chip, tooltip.node];
  const places = parts.map(() => document.createComment(""));
  parts.forEach((part, i) => part.replaceWith(places[i]));
  card.firstElementChild?.after(legend.node);
  card.append(detail.chip, tooltip.node);
  lent.set(card, () => places.forEach((place, i) => place.replaceWith(parts[i])));
};

/**
 * @param {HTMLElement} node
 * @param {Player} [player]
 */
const fill = (node, player) => {
  for (const other of player?.root.querySelectorAll(".ss-filled") ?? []) unfill(other);
  node.classList.add("ss-filled");
  if (player) moveInto(node, player);
};

/** @param {Element} node */
export const unfill = (node) => {
  node.classList.remove("ss-filled");
  lent.get(node)?.();
  lent.delete(node);
};

/**
 * Where a browser has no full screen for elements, the card fills the window instead.
 * @param {HTMLElement} node
 * @param {Player} [player]
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
 * A filled view goes back to its place.
 * @param {Player} player
 */
export const leaveFullScreen = (player) => {
  const filled = player.root.querySelector(".ss-filled");
  if (filled && document.fullscreenElement === filled) document.exitFullscreen();
  else if (filled) unfill(filled);
};
