// A view as a picture; and the address of what is on the screen.
import { dialog } from "../dom/dialog.js";
import { el } from "../dom/elements.js";

/** @import { Plot } from "../charts/plot.js" */
/** @import { Player } from "../player.js" */
/** @import { Linked } from "../types.d.ts" */

/**
 * @param {Player} player
 * @param {Plot} plot
 * @param {"png" | "svg"} format
 */
export const saveImage = async (player, plot, format) => {
  if (plot.drawn === null || plot.box.classList.contains("ss-past")) return;
  const address = await plot.image(format);
  const name = `${player.record.head.header.method}-${plot.view.name}-step-${player.state.step}.${format}`;
  el("a", { href: address, download: name }).click();
};

/**
 * Copy the address to the clipboard, or where that is closed show it in a field. So does one that lacks
 * something: a sentence says so first.
 * @param {Linked} player
 */
export const copyLink = async (player) => {
  const address = String(await player.on.link?.(player.place()));
  const lacks = player.on.lacks?.() ?? null;
  try {
    if (lacks) throw new Error(lacks.words);
    await navigator.clipboard.writeText(address);
    player.announce("The link is copied.");
  } catch {
    const field = el("input", { class: "ss-select", readonly: true, value: address, "aria-label": "Link" });
    const box = dialog("Copy this link", lacks && el("p", {}, lacks.words), field,
      lacks?.save && el("button", { type: "button", class: "ss-button ss-toggle", onclick: lacks.save }, "Download the trace"));
    box.addEventListener("close", () => box.remove());
    player.root.append(box);
    box.showModal();
    field.select();
  }
};
