// One run of a race: its text, which appears as time goes by, and its numbers so far.
import { el, write } from "../dom/elements.js";
import { RunRecord } from "../stream/record.js";
import { joinTokens, tokenSpan } from "../text/tokens.js";
import { ownSettings } from "../text/status.js";
import { finishWords, ordinal, plural } from "../text/words.js";
import { durationWords } from "./pace.js";

/** @import { Race } from "./race.js" */
/** @import { Timed } from "./pace.js" */

const WHOLE = new Set(["length", "end_of_text", "stop"]);

/** @typedef {{ id: number, fate: number, step: number, span: HTMLElement, at: number, lends?: boolean }} Written at some millisecond */

export class Lane {
  /**
   * @param {Race} race
   * @param {number} number
   */
  constructor(race, number) {
    this.race = race;
    this.number = number;
    this.record = new RunRecord();
    /** @type {number[]} by step: when its tokens are written, in milliseconds from the start, by the race's clock */
    this.times = [];
    this.grown = 0; // steps whose tokens are there
    /** @type {Written[]} */
    this.tokens = [];
    this.seen = 0;
    this.title = el("h2", {}, this.label);
    const settings = race.settings[number];
    this.placed = el("span", { class: "ss-place" });
    this.pace = el("p", { class: "ss-quiet ss-pace" });
    this.text = el("div", {
      class: "ss-text", tabindex: 0, role: "region", "aria-label": `Text of ${this.label}`,
    });
    this.node = el("section", { class: "ss-card ss-lane", "data-lane": number },
      el("div", { class: "ss-card-head" }, this.title,
        ...(settings ? [el("span", { class: "ss-quiet ss-lane-settings" }, settings)] : []), this.placed), this.pace, this.text);
  }

  get total() {
    return this.times.at(-1) ?? 0;
  }

  get label() {
    const { play } = this.record, { labels, settings: known } = this.race;
    if (!play || known.length) return labels[this.number] ?? `Lane ${this.number + 1}`;
    const settings = ownSettings(play.header, this.race.running.map(({ record }) => record.head.header));
    return settings ? `${play.header.label} (${settings})` : play.header.label;
  }

  // Whether the run came to its own end: one that was cut short wrote only a beginning, and won nothing by it.
  get whole() {
    return !this.record.fault && WHOLE.has(this.record.end?.finish ?? "");
  }

  get over() {
    return Boolean(this.record.end || this.record.fault);
  }

  // In the words of the race's clock; lanes of the same time, as far as it is shown, share a place.
  get took() {
    return durationWords(this.race.state.pace, this.total, this.race.plainSteps);
  }

  get place() {
    const { running } = this.race;
    return 1 + running.filter((lane) => lane.whole && lane.total < this.total && lane.took !== this.took).length;
  }

  // The method that writes one token per pass, which the others are measured against.
  get plain() {
    return this.record.head.header.method === "autoregressive";
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
    const before = this.tokens.length;
    for (; this.grown <= record.last; this.grown += 1) {
      const step = record.steps[this.grown];
      step.emitted.forEach((id, place) => {
        const span = tokenSpan(record, id, step.emitted_fates[place]);
        span.hidden = true;
        if (record.head.header.end_tokens?.includes(id)) span.classList.add("ss-end-of-text");
        this.tokens.push({ id, fate: step.emitted_fates[place], step: this.grown, span, at: 0 });
        made.push(span);
      });
    }
    joinTokens(record, this.tokens, before);
    this.text.append(...made);
  }

  /** @param {(step: Timed) => number} clock */
  retime(clock) {
    let time = 0;
    this.times = this.record.steps.map((step) => (time += clock(step)));
    for (const token of this.tokens) token.at = this.times[token.step];
  }

  /** @param {number} time */
  show(time) {
    const { record } = this;
    if (!record.play) {
      write(this.pace, record.state?.sentence ?? record.fault ?? "waiting for its turn");
      return;
    }
    let until = this.seen;
    while (until < this.tokens.length && this.tokens[until].at <= time) this.tokens[until++].span.hidden = false;
    while (until > 0 && this.tokens[until - 1].at > time) this.tokens[--until].span.hidden = true;
    if (until !== this.seen) this.mark(time < this.total ? this.tokens[until - 1]?.step : undefined);
    this.seen = until;
    this.node.classList.toggle("ss-finished", !record.live && time >= this.total);
    write(this.pace, this.paceWords(time));
    write(this.placed, this.placeWords(time));
    this.text.scrollTop = this.text.scrollHeight;
  }

  /** @param {number | undefined} newest the step whose tokens have just been written */
  mark(newest) {
    for (const { span, step } of this.tokens) span.classList.toggle("ss-newest", step === newest);
  }

  /** @param {number} time */
  paceWords(time) {
    const { record } = this;
    if (record.fault) return record.fault;
    if (record.live) return `decoding: ${plural(this.tokens.length, "token")} so far`;
    if (!this.race.ready) return `ready: ${plural(this.tokens.length, "token")}, waiting for the others`;
    const steps = this.times.filter((at) => at <= time).length;
    return `${plural(this.seen, "token")} · ${plural(steps, "pass", "passes")}`;
  }

  /** @param {number} time */
  placeWords(time) {
    if (!this.race.ready || this.record.fault || time < this.total) return "";
    if (!this.whole) return finishWords(this.record.end?.finish);
    const { ended, state: { pace } } = this.race;
    if (!ended) return "finished";
    return `${ordinal(this.place)}, in ${this.took}${pace === "projected" ? ", projected" : ""}`;
  }
}
