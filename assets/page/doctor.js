// Shows the result of an examination: a verdict in words, both curves, and all numbers as tables.
import { el } from "../player/dom/elements.js";
import { folded, showJobReport, table, verdict } from "./job_report.js";

/** @import { Io, Report } from "./types.d.ts" */

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, doubleClick: false, showTips: false };

/**
 * @param {HTMLElement} element
 * @param {Io} io
 */
export const showDoctor = (element, io) => showJobReport(element, io, {
  name: "doctor", heading: "Doctor", starts: ".app-examine", sections, drawn: drawChart });

/** @param {Report} report */
const sections = (report) => [
  verdict(report.verdict, report.healthy),
  report.acceptance_given.length > 0 && el("div", { class: "app-doctor-chart", role: "img",
    "aria-label": "Acceptance by the position of a guess: the table below has its numbers" }),
  report.acceptance_given.length > 0 && acceptance(report),
  report.probes.length > 0 && folded("What was tried", table(["Changed", "Tokens per step", "Gain", "Interval"],
    [["nothing, as given", number(report.tokens_per_step_given), "", ""], ...report.probes.map((probe) => [probe.name,
      number(probe.tokens_per_step), signed(probe.gain), `${signed(probe.interval[0])} to ${signed(probe.interval[1])}`])])),
  report.evidence.length > 0 && folded(
    report.condition === "faulty" ? "Evidence for the mended drafter" : "Evidence for the drafter", table(["Evidence", "", "Found"],
    report.evidence.map(({ name, fine, sentence }) => [name, fine ? "ok" : "poor", sentence]))),
  folded("Checks of its files", table(["Check", "", "Found"],
    report.checks.map(({ name, fine, note, sentence }) => [name, note ? "note" : fine ? "ok" : "fault", sentence]))),
].filter((part) => part !== false);

/** @param {Report} report */
const acceptance = ({ acceptance_given: given, acceptance_best: best, condition }) => {
  const guesses = given.map((_, i) => `Guess ${i + 1}`);
  const rows = [["as given", ...given.map(percent)], ...(condition !== "faulty" ? [] : [["mended", ...best.map(percent)]])];
  return table(["Accepted", ...guesses], rows);
};

/** @param {number | null} value */
const number = (value) => value === null ? "–" : value.toFixed(2);

/** @param {number} value */
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

/** @param {number} share */
const percent = (share) => `${Math.round(100 * share)}%`;

/**
 * The library of charts may still be on its way: the table says the same.
 * @param {HTMLElement} element
 * @param {Report} report
 */
const drawChart = (element, { charts }) => {
  const place = /** @type {HTMLElement | null} */ (element.querySelector(".app-doctor-chart"));
  const chart = charts[document.body.classList.contains("dark") ? "dark" : "light"];
  if (!place || !chart) return;
  if (globalThis.Plotly) globalThis.Plotly.react(place, chart.data, chart.layout, CONFIG);
  else setTimeout(() => element.isConnected && drawChart(element, /** @type {Report} */ ({ charts })), 500);
};
