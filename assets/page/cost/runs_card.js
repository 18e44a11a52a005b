// The card of recorded runs on every compared machine: their own steps, with passes as measured there.
import { dialog } from "../../player/dom/dialog.js";
import { el } from "../../player/dom/elements.js";
import { groupBy } from "../gallery.js";
import { shown } from "../shown.js";
import { Card } from "./card.js";
import { roundTicks } from "./chart.js";
import { FOLDER, OPEN } from "./choices.js";
import { menu } from "./controls.js";
import { curveName, machineName } from "./curves.js";
import { known } from "./draft_card.js";
import { LOOKS, RECORDED_LOOK } from "./passes_card.js";
import { lacking, replay, stepsOf, typicalError } from "./replay.js";

/** @import { Cost } from "./cost.js" */
/** @import { Curve, PlainPass, RecordedCosts, RunCosts } from "./types.d.ts" */

const OF_FOLDER = "folder:"; // begins what is asked of a run folder
const ROW = 30; // pixels of a run in the chart
const SPREAD = 0.22; // of a row, between the marks of one run
const MOST_STEPS = 400; // that are listed
const LEFT_OUT = "Projected: each step costs what its pass cost on the machine, and drafting the share of a pass over one token that it took "
  + "where the run was recorded. Left out: accepting and committing; texts of other lengths; that "
  + "the machine's model would accept other guesses; and that Kangaroo's passes skip the layers that drafted.";

const mean = (/** @type {number[]} */ values) => values.reduce((sum, each) => sum + each, 0) / values.length;

/**
 * Return the facts on the run in the Run tab.
 * @param {PlainPass[]} plain
 * @returns {RecordedCosts | null}
 */
const openRun = (plain) => {
  const { viewer } = shown;
  const { record } = viewer?.player ?? {};
  if (!viewer || !record?.play) return null;
  const { header } = record.head;
  const threads = header.threads && `${header.threads} thread${header.threads === 1 ? "" : "s"}`;
  const recorded = [header.processor || header.device, threads, header.dtype].filter(Boolean).join(", ");
  const pass = plain.find((each) => each.model === header.model.name && each.recorded === recorded);
  const steps = stepsOf(record.steps.filter(Boolean), pass);
  if (header.method === "autoregressive") steps.drafting = steps.fed.map(() => 0);
  return { ...steps, id: viewer.facts.run ?? "", label: header.label, title: viewer.facts.title ?? header.label, group: "",
    family: header.model.name, model: header.model.name, recorded, speedup: record.speedup ?? null, later_speedup: null };
};

export class RunsCard extends Card {
  /** @param {Cost} page */
  constructor(page) {
    super("Recorded runs on these machines", "projected", "The steps of a recorded run, as they would cost elsewhere; beside them what was "
      + "measured where it was recorded. The first step, which reads the prompt, is left out: over a whole run, as the Run tab counts it, "
      + "the speed-up is nearer to 1. Press a mark or a row to see the steps.", ["curve", "with", "runs", "drafting"], (row) => this.steps(row));
    this.page = page;
    /** @type {RecordedCosts[]} those that are shown, from the top */
    this.runs = [];
    this.folder = ""; // that the runs are of
    /** @type {Map<string, RunCosts | null>} groups that were asked for; null while there is no answer */
    this.answers = new Map();
    this.group = menu("Runs", (value) => page.choose({ runs: value }, true, "runs"));
    this.drafting = menu("Drafting costs", (value) => page.choose({ drafting: value === "none" ? "none" : "recorded" }, true, "drafting"));
    this.group.fill([{ name: "", options: [[OPEN, "The run in the Run tab"], [FOLDER, "The run folder in the Debug tab"]] }, ...groupBy(page.groups, ({ family }) => family)
      .map(([name, groups]) => ({ name, options: groups.map((each) => /** @type {[string, string]} */ ([each.id, each.name])) }))]);
    this.drafting.fill([{ name: "", options: [["recorded", "what it took when recorded"], ["none", "nothing (a bound)"]] }]);
    this.controls.append(el("div", { class: "app-cost-fields" }, this.group.node, this.drafting.node));
  }

  /**
   * Return the runs of a group; null until they are there.
   * @param {string} group
   */
  chosen(group) {
    const answer = this.answers.get(group);
    if (!answer) return null;
    if (group !== OPEN) return answer.runs;
    const run = openRun(answer.plain);
    return run ? [run] : [];
  }

  /** @param {string} group */
  async read(group) {
    this.answers.set(group, null);
    const answer = await (group.startsWith(OF_FOLDER) ? this.page.folderRuns(group.slice(OF_FOLDER.length)) : this.page.runs(group));
    if (answer) this.answers.set(group, answer);
    else this.answers.delete(group); // the next choice requests it again
    if (answer) this.page.draw();
  }

  /** @param {Cost} page */
  show({ compared, choices }) {
    this.drafting.show(choices.drafting);
    this.group.show(choices.runs);
    const group = choices.runs === FOLDER ? OF_FOLDER + (shown.debug?.opened.folder ?? "") : choices.runs;
    if (!this.answers.has(group)) this.read(group);
    const chosen = this.chosen(group);
    this.runs = chosen ?? [];
    this.folder = this.answers.get(group)?.folder ?? "";
    if (!this.runs.length) {
      const says = !chosen ? "Reading the steps of the recorded runs." : choices.runs === FOLDER
        ? "The run folder has no method that guesses, or does not tell what its steps read." : "There is no run in the Run tab yet: open one there.";
      return this.draw({ says: [says], charts: [], notes: [], table: () => ({ columns: [], rows: [], more: false }) });
    }
    const drafts = choices.drafting === "recorded";
    const projected = compared.map((curve) => this.runs.map((run) =>
      (lacking(run, curve, drafts) ? NaN : replay(run, curve, drafts).speedup)));
    const says = compared.map((curve, at) => this.sentence(curve, projected[at]));
    const high = Math.max(1.5, ...projected.flat().filter(Number.isFinite), ...this.runs.map((run) => run.later_speedup ?? 0));
    return this.draw({
      says: [...says.map((words, at) => ({ words, look: LOOKS[at] })), ...this.error(compared, projected)],
      charts: [{
        figure: {
          says: says.join(" "), height: 64 + ROW * this.runs.length, levelX: 1,
          x: { label: "speed-up after the first step", low: 0, high: high * 1.05, ticks: roundTicks(0, high * 1.05) },
          y: { label: "", low: 0.5 - this.runs.length, high: 0.5, ticks: this.runs.map((run, row) => [-row, this.name(run)]) },
          series: [
            ...compared.map((curve, at) => ({ name: curveName(curve), look: LOOKS[at], points: this.points(curve, projected[at], at) })),
            { name: "measured", look: RECORDED_LOOK, points: this.runs.flatMap(({ later_speedup: speedup, recorded }, row) => (speedup ? [{
              x: speedup, y: -row, measured: true, says: `${this.name(this.runs[row])}: measured ${speedup.toFixed(2)} times as fast (${recorded})`,
              press: () => this.steps(row) }] : [])) },
          ],
        },
        entries: [{ name: "measured where it was recorded", look: RECORDED_LOOK, measured: true },
          ...compared.map((curve, at) => ({ name: `projected: ${curveName(curve)}`, look: LOOKS[at], measured: false }))],
        level: "as fast as one token a pass",
      }],
      table: () => this.table(compared, projected, drafts),
      notes: [...this.of(group), `Recorded on ${[...new Set(this.runs.map(({ recorded }) => recorded))].join("; ")}.`, LEFT_OUT, ...this.between(compared)],
    });
  }

  /**
   * Say which run folder this is.
   * @param {string} group
   */
  of(group) {
    const { name } = this.answers.get(group) ?? {};
    return name ? [`All questions of the run folder “${name}”: each row is a method with all of its steps.`] : [];
  }

  /** @param {RecordedCosts} run */
  name({ group, label, title }) {
    return group === label ? title : label;
  }

  /**
   * @param {Curve} curve
   * @param {number[]} projected
   * @param {number} at
   */
  points(curve, projected, at) {
    return projected.flatMap((speedup, row) => (Number.isNaN(speedup) ? [] : [{
      x: speedup, y: -row + SPREAD * (at % 2 ? -1 : 1) * (1 + (at >> 1)) * 0.75, measured: false,
      says: `${this.name(this.runs[row])}: projected ${speedup.toFixed(2)} times as fast (${curveName(curve)})`, press: () => this.steps(row, curve) }]));
  }

  /**
   * Return what is seen for one machine.
   * @param {Curve} curve
   * @param {number[]} projected
   */
  sentence(curve, projected) {
    const ranked = projected.map((speedup, row) => ({ speedup, run: this.runs[row] })).filter(({ speedup }) => !Number.isNaN(speedup))
      .sort((a, b) => b.speedup - a.speedup);
    const drafts = this.page.choices.drafting === "recorded";
    if (!ranked.length) return `${curveName(curve)}: no projection, since ${lacking(this.runs[0], curve, drafts)}.`;
    const [best] = ranked, worst = ranked[ranked.length - 1];
    const faster = ranked.filter(({ speedup }) => Number(speedup.toFixed(2)) > 1).length;
    if (ranked.length === 1) return `${curveName(curve)}: ${this.name(best.run)} is projected to be ${best.speedup.toFixed(2)} times as fast as one token a pass.`;
    const what = this.page.choices.runs === FOLDER ? "method" : "run";
    const first = faster ? `${faster} of ${ranked.length} ${what}s are projected to be faster than one token a pass`
      : `do not speculate here, no ${what} is projected to be faster than one token a pass`;
    return `${curveName(curve)}: ${first}. The fastest is ${this.name(best.run)} (${best.speedup.toFixed(2)} times), the slowest ${this.name(worst.run)} (${worst.speedup.toFixed(2)}).`;
  }

  /**
   * Return how far projections are from what was measured, for a machine that the runs were recorded on.
   * @param {Curve[]} compared
   * @param {number[][]} projected
   */
  error(compared, projected) {
    return compared.flatMap((curve, at) => {
      const pairs = this.runs.flatMap(({ recorded, model, later_speedup: speedup }, row) =>
        (recorded === `${machineName(curve)}, ${curve.dtype}` && model === curve.model ? [{ projected: projected[at][row], measured: speedup }] : []));
      const error = typicalError(pairs);
      return error === null ? [] : [`These runs were recorded on the machine of “${curveName(curve)}”: half of its projections are within `
        + `${Math.ceil(100 * error)}% of what was measured.`];
    });
  }

  /** @param {Curve[]} compared */
  between(compared) {
    return compared.flatMap((curve) => {
      const steps = this.runs.reduce((sum, { fed }) => sum + fed.length, 0);
      const between = this.runs.reduce((sum, run) => sum + replay(run, curve, false).between, 0);
      return between ? [`${curveName(curve)}: ${between} of the ${steps} steps read a number of tokens that was not measured; their cost is read off the broken line.`] : [];
    });
  }

  /**
   * @param {Curve[]} compared
   * @param {number[][]} projected
   * @param {boolean} drafts
   */
  table(compared, projected, drafts) {
    return {
      columns: ["Run", "Tokens per step", "Tokens read per step", "Measured speed-up after the first step", "of the whole run", ...compared.map((curve) => `Projected: ${curveName(curve)}`), "Not projected"],
      more: false,
      rows: this.runs.map((run, row) => [this.name(run), known(mean(run.wrote)), known(mean(run.fed)), run.later_speedup && known(run.later_speedup), run.speedup && known(run.speedup),
        ...projected.map((each) => known(each[row])), compared.map((curve) => lacking(run, curve, drafts)).find(Boolean) ?? null]),
    };
  }

  /**
   * Return a button that opens a step in the player, or its name where there is nothing to open.
   * @param {RecordedCosts} run
   * @param {number} at
   * @param {() => void} before
   */
  leads(run, at, before) {
    const place = run.at?.[at], { folder } = this;
    if (place === null) return el("span", {}, "A step");
    return el("button", { type: "button", class: "ss-button ss-worded", onclick: async () => {
      before();
      await (place ? this.page.playOf(folder, place) : this.page.play(run.id, at + 1));
    } }, place ? `Run ${place[0]}, step ${place[1]}` : `Step ${at + 1}`);
  }

  /**
   * List the steps of a run, those first that cost most for each token.
   * @param {number} row
   * @param {Curve} curve
   */
  steps(row, curve = this.page.compared[0]) {
    const run = this.runs[row];
    const { costs } = replay(run, curve, this.page.choices.drafting === "recorded");
    const order = run.fed.map((_, at) => at).sort((a, b) => costs[b] / run.wrote[b] - costs[a] / run.wrote[a]);
    const status = el("p", { class: "ss-quiet", role: "status" }, "Those that cost most for each token come first. Press one to open it in the player.");
    const box = dialog(`Steps of ${this.name(run)}`, el("div", { class: "ss-contents" }, el("p", { class: "ss-quiet" }, `Costs are projected: ${curveName(curve)}.`), status,
      el("ol", { class: "app-debug-steps" }, ...order.slice(0, MOST_STEPS).map((at) => el("li", { class: "app-debug-step" },
        this.leads(run, at, () => box.close()), // or the player could not have the keys
        el("span", {}, `reads ${run.fed[at]}, writes ${run.wrote[at]}: ${Number.isNaN(costs[at]) ? "not projected" : `${costs[at].toFixed(2)} passes`}`))))));
    box.addEventListener("close", () => box.remove());
    this.node.append(box);
    box.showModal();
  }
}
