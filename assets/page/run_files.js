// Opens runs that the server stores or receives, and saves runs.
import { el } from "../player/dom/elements.js";
import { answerOf } from "./answers.js";
import { base64, fileMenu, save } from "./files.js";
import { showInDebug } from "./show_in_player.js";
import { linesIn } from "./streams.js";

/** @import { Viewer } from "./viewer.js" */

export class RunFiles {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.chosen = el("input", { type: "file", accept: ".jsonl,.gz", hidden: true, "aria-label": "Trace file" });
    this.chosen.addEventListener("change", () => this.open([...this.chosen.files ?? []]));
    this.menu = fileMenu(() => this.chosen.click(), (form) => this.download(form), viewer.gone.signal);
  }

  /**
   * An answer of the server, or null after its sentence has been shown.
   * @template {{ fault?: string }} T
   * @param {() => Promise<T | null>} call
   */
  ask(call) {
    return answerOf(call, (sentence) => this.viewer.notice.say(sentence));
  }

  /** @param {string} run */
  async linesOf(run) {
    const answer = await this.ask(() => this.viewer.server.open_recording(run));
    return linesIn(answer?.lines ?? "");
  }

  /** @param {string} run */
  async recording(run) {
    const lines = await this.linesOf(run);
    if (lines.length) this.viewer.show(lines);
  }

  /** @param {File[]} files of which the first one is shown */
  async open(files) {
    const { viewer } = this, { largest } = viewer.props;
    const [file] = files;
    this.chosen.value = "";
    if (!file) return;
    if (file.size > largest) {
      viewer.notice.say(`The file is larger than ${Math.round(largest / 2 ** 20)} MB: open a smaller trace.`);
      return;
    }
    viewer.notice.say("");
    const content = await base64(file);
    const offer = { label: "Open it there", act: () => showInDebug(files) };
    const answer = await answerOf(() => viewer.server.open_trace(content),
      (sentence, refused) => viewer.notice.say(sentence, refused?.debug ? offer : undefined));
    if (answer) viewer.show(linesIn(answer.lines ?? ""));
  }

  /** @param {string} form */
  async download(form) {
    const answer = await this.ask(() => this.viewer.server.run_export([this.viewer.facts.run ?? "", form]));
    if (answer) save(answer);
  }
}
