// The clock of playing: which step and phase are shown when. It never slows the engine, it only replays.
import { PHASES } from "../stream/fates.js";

/** @import { Player } from "../player.js" */
/** @import { Phase } from "../types.d.ts" */

const WHOLE_MS = 500; // a step at speed 1

/** @type {{ [phase in Phase]: number }} */
const PHASE_MS = { propose: 650, verify: 450, answers: 650, accept: 550, commit: 550 };
const QUICK = 4; // from this speed on nobody sees phases
const LONGEST_MS = 250; // a tab that slept does not run through the steps that it missed
const LOOK_MS = 100; // how often a live run is looked at while it is followed
const LOOK_SHARE = 5; // and at most a fifth of the time goes into drawing it

export const SPEEDS = [
  ...["0.25", "0.5", "1", "2", "4", "8"].map((speed) => [speed, `${speed}×`]), ["real", "real time"],
];

export class Clock {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.request = 0;
    this.timer = 0;
    this.left = 0; // milliseconds until the next step or phase is due
    this.before = 0;
    this.looked = -Infinity;
  }

  get byPhases() {
    const { substeps, speed } = this.player.state;
    return substeps && speed !== "real" && Number(speed) < QUICK;
  }

  // Whether a step takes long enough for the eye to follow a movement.
  get slow() {
    return this.byPhases || Number(this.player.state.speed) <= 1;
  }

  /**
   * @param {number} step
   * @param {Phase} phase
   */
  duration(step, phase) {
    const { record, state } = this.player;
    if (state.speed === "real") return Math.max(1, record.steps[step]?.ms[4] ?? 1);
    return (this.byPhases ? PHASE_MS[phase] : WHOLE_MS) / Number(state.speed);
  }

  start() {
    cancelAnimationFrame(this.request);
    const { step, phase } = this.player.state;
    this.left = this.duration(step, phase);
    this.before = performance.now();
    /** @param {number} now */
    const tick = (now) => {
      if (!this.player.state.playing) return;
      this.left -= Math.min(LONGEST_MS, Math.max(0, now - this.before));
      this.before = now;
      this.advance();
      this.request = requestAnimationFrame(tick); // after the drawing that a change asks for
    };
    this.request = requestAnimationFrame(tick);
  }

  // Go on by as many steps or phases as are due; what lies between is not drawn.
  advance() {
    let { step, phase } = this.player.state;
    const begin = `${step}/${phase}`;
    while (this.left <= 0) {
      const next = this.next(step, phase);
      if (!next) break;
      [step, phase] = next;
      this.left += this.duration(step, phase);
      if (this.byPhases) break; // every phase is seen, however slow the machine
    }
    const { record } = this.player;
    if (`${step}/${phase}` !== begin) this.player.change({ step, phase });
    else if (this.left <= 0 && !record.live) this.player.change({ playing: false });
    if (this.left < 0) this.left = 0;
  }

  /**
   * @param {number} step
   * @param {Phase} phase
   * @returns {[step: number, phase: Phase] | null}
   */
  next(step, phase) {
    const { record } = this.player;
    const at = PHASES.indexOf(phase);
    const plain = record.nodes(step)?.count === 1; // nothing is guessed, so nothing is to be compared
    if (this.byPhases && at + 1 < PHASES.length) return [step, plain && phase === "verify" ? "accept" : PHASES[at + 1]];
    if (step >= record.last) return phase === "commit" ? null : [step, "commit"];
    return [step + 1, this.byPhases ? "propose" : "commit"];
  }

  /**
   * Draw a live run that is followed a few times a second: the machine has a model to run.
   * @param {() => void} draw
   */
  look(draw) {
    if (this.timer) return;
    const waited = performance.now() - this.looked;
    const pause = Math.max(LOOK_MS, LOOK_SHARE * this.player.took);
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.looked = performance.now();
      draw();
    }, Math.max(0, pause - waited));
  }

  stop() {
    cancelAnimationFrame(this.request);
    clearTimeout(this.timer);
    this.timer = 0;
  }
}
