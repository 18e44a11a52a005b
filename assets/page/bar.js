// The line above the player: a title, facts about the run, and its actions.
import { el, write } from "../player/dom/elements.js";
import { about } from "../player/text/status.js";

/** @import { RunRecord } from "../player/stream/record.js" */
/** @import { RunFacts } from "./types.d.ts" */

export class Bar {
  /** @param {...HTMLElement} tools */
  constructor(...tools) {
    this.title = el("h2", { class: "app-title" });
    this.shows = el("span", { class: "app-shows" });
    this.about = el("span", { class: "app-about" });
    this.machine = el("span", { class: "app-machine" });
    this.details = el("button", { type: "button", class: "app-details", "aria-expanded": "false",
      onclick: () => this.unfold() }, this.shows, this.about, this.machine);
    this.node = el("div", { class: "app-bar" }, el("div", { class: "app-what" }, this.title, this.details),
      el("div", { class: "app-tools" }, ...tools));
  }

  // Pressing the line shows what does not fit on it.
  unfold() {
    const whole = this.node.classList.toggle("app-whole");
    this.details.setAttribute("aria-expanded", String(whole));
  }

  /**
   * @param {RunFacts} facts
   * @param {RunRecord} record
   */
  show({ title, shows, machine }, record) {
    const header = record.play?.header;
    const named = [header?.label, title ?? "Your run"].filter(Boolean).join(" · ");
    write(this.title, shows && title ? title : named); // a recording's own title names the method
    write(this.shows, shows ?? "");
    write(this.about, header ? about(record, header) : "");
    write(this.machine, machine ?? "");
    this.details.title = [shows, this.about.textContent, machine].filter(Boolean).join("\n");
  }
}
