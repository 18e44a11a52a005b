// Reads the growing text of a job from Gradio, and passes its new lines to its viewer, or a sentence if they stop.
import { LineReader } from "../player/stream/line_reader.js";
import { busy, onceDrawn, stoppable } from "./busy.js";

/** @import { Io, JobShower, StreamLine } from "./types.d.ts" */

const QUIET_MS = 4000;
const LATE_MS = 10_000;
const BEGINNING = 300; // characters that tell two texts apart: the first line holds an id of its own
const LAST = new Set(["end", "done", "fault"]); // kinds of lines after which another job can be started, unless more follows

/**
 * All lines of a text.
 * @param {string} text
 * @returns {any[]}
 */
export const linesIn = (text) => new LineReader().read(text);

/**
 * Return the facts in the lines for the page around the player.
 * @template {object} F
 * @param {(StreamLine | ({ kind: "host" } & F))[]} lines
 * @returns {Partial<F>}
 */
export const factsIn = (lines) => Object.assign({}, ...lines.filter(({ kind }) => kind === "host"));

/** @template {StreamLine} L */
export class JobStream {
  /**
   * @param {Io} io
   * @param {JobShower<L>} shower
   */
  constructor(io, shower) {
    this.io = io;
    this.shower = shower;
    this.text = ""; // what was read
    this.reader = new LineReader();
    /** @type {string | undefined} the server's name for the job */
    this.id = undefined;
    this.over = true;
    this.ended = false; // whether its last line has come
    this.follows = ""; // what the server does behind that line
    this.timer = 0;
    onceDrawn(shower.stop, () => this.mark());
    io.watch("value", () => this.read());
  }

  read() {
    const text = String(this.io.props.value ?? "");
    if (!text) return;
    const anew = !this.text || text.length < this.text.length || !text.startsWith(this.text.slice(0, BEGINNING));
    const reader = anew ? new LineReader() : this.reader;
    /** @type {L[]} */
    const lines = reader.read(anew ? text : text.slice(this.text.length));
    const [first] = lines;
    if (anew && first?.kind === "refused") return this.refuse(first.sentence ?? "");
    this.text = text;
    this.reader = reader;
    if (anew) this.id = first?.run;
    if (anew) [this.ended, this.follows] = [false, ""];
    this.ended ||= lines.some(({ kind, lane }) => lane === undefined && LAST.has(kind));
    this.follows = /** @type {{ follows?: string }} */ (factsIn(lines)).follows ?? this.follows;
    const failed = lines.some(({ kind, lane }) => lane === undefined && kind === "fault");
    this.over = (!anew && this.over) || !this.id || failed || (this.ended && !this.follows);
    if (lines.length) this.shower.take(lines, anew);
    this.mark();
  }

  // The job was asked for: its lines are on their way.
  expect() {
    this.text = "";
    this.id = undefined;
    this.over = false;
    this.mark();
  }

  /** @param {string} sentence why there is no such job; one before it goes on */
  refuse(sentence) {
    this.over ||= !this.text;
    this.shower.refused(sentence);
    this.mark();
  }

  /** @param {string} sentence */
  lose(sentence) {
    this.text = ""; // should lines come after all, they are read from the beginning
    this.over = true;
    this.shower.lost(sentence);
    this.mark();
  }

  mark() {
    const { name, starts, stop } = this.shower;
    busy(starts, !this.over);
    stoppable(name, !this.over, stop);
    this.listen();
  }

  /**
   * A broken stream sends nothing: if no lines arrive, the server is asked twice whether more will come.
   * @param {boolean} [missed]
   */
  listen(missed = false) {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.over) return;
    const timer = setTimeout(async () => {
      const late = new Promise((_, fail) => setTimeout(fail, LATE_MS));
      const lives = await Promise.race([this.io.server.run_lives(this.id), late])
        .then((answer) => answer?.lives === true, () => false);
      if (timer !== this.timer) return; // lines came, or none are waited for any more
      if (lives || !missed) this.listen(!lives);
      else this.lose("The connection was lost: this is what came before. Reload the page to start again.");
    }, QUIET_MS);
    this.timer = timer;
  }
}
