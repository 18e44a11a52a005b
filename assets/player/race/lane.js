// One run of a race: its text, which appears as time goes by, and its numbers so far.
import { el, write } from "../dom/elements.js";
import { RunRecord } from "../stream/record.js";
import { tokenSpan } from "../text/tokens.js";
import { finishWords, plural } from "../text/words.js";

/** @import { Race } from "./race.js" */

const WHOLE = new Set(["length", "end_of_text", "stop"]);

/** @typedef {{ id: number, fate: number, step: number, span: HTMLElement, at: number }} Written at some millisecond */

export class Lane {
  /**
   * @param {Race} race
   * @param {number} number
   */
  constructor(race, number) {
    this.race = race;
    this.number = number;
    this.record = new RunRecord();
    /** @type {number[]} by step: when its tokens are written, in milliseconds from the start */
    this.times = [];
    /** @type {Written[]} */
    this.tokens = [];
    this.seen = 0;
    this.title = el("h3", {}, this.label);
    this.placed = el("span", { class: "ss-place" });
    this.pace = el("p", { class: "ss-quiet ss-pace" });
    this.text = el("div", {
      class: "ss-text", tabindex: 0, role: "region", "aria-label": `Text of ${this.label}`,
    });
    this.node = el("section", { class: "ss-card ss-lane", "data-lane": number },
      el("div", { class: "ss-card-head" }, this.title, this.placed), this.pace, this.text);
  }

  get total() {
    return this.times.at(-1) ?? 0;
  }

  get label() {
    return this.record.play?.header.label ?? this.race.labels[this.number] ?? `Lane ${this.number + 1}`;
  }

  // Whether the run came to its own end: one that was cut short wrote only a beginning, and won nothing by it.
  get whole() {
    return !this.record.fault && WHOLE.has(this.record.end?.finish ?? "");
  }

  get over() {
    return Boolean(this.record.end || this.record.fault);
  }

  get place() {
    return 1 + this.race.running.filter((lane) => lane.whole && lane.total < this.total).length;
  }

  get ids() {
    return this.tokens.map(({ id }) => id);
  }

  grow() {
    const { record } = this;
    if (!record.play) return;
    write(this.title, this.label);
    this.text.setAttribute("aria-label", `Text of ${this.label}`);
    /** @type {HTMLElement[]} */
    const made = [];
    for (let k = this.times.length; k <= record.last; k += 1) {
      const step = record.steps[k];
      this.times.push(this.total + step.ms[4]);
      step.emitted.forEach((id, place) => {
        const span = tokenSpan(record, id, step.emitted_fates[place]);
        span.hidden = true;
        this.tokens.push({ id, fate: step.emitted_fates[place], step: k, span, at: this.times[k] });
        made.push(span);
      });
    }
    this.text.append(...made);
  }

  /** @param {number} time */
  show(time) {
    const { record } = this;
    if (!record.play) {
      write(this.pace, record.state?.sentence ?? record.fault ?? "waits for its turn");
      return;
    }
    let until = this.seen;
    while (until < this.tokens.length && this.tokens[until].at <= time) this.tokens[until++].span.hidden = false;
    while (until > 0 && this.tokens[until - 1].at > time) this.tokens[--until].span.hidden = true;
    this.seen = until;
    this.node.classList.toggle("ss-finished", !record.live && time >= this.total);
    write(this.pace, this.paceWords(time));
    write(this.placed, this.placeWords(time));
    this.text.scrollTop = this.text.scrollHeight;
  }

  /** @param {number} time */
  paceWords(time) {
    const { record } = this;
    if (record.fault) return record.fault;
    if (record.live) return `decoding: ${plural(this.tokens.length, "token")} so far`;
    const steps = this.times.filter((at) => at <= time).length;
    const prefill = this.times[0] ?? 0;
    const first = this.tokens.filter(({ step }) => step === 0).length;
    const spent = Math.min(time, this.total) - prefill;
    const rate = spent > 0 && steps > 1 ? (this.seen - first) / (this.times[steps - 1] - prefill) : null;
    const words = [plural(this.seen, "token"), plural(steps, "step")];
    if (rate) words.push(`${(rate * 1000).toFixed(1)} tokens/s`);
    return words.join(" · ");
  }

  /** @param {number} time */
  placeWords(time) {
    if (!this.race.ready || this.record.fault || time < this.total) return "";
    if (!this.whole) return finishWords(this.record.end?.finish);
    return `${this.place}. in ${(this.total / 1000).toFixed(2)} s`;
  }
}
