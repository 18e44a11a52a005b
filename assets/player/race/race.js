// Several runs of one prompt side by side, each writing at the pace that was recorded, on one clock.
import { legendItems } from "../charts/legend.js";
import { listenToKeys } from "../controls/keys.js";
import { button, setIcon } from "../dom/buttons.js";
import { el, show, write } from "../dom/elements.js";
import { Lane } from "./lane.js";
import { drawResults } from "./results.js";
import { footer } from "../text/status.js";
import { milliseconds } from "../text/words.js";

const NARROW = 700;
const LONGEST_MS = 250;
const SPEEDS = ["0.1", "0.25", "0.5", "1", "2", "4"];

/** @typedef {{ time: number, playing: boolean, speed: number, aligned: boolean }} RaceState */

export class Race {
  /** @param {HTMLElement} element what it is drawn into */
  constructor(element) {
    this.element = element;
    /** @type {string | undefined} the query that names it, where its host knows one */
    this.address = undefined;
    this.destroyed = false;
    this.run = 0; // counts the times it was started
    /** @type {number | undefined} a frame */
    this.request = undefined;
    /** @type {Set<string>} */
    this.changed = new Set();
    /** @type {Lane[]} */
    this.list = [];
    this.rest = ""; // of what was fed: what has no line end yet
    /** @type {string[]} of the lanes that the host has announced */
    this.labels = [];
    this.fault = "";
    /** @type {RaceState} */
    this.state = { time: 0, playing: false, speed: 1, aligned: false };
    this.playing = button("play", "Play", () => this.toggle(), { key: "Space", class: "ss-button ss-main" });
    this.restart = button("restart", "Restart", () => this.change({ time: 0, playing: true }));
    this.scrubber = el("input", {
      type: "range", min: 0, max: 0, value: 0, class: "ss-scrubber", "aria-label": "Time",
    });
    this.scrubber.addEventListener("input", () => this.change({ time: Number(this.scrubber.value), playing: false }));
    this.where = el("output", { class: "ss-where" });
    this.speed = el("select", { class: "ss-select", "aria-label": "Speed" },
      ...SPEEDS.map((speed) => el("option", { value: speed, selected: speed === "1" },
        speed === "1" ? "real time" : `${speed}×`)));
    this.speed.addEventListener("change", () => this.change({ speed: Number(this.speed.value) }));
    this.aligned = el("button", {
      type: "button", class: "ss-button ss-toggle", title: "One column for every output token",
      onclick: () => this.change({ aligned: !this.state.aligned }),
    }, "Align by token");
    this.legend = el("ul", { class: "ss-legend", "aria-label": "Legend" });
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
    this.sized = new ResizeObserver(() =>
      this.root.classList.toggle("ss-narrow", this.element.clientWidth < NARROW));
    this.sized.observe(element);
    this.deafen = listenToKeys(this.root, (event) => event.key === " " && this.toggle(), this.scrubber);
  }

  build() {
    const bar = el("div", { class: "ss-transport", role: "group", "aria-label": "Race" },
      el("div", { class: "ss-buttons" }, this.playing, this.restart),
      el("div", { class: "ss-scrub" }, this.scrubber), this.where, this.speed, this.aligned);
    return el("div", { class: "ss ss-race", role: "group", "aria-label": "Race", tabindex: -1 },
      el("div", { class: "ss-sticky" }, bar, this.legend), this.verdict, this.lanes, this.together,
      this.results, this.foot);
  }

  // A frame that was asked for stays so, and draws the new race.
  reset() {
    this.list = [];
    this.rest = "";
    this.labels = [];
    this.fault = "";
    this.state = { time: 0, playing: false, speed: Number(this.speed.value), aligned: false };
    this.lanes.replaceChildren();
    this.change({ record: true });
  }

  /**
   * Whole lines, each with the number of its lane; {"kind":"race","labels":[...]} may say which are to come.
   * @param {string} text
   */
  feed(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.trim()) continue;
      const fields = JSON.parse(line);
      if (fields.kind === "race") this.announce(fields.labels);
      else if (fields.kind === "fault" && fields.lane === undefined) this.lose(fields.sentence);
      else this.lane(fields.lane ?? 0).record.take(fields);
    }
    this.change({ record: true });
  }

  /** @param {string[]} labels */
  announce(labels) {
    this.labels = labels;
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
   * The race or its stream broke: what has not ended never will.
   * @param {string} sentence
   */
  lose(sentence) {
    if (!this.list.length) this.fault = sentence;
    for (const lane of this.list) if (!lane.over) lane.record.fail({ sentence });
    this.change({ record: true });
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
    if (changed.has("record")) {
      this.explain();
      write(this.foot, footer(this.running.map((lane) => lane.record.head.header)));
      drawResults(this);
    }
    const { time, playing, aligned } = this.state;
    for (const lane of this.list) lane.show(time);
    show(this.lanes, !aligned);
    show(this.together, aligned);
    this.aligned.setAttribute("aria-pressed", String(aligned));
    setIcon(this.playing, playing ? "pause" : "play", `${playing ? "Pause" : "Play"} (Space)`);
    for (const control of [this.playing, this.restart, this.scrubber]) control.disabled = !this.ready;
    this.scrubber.max = String(Math.ceil(this.length));
    this.scrubber.value = String(Math.round(time));
    this.scrubber.setAttribute("aria-valuetext", milliseconds(time));
    write(this.where, `${(time / 1000).toFixed(2)} s`);
    this.root.dataset.at = String(Math.round(time));
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
    const ended = this.state.time >= this.length;
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
      const time = this.state.time + Math.min(LONGEST_MS, Math.max(0, now - before)) * this.state.speed;
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
    this.deafen();
    if (this.request !== undefined) cancelAnimationFrame(this.request);
    this.themed.disconnect();
    this.sized.disconnect();
    this.element.replaceChildren();
  }
}

/** @param {string} label */
const region = (label) => ({ tabindex: 0, role: "region", "aria-label": label });
