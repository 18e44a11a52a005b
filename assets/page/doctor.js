// What an examination finds: a verdict in words, both curves, and all numbers as tables.
import { el } from "../player/dom/elements.js";
import { JobStream } from "./streams.js";

/** @import { ExaminationLine, Io, Report } from "./types.d.ts" */

const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, doubleClick: false, showTips: false };

/** @typedef {{ title: string, sentence: string, share: number | null, report?: Report }} State */

/**
 * @param {HTMLElement} element
 * @param {Io} io
 */
export const showDoctor = (element, io) => {
  const section = el("section", { class: "app-doctor", "aria-label": "Doctor", hidden: true });
  element.replaceChildren(section);
  /** @type {State | null} */
  let state = null;
  const draw = () => {
    section.hidden = !state;
    if (!state) return;
    const { title, sentence, share, report } = state;
    section.replaceChildren(head(title, () => { state = null; draw(); }),
      ...(report ? sections(report) : [waiting(sentence, share)]));
    if (report) drawChart(section, report);
  };
  /** @param {Partial<State>} changes */
  const change = (changes) => {
    if (state) state = { ...state, ...changes };
    draw();
  };
  /** @type {JobStream<ExaminationLine>} */
  const stream = new JobStream(io, {
    name: "examination", starts: ".app-examine", stop: "run-stop",
    take(lines, anew) {
      if (anew) state = { title: "a drafter", sentence: "Waiting for the engine.", share: null };
      for (const line of lines) {
        if (line.kind === "host") change({ title: line.title });
        else if (line.kind === "done") change({ report: line.report });
        else change({ sentence: line.sentence, share: line.kind === "state" ? line.share : null });
      }
    },
    refused(sentence) {
      state = { title: "a drafter", sentence, share: null };
      draw();
    },
    lost: (sentence) => change({ sentence, share: null }),
  });
  stream.read();
  new MutationObserver(() => state?.report && drawChart(section, state.report))
    .observe(document.body, { attributes: true, attributeFilter: ["class"] });
};

/**
 * @param {string} title
 * @param {() => void} close
 */
const head = (title, close) => el("div", { class: "app-bar" },
  el("h2", { class: "app-title" }, `Doctor: ${title}`),
  el("button", { type: "button", class: "app-close", "aria-label": "Close", onclick: close }));

/**
 * @param {string} sentence
 * @param {number | null} share
 */
const waiting = (sentence, share) => el("div", { role: "status" }, el("p", {}, sentence),
  share !== null && el("progress", { max: 1, value: share, "aria-label": sentence }));

/** @param {Report} report */
const sections = (report) => [
  el("p", { class: `app-verdict ${report.healthy ? "app-healthy" : "app-ill"}`, role: "status" }, report.verdict),
  report.acceptance_given.length > 0 && el("div", { class: "app-doctor-chart", role: "img",
    "aria-label": "Acceptance by the position of a guess: the table below has its numbers" }),
  report.acceptance_given.length > 0 && acceptance(report),
  report.probes.length > 0 && folded("What was tried", table(["Changed", "Tokens a step", "Gain", "Its interval"],
    [["nothing, as given", number(report.tokens_per_step_given), "", ""], ...report.probes.map((probe) => [probe.name,
      number(probe.tokens_per_step), signed(probe.gain), `${signed(probe.interval[0])} to ${signed(probe.interval[1])}`])])),
  report.evidence.length > 0 && folded("What speaks for it", table(["Evidence", "", "Found"],
    report.evidence.map(({ name, fine, sentence }) => [name, fine ? "ok" : "poor", sentence]))),
  folded("What its files show", table(["Check", "", "Found"],
    report.checks.map(({ name, fine, sentence }) => [name, fine ? "ok" : "fault", sentence]))),
].filter((part) => part !== false);

/** @param {Report} report */
const acceptance = ({ acceptance_given: given, acceptance_best: best, condition }) => {
  const guesses = given.map((_, i) => `Guess ${i + 1}`);
  const rows = [["as given", ...given.map(percent)], ...(condition !== "faulty" ? [] : [["mended", ...best.map(percent)]])];
  return table(["Accepted", ...guesses], rows);
};

/**
 * @param {string} summary
 * @param {HTMLElement} content
 */
const folded = (summary, content) => el("details", {}, el("summary", {}, summary), content);

/**
 * @param {string[]} headings
 * @param {string[][]} rows
 */
const table = (headings, rows) => el("div", { class: "app-doctor-table" }, el("table", {},
  el("thead", {}, el("tr", {}, ...headings.map((heading) => el("th", { scope: "col" }, heading)))),
  el("tbody", {}, ...rows.map(([first, ...rest]) => el("tr", {}, el("th", { scope: "row" }, first ?? ""),
    ...rest.map((cell) => el("td", {}, cell)))))));

/** @param {number | null} value */
const number = (value) => value === null ? "–" : value.toFixed(2);

/** @param {number} value */
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

/** @param {number} share */
const percent = (share) => `${Math.round(100 * share)} %`;

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
