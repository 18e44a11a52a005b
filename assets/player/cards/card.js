import { NumbersView } from "./numbers.js";
import { viewKey } from "../charts/legend.js";
import { Plot } from "../charts/plot.js";
import { toggleFullScreen } from "../controls/full_screen.js";
import { saveImage } from "../controls/save.js";
import { button } from "../dom/buttons.js";
import { el, show, write } from "../dom/elements.js";
import { withTerms } from "../text/glossary.js";
import { showTable } from "../tables/table.js";

/** @import { Player } from "../player.js" */
/** @import { View } from "../types.d.ts" */

export class Card {
  /**
   * @param {Player} player
   * @param {View} view
   */
  constructor(player, view) {
    this.player = player;
    this.view = view;
    this.plot = view.kind === "plot" ? new Plot(player, view) : null;
    this.content = this.plot ?? new NumbersView(player, view);
    this.waiting = el("p", { class: "ss-quiet ss-waiting" });
    this.waiting.hidden = true;
    const id = `ss-${view.name}-${player.number}`;
    this.node = el("section", { class: "ss-card", tabindex: -1, "data-view": view.name, "aria-labelledby": id },
      this.head(id), el("p", { class: "ss-look" }, ...withTerms(view.look_for, player)), viewKey(view), this.waiting,
      this.content.box);
    if (view.base.least) this.content.box.style.setProperty("--least", `${Number(view.base.least)}px`);
    this.onScreen = true;
  }

  /** @param {string} id */
  head(id) {
    const { view, player } = this;
    /** @param {"png" | "svg"} format */
    const save = (format) => this.plot && saveImage(player, this.plot, format);
    const buttons = [button("table", `${view.label} as a table`, () => showTable(player, this))];
    if (this.plot) {
      buttons.push(button("image", `Save ${view.label} as PNG`, () => save("png")),
        button("vector", `Save ${view.label} as SVG`, () => save("svg")));
    }
    buttons.push(button("full", `${view.label} on the full screen`, () => toggleFullScreen(this.node, player)),
      button("close", `Close ${view.label}`, () => player.cards.toggle(view.name, false), {
        class: "ss-button ss-close",
      }));
    return el("div", { class: "ss-card-head" }, el("kbd", { "aria-hidden": "true" }, player.cards.key(view)),
      el("h3", { id }, view.label), el("div", { class: "ss-card-buttons" }, ...buttons));
  }

  // Whether the step on the screen came without what this view draws.
  get missing() {
    const { record, state } = this.player;
    return Boolean(record.steps[state.step]?.thin) && !(this.view.grows && this.plot);
  }

  // A chart's first drawing, which takes long.
  get fresh() {
    return this.plot?.drawn === null && Boolean(globalThis.Plotly) && !this.missing;
  }

  // Say what it waits for, if it does; returns whether it has something to draw.
  ready() {
    const { missing } = this;
    if (missing) write(this.waiting, this.player.fetch.missing);
    else this.content.box.classList.remove("ss-past");
    show(this.waiting, missing);
    return !missing;
  }

  close() {
    this.content.close();
  }
}
