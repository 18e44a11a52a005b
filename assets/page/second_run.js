// The second run beside the one on the screen: another run, or a branch of it; and the ways to open both.
import { el } from "../player/dom/elements.js";
import { runSource } from "./answers.js";
import { Beside } from "./beside.js";
import { linesIn } from "./streams.js";

/** @import { Viewer } from "./viewer.js" */

export class SecondRun {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** @type {Beside | null} */
    this.beside = null;
    this.branch = ""; // what the address says of the branch that is shown beside the run, or that it asks for
    this.back = el("button", { type: "button", class: "app-button app-back", hidden: true,
      onclick: () => viewer.showLive() }, "Back to your run");
    this.asks = el("p", { class: "app-asks-fork", hidden: true }, "This address names a branch of the run. ",
      el("button", { type: "button", class: "app-button", onclick: () => viewer.fork(this.branch) }, "Decode it"));
  }

  // Its id, if there is one.
  get run() {
    return this.beside?.facts.run ?? "";
  }

  /**
   * @param {string | undefined} run
   * @param {() => void} alone
   */
  lay(run, alone) {
    const { viewer } = this;
    this.beside = new Beside(viewer.stage, viewer.player, run, {
      source: (of) => runSource(viewer.server, of), close: () => this.close(), alone, of: viewer.facts.run,
    });
    this.offerOwn();
  }

  /**
   * Show what an address names: another run that is recorded or stored.
   * @param {string} run none: nothing is beside the first
   */
  async follow(run) {
    if (run === this.run) return;
    this.leave();
    if (!run) return;
    const { viewer } = this, first = viewer.facts.run;
    const answer = await viewer.server.open_recording(run).catch(() => null);
    if (viewer.facts.run !== first || this.run) return;
    const lines = linesIn(answer?.lines ?? "");
    if (!lines.length) {
      viewer.notice.say("The second run of this address is not here any more: start it again with Run beside.");
      return;
    }
    this.lay(run, () => viewer.show(lines));
    this.beside?.feed(lines);
  }

  close() {
    this.leave();
    this.viewer.address.put(this.viewer.player.place());
    this.viewer.player.root.focus({ preventScroll: true }); // the button that had it is gone
  }

  leave() {
    this.beside?.destroy();
    this.beside = null;
    this.name("");
    this.offerOwn();
  }

  /**
   * The address names a branch of the run from now on, or none.
   * @param {string} branch
   */
  name(branch) {
    this.branch = branch;
    this.asks.hidden = !branch || Boolean(this.beside);
  }

  offerOwn() {
    const { live, facts } = this.viewer;
    this.back.hidden = !live.begun || live.run === facts.run || Boolean(this.beside);
  }
}
