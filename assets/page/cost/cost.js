// The Cost tab: when speculation pays, computed in the browser from the costs of passes on measured machines.
import { copyLink } from "../../player/controls/save.js";
import { el, write } from "../../player/dom/elements.js";
import { modelName } from "../../player/text/words.js";
import { MOST_PROBLEMS, addressOf, asked, write as writeAddress } from "../address.js";
import { answerOf } from "../answers.js";
import { onceInSight, showInPlayer, untilSeen } from "../show_in_player.js";
import { shown } from "../shown.js";
import { linesIn } from "../streams.js";
import { turnTo } from "../tabs.js";
import { MOST_CURVES, WINDOW_RUNS, choicesIn, queryOf } from "./choices.js";
import { menu } from "./controls.js";
import { curveName, machineName } from "./curves.js";
import { DraftCard } from "./draft_card.js";
import { HeadsCard } from "./heads_card.js";
import { PassesCard } from "./passes_card.js";
import { RooflineCard } from "./roofline_card.js";
import { RunsCard } from "./runs_card.js";
import { TreesCard } from "./trees_card.js";
import { WindowCard } from "./window_card.js";

/** @import { RunLine } from "../types.d.ts" */
/** @import { Choices, CostIo, Curve } from "./types.d.ts" */

const ABOUT = "A guess is only worth its pass if reading several tokens costs hardly more than reading one. Here is what it costs on measured "
  + "machines, and what follows from that. To add your own: python -m decoding cost.";

export class Cost {
  /**
   * @param {HTMLElement} element
   * @param {CostIo} io
   */
  constructor(element, { props, server }) {
    this.server = server;
    this.curves = props.curves;
    this.groups = props.groups;
    this.written = props.written;
    this.treeRuns = props.tree_runs;
    this.choices = choicesIn(new URLSearchParams(), this.curves, this.groups).choices;
    this.last = ""; // the control that made the newest entry of the browser's history
    this.scrolled = 0; // where the page was left for the player
    this.notice = el("p", { class: "app-cost-notice", role: "alert", hidden: true });
    this.machine = menu("Machine", (value) => this.chooseCurve((curve) => machineOf(curve) === value));
    this.model = menu("Model", (value) => this.chooseCurve((curve) => this.sameMachine(curve) && curve.model === value));
    this.context = menu("Text before the pass", (value) =>
      this.chooseCurve((curve) => this.sameMachine(curve) && curve.model === this.curve.model && curve.context === Number(value)));
    this.with = el("div", {});
    this.withSummary = el("summary", {});
    this.cards = [new PassesCard(), new DraftCard(this), new RunsCard(this), new WindowCard(this), new TreesCard(this),
      new HeadsCard(this), new RooflineCard(this)];
    this.on = { link: () => addressOf(this.address) };
    /** @type {HTMLElement} */
    this.copy = el("button", { type: "button", class: "ss-button ss-worded", onclick: () => copyLink(this) }, "Copy link");
    /** @type {HTMLElement} */
    this.root = el("div", { class: "ss ss-cost", tabindex: -1 },
      el("div", {}, el("h2", {}, "When does speculation pay?"), el("p", { class: "ss-quiet" }, ABOUT)), this.notice,
      el("div", { class: "app-cost-fields" }, this.machine.node, this.model.node, this.context.node, this.copy),
      el("details", { class: "app-cost-with" }, this.withSummary, this.with), ...this.cards.map(({ node }) => node));
    element.replaceChildren(this.root);
    if (!this.curves.length) {
      this.root.replaceChildren(el("p", {}, "No measured machine is at hand: python -m decoding cost measures this one."));
    }
    this.gone = new AbortController();
    addEventListener("popstate", () => this.returned(), { signal: this.gone.signal });
    this.width = 0;
    this.wasHidden = false; // behind another tab
    this.sized = new ResizeObserver(() => this.resized());
    onceInSight(this.root, () => {
      this.sized.observe(this.root);
      this.returned();
    });
  }

  get curve() {
    return this.curves.find(({ id }) => id === this.choices.curve) ?? this.curves[0];
  }

  /** The curves that are seen, the chosen one first. @returns {Curve[]} */
  get compared() {
    return [this.curve, ...this.curves.filter(({ id }) => this.choices.with.includes(id))];
  }

  get address() {
    return queryOf(this.choices, this.curves, this.groups);
  }

  // The interface that `copyLink` needs: the whole tab is one place.
  place() {
    return null;
  }

  /** @param {string} words */
  announce(words) {
    write(this.copy, words);
  }

  /** @param {string} sentence */
  say(sentence) {
    write(this.notice, sentence);
    this.notice.hidden = !sentence;
  }

  /**
   * Request the steps of recorded runs.
   * @param {string} group
   */
  async runs(group) {
    const costs = await answerOf(() => this.server.cost_runs(group), (sentence) => this.say(sentence));
    return costs && "runs" in costs ? costs : null;
  }

  /**
   * Request the steps of the methods of a run folder.
   * @param {string} folder the first one where it is empty
   */
  async folderRuns(folder) {
    const answer = await answerOf(() => this.server.debug_costs(folder), (sentence) => this.say(sentence));
    return answer && "runs" in answer ? { ...answer, plain: [] } : null;
  }

  /**
   * Open a step of a run folder in the player.
   * @param {string} folder
   * @param {[run: number, step: number]} place
   */
  async playOf(folder, [number, step]) {
    const answer = await answerOf(() => this.server.debug_play([folder, number, step]), (sentence) => this.say(sentence));
    if (!answer?.lines) return;
    this.scrolled = scrollY;
    await showInPlayer(linesIn(answer.lines), answer.run ?? "", step);
  }

  /** Request the recorded runs of Lookahead with several windows. */
  async windows() {
    const answer = await answerOf(() => this.server.cost_runs(WINDOW_RUNS), (sentence) => this.say(sentence));
    return answer && "windows" in answer ? answer.windows : null;
  }

  // What the address names, when the page opens, and when the visitor goes back or forward.
  async returned() {
    const query = asked();
    if (query.get("screen") !== "cost") return this.draw();
    const { choices, problems } = choicesIn(query, this.curves, this.groups);
    this.choices = choices;
    this.last = "";
    this.say(problems.slice(0, MOST_PROBLEMS).join(" "));
    await untilSeen(this.root);
    this.draw();
    if (this.scrolled) scrollTo({ top: this.scrolled });
    this.scrolled = 0;
    return undefined;
  }

  /**
   * Change choices. The address follows when a slider is released; releasing the same one again adds no other entry to the
   * browser's history.
   * @param {Partial<Choices>} chosen
   * @param {boolean} done
   * @param {string} control
   */
  choose(chosen, done, control) {
    this.choices = { ...this.choices, ...chosen };
    this.draw(chosen);
    if (!done) return;
    this.say("");
    writeAddress(addressOf(this.address), control !== this.last);
    this.last = control;
  }

  /** @param {Curve} curve */
  sameMachine(curve) {
    return machineOf(curve) === machineOf(this.curve);
  }

  /** @param {(curve: Curve) => boolean} fits */
  chooseCurve(fits) {
    const curve = this.curves.find(fits);
    if (curve) this.choose({ curve: curve.id, with: this.choices.with.filter((id) => id !== curve.id) }, true, "curve");
  }

  resized() {
    const { clientWidth } = this.root;
    if (this.wasHidden && clientWidth) this.draw({ runs: this.choices.runs }); // another run or folder may be open in its tab
    this.wasHidden = !clientWidth;
    if (!clientWidth || clientWidth === this.width) return;
    this.width = clientWidth;
    for (const card of this.cards) card.width = 0;
    this.draw();
  }

  /** @param {Partial<Choices>} changed what the cards that show it are drawn for */
  draw(changed = this.choices) {
    if (!this.root.offsetParent || !this.curves.length) return;
    if (changed.curve ?? changed.with) this.drawMenus();
    for (const card of this.cards) if (card.uses.some((name) => name in changed)) card.show(this);
  }

  drawMenus() {
    const { curve, curves, choices } = this;
    const ours = curves.filter((each) => this.sameMachine(each));
    fillWith(this.machine, curves.map((each) => [machineOf(each), machineWords(each)]), machineOf(curve));
    fillWith(this.model, ours.map(({ model }) => [model, modelName(model)]), curve.model);
    fillWith(this.context, ours.filter(({ model }) => model === curve.model).map(({ context }) =>
      [String(context), `${context.toLocaleString("en")} tokens`]), String(curve.context));
    write(this.withSummary, `Other measurements shown: ${choices.with.length || "none"} (choose up to ${MOST_CURVES - 1})`);
    const others = curves.filter(({ id }) => id !== curve.id);
    if (this.with.childElementCount !== others.length || this.with.dataset.curve !== curve.id) {
      this.with.dataset.curve = curve.id;
      this.with.replaceChildren(...others.map((other) => this.comparison(other)));
    }
    for (const box of this.with.querySelectorAll("input")) {
      box.checked = choices.with.includes(box.value);
      box.disabled = !box.checked && choices.with.length >= MOST_CURVES - 1;
    }
  }

  /** @param {Curve} other */
  comparison(other) {
    const box = el("input", { type: "checkbox", value: other.id });
    box.addEventListener("change", () => this.choose({ with: box.checked ? [...this.choices.with, other.id]
      : this.choices.with.filter((id) => id !== other.id) }, true, "with"));
    return el("label", {}, box, `${curveName(other)}${other.here ? " (measured here)" : ""}`);
  }

  /**
   * Open a step of a run in the player.
   * @param {string} run
   * @param {number} step
   */
  async play(run, step) {
    const { viewer } = shown;
    if (!viewer) return;
    this.scrolled = scrollY;
    if (viewer.facts.run === run) {
      writeAddress(addressOf(`run=${run}`, { step }), true);
      turnTo("run");
      viewer.opening?.leave();
      await untilSeen(viewer.root);
      viewer.player.goto({ step });
      viewer.player.root.focus({ preventScroll: true });
      return;
    }
    const answer = await answerOf(() => this.server.open_recording(run), (sentence) => this.say(sentence));
    /** @type {RunLine} */
    const opens = { kind: "host", step };
    if (answer) await showInPlayer([...linesIn(answer.lines ?? ""), opens], run, step);
  }

  destroy() {
    this.gone.abort();
    this.sized.disconnect();
  }
}

/** @param {Curve} curve */
const machineOf = ({ id }) => id.slice(0, id.indexOf(":"));

/** @param {Curve} curve */
const machineWords = (curve) => `${machineName(curve)}, ${curve.dtype}, ${curve.date}${curve.here ? " (measured here)" : ""}`;

/**
 * Fill a menu with the different ones of some options.
 * @param {ReturnType<typeof menu>} control
 * @param {string[][]} options
 * @param {string} chosen
 */
const fillWith = (control, options, chosen) => {
  const different = new Map(options.map(([value, words]) => [value, words]));
  control.fill([{ name: "", options: [...different] }]);
  control.show(chosen);
};

/**
 * @param {HTMLElement} element
 * @param {CostIo} io
 */
export const showCost = (element, io) => {
  shown.cost?.destroy();
  shown.cost = new Cost(element, io);
};
