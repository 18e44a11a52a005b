// The page's address follows the visitor, and the page follows the address when the visitor goes back or forward.
import { MOST_PROBLEMS, SCREENS, addressOf, asked, lacking, note, placeIn, unread, write } from "./address.js";
import { forkIn } from "./fork.js";
import { opens } from "./opening.js";
import { shown } from "./shown.js";
import { turnTo } from "./tabs.js";

/** @import { Viewer } from "./viewer.js" */
/** @import { Place } from "../player/types.d.ts" */

const NOTE_MS = 250;
const OTHERS = SCREENS.slice(1); // screens beside the viewer's

export class ViewerAddress {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    /** @type {number | undefined} the step that a run was opened at, until the visitor goes elsewhere */
    this.opened = undefined;
    /** @type {number | undefined} a timer */
    this.moving = undefined;
  }

  // The fields that name what is shown.
  get query() {
    const { facts: { address = "" }, second } = this.viewer;
    const beside = second.branch || (second.run && `beside=${second.run}`);
    return address && beside ? `${address}&${beside}` : address;
  }

  /** Whether the address names another run than the one that is shown, or another beside it. */
  get elsewhere() {
    const query = asked(), { viewer } = this;
    const second = viewer.second.branch ? "" : viewer.second.run;
    return viewer.asked !== viewer.facts.run || (query.get("beside") ?? "") !== second;
  }

  // Where the run that is shown from now on is opened: as the address says, which is followed once.
  open() {
    const query = asked(), { viewer } = this;
    const ours = !shown.placed && viewer.asked === viewer.facts.run;
    /** @type {Partial<Place>} */
    const place = ours ? placeIn(query) : {};
    if (ours) shown.placed = true;
    const lacks = ours && !viewer.player.record.live ?
      lacking(query, viewer.player.record, (view) => viewer.player.cards.buttons.has(view)) : [];
    const problems = [...(ours && !viewer.props.live ? unread(query) : []), ...lacks];
    if (problems.length) viewer.notice.add(problems.slice(0, MOST_PROBLEMS).join(" "));
    const branches = ours && viewer.props.live && !lacks.some((sentence) => sentence.startsWith("Branch"));
    if (branches) viewer.second.name(forkIn(query));
    const step = place.step ?? viewer.opensAt;
    this.opened = step;
    if (step !== undefined) viewer.player.goto({ ...place, step });
    if (ours && query.has("beside")) viewer.second.follow(query.get("beside") ?? "");
  }

  /**
   * Only once there was a move to follow.
   * @param {Place} place
   */
  moved(place) {
    const { player, facts } = this.viewer;
    if (place.step === this.opened && place.node === null) return;
    this.opened = undefined;
    if (!facts.address || !navigator.userActivation?.hasBeenActive || player.state.playing) return;
    clearTimeout(this.moving);
    this.moving = setTimeout(() => this.note(), NOTE_MS);
  }

  // A browser may fetch the page's icon anew for every address: not while a run goes on that is followed.
  note() {
    const { player: { record, state }, root } = this.viewer;
    if (record.live && state.follow && root.offsetParent) this.moving = setTimeout(() => this.note(), NOTE_MS);
    else this.put(this.viewer.player.place());
  }

  // The run that is left is found again by going back, at the step where it was left.
  leave(anyway = false) {
    if (this.moving || anyway) this.put(this.viewer.player.place());
  }

  stop() {
    clearTimeout(this.moving);
    this.moving = undefined;
  }

  /**
   * @param {Partial<Place>} place
   * @param {boolean} [another] whether it is another entry of the browser's history
   */
  put(place, another = this.elsewhere) {
    this.stop();
    if (this.query && this.viewer.player.record.play) note(this.viewer.root, this.query, place, another);
  }

  // To the opening, from wherever the visitor is. A live run goes on: it is found again by going back.
  home() {
    this.leave(this.viewer.live.run === this.viewer.facts.run);
    const address = addressOf("", {});
    write(address, address !== location.href);
    this.returned();
  }

  // Back or forward: what the address names is shown again.
  async returned() {
    const query = asked(), { viewer } = this;
    const screen = query.get("screen") ?? "run";
    turnTo(OTHERS.includes(screen) ? screen : "run");
    this.stop();
    viewer.gallery.close();
    if (screen === "debug") shown.debug?.returned();
    if (OTHERS.includes(screen)) return;
    if (opens()) {
      viewer.cover();
      return;
    }
    viewer.opening?.leave();
    const run = viewer.asked ?? "";
    if (run !== viewer.facts.run) {
      const lines = run === viewer.live.run ? viewer.live.lines : await viewer.files.linesOf(run);
      if (!lines.length || viewer.asked !== run) return;
      viewer.second.leave();
      viewer.feed(lines, true);
      viewer.io.fill(query.has("run") ? location.search : (viewer.facts.address ?? ""));
    }
    await viewer.second.follow(query.get("beside") ?? (query.has("branch") ? viewer.second.run : ""));
    viewer.player.release();
    viewer.player.goto({ step: viewer.opensAt, ...defined(placeIn(query)) });
  }
}

/**
 * @template {object} T
 * @param {T} fields
 * @returns {Partial<T>}
 */
const defined = (fields) =>
  /** @type {Partial<T>} */ (Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)));
