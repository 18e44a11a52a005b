// The bar that moves through a run. It stays in sight.
{
  const S = (globalThis.Specscope ??= {});
  const SVG_TICKS = 1000; // the scrubber's width in the units of its ticks

  S.Transport = class {
    constructor(player) {
      this.player = player;
      this.buttons = {
        first: S.button("first", "First step", () => player.seek(0), { key: "Home" }),
        back: S.button("back", "Step back", () => player.stepBy(-1), { key: "←" }),
        play: S.button("play", "Play", () => player.togglePlay(), { key: "Space", class: "ss-button ss-main" }),
        forward: S.button("forward", "Step forward", () => player.stepBy(1), { key: "→" }),
        last: S.button("last", "Last step", () => player.seek(player.record.last), { key: "End" }),
      };
      this.scrubber = S.el("input", {
        type: "range", min: 0, max: 0, value: 0, step: 1, class: "ss-scrubber", "aria-label": "Step",
        oninput: () => player.seek(Number(this.scrubber.value)),
      });
      [this.good, this.bad] = ["good", "bad"].map((name) => S.svg("path", { class: `ss-tick-${name}` }));
      this.ticks = S.svg("svg", {
        class: "ss-ticks", viewBox: `0 0 ${SVG_TICKS} 10`, preserveAspectRatio: "none", "aria-hidden": "true",
      }, this.good, this.bad);
      this.where = S.el("output", { class: "ss-where" });
      this.bar = S.el("div", { class: "ss-transport", role: "group", "aria-label": "Playback" },
        S.el("div", { class: "ss-row" }, S.el("div", { class: "ss-buttons" }, ...Object.values(this.buttons)),
          S.el("div", { class: "ss-scrub" }, this.ticks, this.scrubber), this.where, this.tools()),
        S.el("div", { class: "ss-row" }, this.phases(), this.speeds(), this.jumps(),
          (this.find = new S.Find(player)).input));
      this.ticked = "";
    }

    phases() {
      const { player } = this;
      this.phase = S.PHASES.map((name) => S.el("button", {
        type: "button", class: "ss-phase", title: PHASE_WORDS[name],
        onclick: () => player.seek(player.state.step, name),
      }, name));
      return S.el("div", { class: "ss-phases", role: "group", "aria-label": "Phase of the step" }, ...this.phase);
    }

    speeds() {
      const { player } = this;
      this.speed = S.el("select", {
        class: "ss-select", "aria-label": "Speed", onchange: () => player.change({ speed: this.speed.value }),
      }, ...S.SPEEDS.map(([value, label]) => S.el("option", { value }, label)));
      this.substeps = S.el("button", {
        type: "button", class: "ss-button ss-toggle", title: "Play phase by phase, or whole steps",
        onclick: () => player.change({ substeps: !player.state.substeps }),
      }, "Sub-steps");
      return S.el("div", { class: "ss-speeds" }, this.speed, this.substeps);
    }

    jumps() {
      const { player } = this;
      const made = Object.entries(S.JUMPS).map(([name, { label }]) => S.el("button", {
        type: "button", class: "ss-button ss-worded", title: `Go to the next step with a ${label}`,
        "aria-label": `Next ${label}`, onclick: () => player.jump(name, 1),
      }, label));
      return S.el("div", { class: "ss-jumps", role: "group", "aria-label": "Go to the next" },
        S.el("span", { class: "ss-quiet", "aria-hidden": "true" }, "Next"), ...made);
    }

    tools() {
      const { player } = this;
      this.follow = S.button("live", "Follow the run", () => player.follow(), {
        text: "Follow live", class: "ss-button ss-worded ss-live",
      });
      this.follow.hidden = true;
      this.link = S.button("link", "Copy link", () => player.copyLink());
      this.link.hidden = !player.on.link;
      // Where there is little room, what is used less waits behind a button.
      this.more = S.button("more", "More controls", () => {
        this.more.setAttribute("aria-expanded", String(this.bar.classList.toggle("ss-unfolded")));
      }, { "aria-expanded": "false", class: "ss-button ss-more" });
      return S.el("div", { class: "ss-tools" }, this.follow, this.link, this.more,
        S.button("full", "Full screen", () => S.fullScreen(player.root)),
        S.button(null, "Keys", () => player.help.open(), { key: "?", text: "?" }));
    }

    update(changed) {
      const { record, state } = this.player;
      if (changed.has("record")) this.drawTicks();
      if (changed.has("record") || changed.has("step")) this.drawPlace();
      if (changed.has("phase") || changed.has("step") || changed.has("record")) this.drawPhase();
      if (changed.has("playing")) {
        S.setIcon(this.buttons.play, state.playing ? "pause" : "play", `${state.playing ? "Pause" : "Play"} (Space)`);
      }
      if (changed.has("speed") && this.speed.value !== state.speed) this.speed.value = state.speed;
      if (changed.has("substeps")) this.substeps.setAttribute("aria-pressed", String(state.substeps));
      S.show(this.follow, record.live && !state.follow && record.last >= 0);
    }

    drawPlace() {
      const { record, state } = this.player;
      const none = record.last < 0;
      this.scrubber.max = String(Math.max(0, record.last));
      this.scrubber.value = String(Math.max(0, state.step));
      this.scrubber.disabled = none;
      for (const button of Object.values(this.buttons)) button.disabled = none;
      this.scrubber.setAttribute("aria-valuetext", none ? "no steps yet" : `step ${state.step} of ${record.last}`);
      S.write(this.where, none ? "–" : `${state.step} / ${record.last}`);
      this.where.title = "The step on the screen, and the last one";
    }

    drawPhase() {
      const { state, record } = this.player;
      const at = S.PHASES.indexOf(state.phase);
      this.phase.forEach((button, i) => {
        button.disabled = record.last < 0;
        button.classList.toggle("ss-done", i < at);
        button.setAttribute("aria-pressed", String(i === at));
      });
    }

    // Ticks below the scrubber where the target corrected a guess, above it where many guesses held.
    drawTicks() {
      const { record } = this.player;
      const known = `${record.version}/${record.last}`;
      if (this.ticked === known) return;
      this.ticked = known;
      const big = S.bigAcceptance(record);
      const x = (k) => ((k / Math.max(1, record.last)) * SVG_TICKS).toFixed(1);
      const path = (test, from) => record.steps.map((step, k) => (test(step) ? `M${x(k)} ${from}v4` : "")).join("");
      this.good.setAttribute("d", path((step) => step.accepted >= big, 0));
      this.bad.setAttribute("d", path(S.isRejection, 6));
    }
  };

  const PHASE_WORDS = {
    propose: "The method proposes guesses", verify: "The target reads them all in one pass",
    accept: "Guesses that are the target's own choice are accepted", commit: "The accepted tokens join the text",
  };
}
