// The bar that moves through a run. It stays in sight.
import { SPEEDS } from "./clock.js";
import { Find } from "./find.js";
import { toggleFullScreen } from "./full_screen.js";
import { button, setIcon } from "../dom/buttons.js";
import { el, show, svg, write } from "../dom/elements.js";
import { PHASES } from "../stream/fates.js";
import { plural, stepName } from "../text/words.js";
import { JUMPS, bigAcceptance, isRejection } from "../stream/jumps.js";

/** @import { Player } from "../player.js" */
/** @import { Jump } from "../stream/jumps.js" */
/** @import { StepLine } from "../types.d.ts" */

const SVG_TICKS = 1000; // the scrubber's width in the units of its ticks

export class Transport {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.buttons = {
      first: button("first", "First step", () => player.seek(0), { key: "Home" }),
      back: button("back", "Step back", () => player.stepBy(-1), { key: "←" }),
      play: button("play", "Play", () => player.togglePlay(), { key: "Space", class: "ss-button ss-main" }),
      forward: button("forward", "Step forward", () => player.stepBy(1), { key: "→" }),
      last: button("last", "Last step", () => player.seek(player.record.last), { key: "End" }),
    };
    this.scrubber = el("input", {
      type: "range", min: 0, max: 0, value: 0, step: 1, class: "ss-scrubber", "aria-label": "Step",
    });
    this.scrubber.addEventListener("input", () => player.seek(Number(this.scrubber.value), "commit", false));
    this.good = svg("path", { class: "ss-tick-good" });
    this.bad = svg("path", { class: "ss-tick-bad" });
    this.ticks = svg("svg", {
      class: "ss-ticks", viewBox: `0 0 ${SVG_TICKS} 10`, preserveAspectRatio: "none", "aria-hidden": "true",
    }, this.good, this.bad);
    this.where = el("output", { class: "ss-where" });
    this.phase = PHASES.map((name) => el("button", {
      type: "button", class: "ss-phase", title: PHASE_WORDS[name],
      onclick: () => player.seek(player.state.step, name),
    }, name));
    this.speed = el("select", { class: "ss-select ss-speed", "aria-label": "Speed" },
      ...SPEEDS.map(([value, label]) => el("option", { value }, label)));
    this.speed.addEventListener("change", () => player.change({ speed: this.speed.value }));
    this.substeps = el("button", {
      type: "button", class: "ss-button ss-toggle", title: "Play phase by phase, or whole steps",
      onclick: () => player.change({ substeps: !player.state.substeps }),
    }, "Sub-steps");
    this.follow = button("live", "Follow the run", () => player.follow(), {
      text: "Follow live", class: "ss-button ss-worded ss-live",
    });
    this.follow.hidden = true;
    this.link = button("link", "Copy link", () => player.copyLink());
    this.link.hidden = !player.on.link;
    this.more = button("more", "More controls", () => this.unfold(Boolean(this.drawer.hidden)), {
      "aria-expanded": "false", class: "ss-button ss-more",
    });
    this.find = new Find(player);
    // Rarely used controls are behind a button, and over the page when they are shown.
    this.drawer = el("div", { class: "ss-drawer", hidden: true, role: "group", "aria-label": "More controls" },
      this.substeps, this.jumps(), this.find.input, this.link);
    this.ticked = "";
    this.bar = this.build();
    this.bar.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || this.drawer.hidden) return;
      this.unfold(false);
      this.more.focus({ preventScroll: true });
      event.preventDefault(); // what is pinned stays
    });
  }

  build() {
    const group = { role: "group", "aria-label": "Phase of the step" };
    return el("div", { class: "ss-transport", role: "group", "aria-label": "Playback" },
      el("div", { class: "ss-buttons" }, ...Object.values(this.buttons)),
      el("div", { class: "ss-scrub" }, this.ticks, this.scrubber), this.where,
      el("div", { class: "ss-phases", ...group }, ...this.phase), this.speed, this.tools(), this.drawer);
  }

  jumps() {
    const { player } = this;
    /** @param {Jump} name */
    const jump = (name) => {
      const { label } = JUMPS[name];
      return el("button", {
        type: "button", class: "ss-button ss-worded", title: `Go to the next step with a ${label}`,
        "aria-label": `Next ${label}`, onclick: () => player.jump(name, 1),
      }, label);
    };
    return el("div", { class: "ss-jumps", role: "group", "aria-label": "Go to the next" },
      el("span", { class: "ss-quiet", "aria-hidden": "true" }, "Next"),
      jump("rejection"), jump("hit"), jump("branch"));
  }

  tools() {
    const { player } = this;
    return el("div", { class: "ss-tools" }, this.follow, this.more,
      button("full", "Full screen", () => toggleFullScreen(player.root, player), { key: "f" }),
      button(null, "Keys and words", () => player.help.open(), { key: "?", text: "?" }));
  }

  /** @param {boolean} wanted */
  unfold(wanted) {
    show(this.drawer, wanted);
    this.more.setAttribute("aria-expanded", String(wanted));
  }

  search() {
    this.unfold(true);
    this.find.input.focus();
  }

  /** @param {Set<string>} changed */
  update(changed) {
    const { record, state } = this.player;
    this.drawTicks();
    if (["record", "step", "asking"].some((name) => changed.has(name))) this.drawPlace();
    if (changed.has("phase") || changed.has("step") || changed.has("record")) this.drawPhase();
    if (changed.has("playing")) {
      setIcon(this.buttons.play, state.playing ? "pause" : "play", `${state.playing ? "Pause" : "Play"} (Space)`);
    }
    if (changed.has("speed") && this.speed.value !== state.speed) this.speed.value = state.speed;
    if (changed.has("substeps")) this.substeps.setAttribute("aria-pressed", String(state.substeps));
    show(this.follow, record.live && !state.follow && record.last >= 0);
  }

  drawPlace() {
    const { record, state } = this.player;
    const none = record.last < 0;
    const { step, asking } = state;
    this.scrubber.max = String(Math.max(0, asking ? step : record.last));
    this.scrubber.value = String(Math.max(0, step));
    this.scrubber.disabled = none || asking; // its length is the run's
    for (const each of Object.values(this.buttons)) each.disabled = none;
    const [at, name] = [`${step || "prompt"}`, `step ${stepName(step)}`];
    this.scrubber.setAttribute("aria-valuetext", none ? "no steps yet" : asking ? name : `${name} of ${record.last}`);
    write(this.where, none ? "–" : asking ? at : `${at} / ${record.last}`);
    this.where.style.minWidth = `${Math.max(6, String(record.last).length) + String(record.last).length + 3}ch`; // nothing beside it moves as the steps count up
    this.where.title = asking ? "The step on the screen" :
      `The step on the screen, and the last one. Step 0 reads the prompt: ${plural(record.last + 1, "pass", "passes")} in all`;
  }

  drawPhase() {
    const { state, record } = this.player;
    const at = PHASES.indexOf(state.phase);
    this.phase.forEach((each, i) => {
      each.disabled = record.last < 0;
      each.classList.toggle("ss-done", i < at);
      each.setAttribute("aria-pressed", String(i === at));
    });
  }

  // Ticks below the scrubber where the target corrected a guess, above it where many guesses held.
  drawTicks() {
    const { record, state, told } = this.player;
    const until = state.asking ? 0 : told;
    const ticks = `${record.version}/${record.last}/${until}`;
    if (this.ticked === ticks) return;
    this.ticked = ticks;
    const big = bigAcceptance(record);
    /** @param {number} k */
    const x = (k) => ((k / Math.max(1, record.last)) * SVG_TICKS).toFixed(1);
    /**
     * @param {(step: StepLine) => boolean} test
     * @param {number} from
     */
    const path = (test, from) => record.steps.map((step, k) => (k < until && test(step) ? `M${x(k)} ${from}v4` : "")).join("");
    this.good.setAttribute("d", path((step) => step.accepted >= big, 0));
    this.bad.setAttribute("d", path((step) => isRejection(step, record), 6));
  }
}

const PHASE_WORDS = {
  propose: "The method proposes guesses", verify: "The target reads them all in one pass",
  answers: "The target's likeliest token at every guess, before any is judged",
  accept: "Guesses that are the target's own choice are accepted", commit: "The accepted tokens join the text",
};
