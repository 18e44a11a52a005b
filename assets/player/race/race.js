// Several runs of one prompt side by side, each writing at the pace that was recorded, on one clock.
import { legendItems } from "../charts/legend.js";
import { listenToKeys } from "../controls/keys.js";
import { button, setIcon } from "../dom/buttons.js";
import { el, show, write } from "../dom/elements.js";
import { Lane } from "./lane.js";
import { clockOf, PACES, paceSentence, slowing, timeWords } from "./pace.js";
import { drawResults, outcome } from "./results.js";
import { LineReader } from "../stream/line_reader.js";
import { footer } from "../text/status.js";

const NARROW = 700;
const LONGEST_MS = 250;
const SPEEDS = ["0.1", "0.25", "0.5", "1", "2", "4"];

/** @import { Pace } from "./pace.js" */
/** @import { AnyLine, LaneLine, RaceLine } from "../types.d.ts" */
/**
 * Without a speed a race plays at its clock's, or more slowly if it is short.
 * @typedef {{ time: number, playing: boolean, speed: number | null, aligned: boolean, pace: Pace }} RaceState
 */

export class Race {
  /** @param {HTMLElement} element what it is drawn into */
  constructor(element) {
    this.element = element;
    /** @type {string | undefined} the query that names it, where its host knows one */
    this.address = undefined;
    this.destroyed = false;
    this.concluded = false; // whether the result was drawn
    this.run = 0; // counts the times it was started
    /** @type {number | undefined} a frame */
    this.request = undefined;
    /** @type {Set<string>} */
    this.changed = new Set();
    /** @type {Lane[]} */
    this.list = [];
    this.reader = new LineReader();
    /** @type {string[]} of the lanes that the host has announced */
    this.labels = [];
    /** @type {string[]} by lane: what its label leaves out, where the host knows its settings */
    this.settings = [];
    this.fault = "";
    /** @type {RaceState} */
    this.state = { time: 0, playing: false, speed: null, aligned: false, pace: "recorded" };
    this.playing = button("play", "Play", () => this.toggle(), { key: "Space", class: "ss-button ss-main" });
    this.restart = button("restart", "Restart", () => this.change({ time: 0, playing: true }));
    this.skip = button("last", "Show the result", () => this.finish());
    this.scrubber = el("input", {
      type: "range", min: 0, max: 0, value: 0, class: "ss-scrubber", "aria-label": "Time",
    });
    this.scrubber.addEventListener("input", () => this.change({ time: Number(this.scrubber.value), playing: false }));
    this.where = el("output", { class: "ss-where" });
    this.slowed = el("option", { value: "" });
    this.unslowed = el("option", { value: "1" });
    this.speed = el("select", { class: "ss-select", "aria-label": "Speed" }, this.slowed,
      ...SPEEDS.map((speed) => (speed === "1" ? this.unslowed : el("option", { value: speed }, `${speed}×`))));
    this.speed.addEventListener("change", () => this.change({ speed: this.chosenSpeed }));
    this.pace = el("select", { class: "ss-select", "aria-label": "Pace" },
      ...PACES.map(({ value, label }) => el("option", { value }, label)));
    this.pace.addEventListener("change", () => this.change({ pace: /** @type {Pace} */ (this.pace.value) }));
    this.assumed = el("p", { class: "ss-quiet ss-assumed", role: "status" });
    this.aligned = el("button", {
      type: "button", class: "ss-button ss-toggle", title: "One column for every output token",
      onclick: () => this.align(!this.state.aligned),
    }, "Align by token");
    this.legend = el("ul", { class: "ss-legend", "aria-label": "Legend" });
    this.headline = el("p", { class: "ss-headline", role: "status" });
    this.times = el("p", { class: "ss-quiet ss-times" });
    this.verdict = el("p", { class: "ss-verdict", role: "status" });
    this.lanes = el("div", { class: "ss-lanes" });
    this.together = el("div", { class: "ss-scroll ss-aligned", ...region("Output tokens of all lanes") });
    this.results = el("div", { class: "ss-scroll", ...region("Results") });
    this.foot = el("footer", { class: "ss-foot" });
    this.root = this.build();
    this.element.replaceChildren(this.root);
    this.reset();
    this.themed = new MutationObserver(() => this.change({ theme: true }));
    this.themed.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    const bar = /** @type {HTMLElement | null} */ (this.root.querySelector(".ss-sticky"));
    this.sized = new ResizeObserver(() => {
      this.root.classList.toggle("ss-narrow", this.element.clientWidth < NARROW);
      this.root.style.setProperty("--ss-bar", `${bar?.offsetHeight ?? 0}px`); // what keys come to is below it
    });
    this.sized.observe(element);
    this.unsubscribe = listenToKeys(this.root, (event) => event.key === " " && this.toggle(), this.scrubber);
  }

  build() {
    const bar = el("div", { class: "ss-transport", role: "group", "aria-label": "Race" },
      el("div", { class: "ss-buttons" }, this.playing, this.restart, this.skip),
      el("div", { class: "ss-scrub" }, this.scrubber), this.where, this.pace, this.speed, this.aligned);
    return el("div", { class: "ss ss-race", role: "group", "aria-label": "Race", tabindex: -1 },
      el("div", { class: "ss-sticky" }, bar, this.legend), this.assumed, this.headline, this.times, this.lanes,
      this.verdict, this.together, this.results, this.foot);
  }

  // A frame that was asked for stays so, and draws the new race.
  reset() {
    this.list = [];
    this.reader = new LineReader();
    this.labels = [];
    this.settings = [];
    this.fault = "";
    this.state = { time: 0, playing: false, speed: this.chosenSpeed, aligned: false, pace: this.state.pace };
    this.lanes.replaceChildren();
    this.change({ record: true });
  }

  /**
   * Take in lines, or a text of them. Most have the number of a lane; {"kind":"race","labels":[...]} announces the lanes.
   * @param {string | AnyLine[]} given
   */
  feed(given) {
    for (const line of /** @type {(LaneLine | RaceLine)[]} */ (this.reader.read(given))) {
      if (line.kind === "race") this.announce(line);
      else if (line.lane !== undefined) this.lane(line.lane).record.feed([line]);
      else if (line.kind === "fault") this.lose(line.sentence);
      else if (line.kind === "state") this.lane(0).record.feed([line]); // all wait for the same
    }
    this.change({ record: true });
  }

  /** @param {RaceLine} line */
  announce({ labels, settings = [] }) {
    this.labels = labels;
    this.settings = settings;
    this.lane(labels.length - 1);
  }

  /** @param {number} number */
  lane(number) {
    while (this.list.length <= number) {
      const lane = new Lane(this, this.list.length);
      this.list.push(lane);
      this.lanes.append(lane.node);
    }
    return this.list[number];
  }

  get running() {
    return this.list.filter((lane) => lane.record.play);
  }

  // Every announced lane has ended, or failed; at least one has something to show.
  get ready() {
    return this.running.length > 0 && this.over;
  }

  get over() {
    return this.list.every((lane) => lane.over);
  }

  /**
   * Note that the race or its stream broke: what has not ended never will.
   * @param {string} sentence
   */
  lose(sentence) {
    if (!this.list.length) this.fault = sentence;
    for (const lane of this.list) if (!lane.over) lane.record.fail({ sentence });
    this.change({ record: true });
  }

  get chosenSpeed() {
    return this.speed.value ? Number(this.speed.value) : null;
  }

  // The steps in whose passes other clocks measure: those of autoregressive decoding, else of all lanes.
  get plainSteps() {
    return this.plainLane?.record.steps ?? this.running.flatMap((lane) => lane.record.steps);
  }

  get plainLane() {
    return this.running.find((lane) => lane.plain && lane.record.steps.length > 1);
  }

  get ended() {
    return this.ready && this.state.time >= this.length;
  }

  get length() {
    return Math.max(0, ...this.list.map((lane) => lane.total));
  }

  /** @param {Partial<RaceState> & { record?: boolean, theme?: boolean }} values */
  change(values) {
    Object.assign(this.state, values);
    for (const name of Object.keys(values)) this.changed.add(name);
    if (values.playing) this.start();
    this.request ??= requestAnimationFrame(() => this.flush());
  }

  flush() {
    if (this.request !== undefined) cancelAnimationFrame(this.request);
    this.request = undefined;
    const changed = this.changed;
    this.changed = new Set();
    if (this.destroyed) return;
    if (changed.has("record") || changed.has("theme")) this.paint();
    if (changed.has("record")) for (const lane of this.list) lane.grow();
    if (changed.has("pace")) this.keepPlace(() => this.retime());
    else if (changed.has("record")) this.retime();
    if (changed.has("record")) {
      this.explain();
      write(this.foot, footer(this.running.map((lane) => lane.record.head.header)));
    }
    if (changed.has("record") || changed.has("pace") || this.ended !== this.concluded) drawResults(this);
    this.concluded = this.ended;
    const { time, playing, aligned, pace } = this.state;
    for (const lane of this.list) lane.show(time);
    this.conclude();
    show(this.lanes, !aligned || !this.ended);
    show(this.together, aligned && this.ended);
    this.aligned.setAttribute("aria-pressed", String(aligned));
    setIcon(this.playing, playing ? "pause" : "play", `${playing ? "Pause" : "Play"} (Space)`);
    for (const control of [this.playing, this.restart, this.skip, this.scrubber, this.aligned]) control.disabled = !this.ready;
    this.scrubber.max = String(Math.ceil(this.length));
    this.scrubber.value = String(Math.round(time));
    const words = timeWords(pace, time, this.plainSteps);
    this.scrubber.setAttribute("aria-valuetext", words);
    write(this.where, words);
    this.root.dataset.at = String(Math.round(time));
  }

  /**
   * Keep the progress of the race when another clock is chosen.
   * @param {() => void} retime
   */
  keepPlace(retime) {
    const { ended, length, state } = this;
    const share = length ? state.time / length : 0;
    retime();
    state.time = ended ? this.length : share * this.length;
  }

  retime() {
    const { pace } = this.state;
    for (const lane of this.running) lane.retime(clockOf(pace, this.plainSteps, !lane.plain));
    const factor = slowing(this.length);
    const whole = pace === "recorded" ? "real time" : "1×";
    write(this.slowed, factor > 1 ? `slowed ${factor} times` : whole);
    write(this.unslowed, whole);
    show(this.unslowed, factor > 1);
    write(this.assumed, paceSentence(pace, this.plainLane ? "an autoregressive pass" : "an average pass"));
    show(this.assumed, pace !== "recorded");
  }

  // Nothing reveals the result before the end. Its lines keep their space until then.
  conclude() {
    const result = outcome(this);
    const waits = this.ready && !this.ended;
    write(this.headline, result?.words ?? (waits ? "Which finishes first?" : ""));
    write(this.times, result?.passes ?? (waits ? "The result is shown at the end of the race." : ""));
    for (const node of [this.headline, this.times]) show(node, waits || Boolean(result));
  }

  /** @param {boolean} aligned all outputs in full, which is a part of the result */
  align(aligned) {
    if (aligned) this.finish();
    this.change({ aligned });
  }

  // The result at once, for who does not want to wait for it.
  finish() {
    this.change({ time: this.length, playing: false });
  }

  paint() {
    const theme = document.body.classList.contains("dark") ? "dark" : "light";
    const colours = this.running[0]?.record.head.themes?.[theme] ?? {};
    for (const [name, colour] of Object.entries(colours)) this.root.style.setProperty(`--ss-${name}`, colour);
  }

  explain() {
    const used = new Set(this.list.flatMap((lane) => lane.tokens.map(({ fate }) => fate)));
    this.legend.replaceChildren(...legendItems(this.running[0]?.record.head.fates ?? [], used));
  }

  toggle() {
    if (!this.ready) return false;
    const { ended } = this;
    this.change({ playing: !this.state.playing, ...(ended && !this.state.playing ? { time: 0 } : {}) });
    return true;
  }

  play() {
    if (this.ready && !this.state.playing) this.toggle();
  }

  start() {
    let before = performance.now();
    const run = (this.run += 1);
    /** @param {number} now */
    const tick = (now) => {
      if (!this.state.playing || this.destroyed || run !== this.run) return;
      const speed = this.state.speed ?? 1 / slowing(this.length);
      const time = this.state.time + Math.min(LONGEST_MS, Math.max(0, now - before)) * speed;
      before = now;
      if (time >= this.length) this.change({ time: this.length, playing: false });
      else {
        this.change({ time });
        requestAnimationFrame(tick);
      }
    };
    requestAnimationFrame(tick);
  }

  destroy() {
    this.destroyed = true;
    this.unsubscribe();
    if (this.request !== undefined) cancelAnimationFrame(this.request);
    this.themed.disconnect();
    this.sized.disconnect();
    this.element.replaceChildren();
  }
}

/** @param {string} label */
const region = (label) => ({ tabindex: 0, role: "region", "aria-label": label });
