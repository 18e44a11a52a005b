// The run that was started on this page: it continues while the visitor looks at another one.
import { JobStream, factsIn } from "./streams.js";

/** @import { Viewer } from "./viewer.js" */
/** @import { RunLine, ViewerIo } from "./types.d.ts" */

export class LiveRun {
  /**
   * @param {Viewer} viewer
   * @param {ViewerIo} io
   */
  constructor(viewer, io) {
    this.viewer = viewer;
    /** @type {string | undefined} its id */
    this.run = undefined;
    /** @type {RunLine[]} */
    this.lines = [];
    this.begun = false; // whether it has something to show: until then, what is shown stays
    this.lost = ""; // why no more lines come
    /** @type {JobStream<RunLine>} */
    this.stream = new JobStream(io, {
      name: "run", starts: "#run-go, #run-beside, #run-again", stop: "run-stop",
      take: (lines, anew) => this.take(lines, anew),
      refused: (sentence) => viewer.notice.answer(sentence),
      lost: (sentence) => this.lose(sentence),
    });
  }

  /**
   * @param {RunLine[]} lines
   * @param {boolean} anew
   */
  take(lines, anew) {
    const { viewer } = this;
    if (anew) {
      const [first] = lines;
      const run = first.kind === "host" ? first.run : undefined;
      if (!run) return viewer.feed(lines, true); // a sentence about the address
      if (run !== this.run) this.begun = false;
      [this.run, this.lines, this.lost] = [run, [], ""];
    }
    this.lines = this.lines.concat(lines);
    const begins = !this.begun && lines.some(({ kind }) => kind === "play");
    if (begins) this.begin();
    const all = anew || begins;
    const news = all ? this.lines : lines;
    const { follows } = factsIn(lines);
    if (!this.begun) viewer.notice.answer(waiting(lines));
    else if (follows !== undefined) viewer.notice.answer(follows);
    if (!this.begun) return undefined;
    if (viewer.second.run === this.run) viewer.second.beside?.feed(news);
    else if ((begins && !viewer.second.run) || this.run === viewer.facts.run) viewer.feed(news, all);
    return undefined;
  }

  // It replaces the run that is shown, or is shown beside it.
  begin() {
    const { viewer } = this;
    const [first] = this.lines;
    this.begun = true;
    viewer.notice.say("");
    viewer.second.leave();
    if (first.kind !== "host" || first.live !== "beside") return viewer.address.leave();
    viewer.second.lay(this.run, () => viewer.showLive());
    viewer.second.name(first.branch ?? "");
    viewer.address.put(viewer.player.place());
    return undefined;
  }

  /** @param {string} sentence */
  lose(sentence) {
    const { viewer } = this;
    this.lost = sentence;
    if (!this.begun) viewer.notice.answer(sentence);
    else if (viewer.second.beside) viewer.second.beside.player.lose(sentence);
    else if (viewer.facts.run === this.run) viewer.player.lose(sentence);
  }
}

/**
 * Say what a run that has not begun waits for, or why it cannot begin.
 * @param {RunLine[]} lines
 */
const waiting = (lines) => {
  const line = lines[lines.length - 1];
  if (line.kind === "fault") return line.sentence;
  if (line.kind !== "state") return "";
  return typeof line.share === "number" ? `${line.sentence} ${Math.round(100 * line.share)} %` : line.sentence;
};
