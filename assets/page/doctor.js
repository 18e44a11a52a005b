// What an examination finds: a verdict in words, both curves, and all numbers as tables.
import { el } from "../player/dom/elements.js";
import { busy, stoppable } from "./busy.js";
import { growing, pulse } from "./streams.js";

/** @import { Io, PageFacts, Report } from "./types.d.ts" */

const BUTTONS = ["p-eagle3-doctor", "p-medusa-doctor", "p-kangaroo-doctor", "p-draft-model-doctor"];
const CONFIG = { displayModeBar: false, displaylogo: false, responsive: true, doubleClick: false, showTips: false };

/** @typedef {{ kind: string, sentence?: string, share?: number | null } & PageFacts} Line */

/**
 * @param {HTMLElement} element
 * @param {Io} io
 */
export const showDoctor = (element, { props, server, watch }) => {
  const section = el("section", { class: "app-doctor", "aria-label": "Doctor", hidden: true });
  element.replaceChildren(section);
  /** @type {PageFacts} */
  let known = {};
  let closed = false, over = true, sentence = "", share = /** @type {number | null} */ (null);
  const draw = () => {
    section.hidden = closed || !known.run;
    if (!section.hidden) section.replaceChildren(head(known, () => { closed = true; draw(); }),
      ...(known.report ? found(known.report) : [waiting(sentence, over ? null : share)]));
    if (known.report) drawChart(section, known.report);
  };
  /** @param {boolean} going */
  const goes = (going) => {
    busy(BUTTONS, going);
    stoppable("examination", going);
  };
  /** @param {string} said */
  const end = (said) => {
    [sentence, over] = [said, true];
    goes(false);
    draw();
  };
  const hearTail = growing((tail, anew) => {
    if (anew) [known, closed, over, sentence, share] = [{}, false, false, "Waiting for the engine.", null];
    for (const text of tail.split("\n").filter(Boolean)) {
      const line = /** @type {Line} */ (JSON.parse(text));
      if (line.kind === "host") known = { ...known, ...line };
      else [sentence, share] = [line.sentence ?? sentence, line.share ?? null];
      over ||= line.kind === "fault" || line.report !== undefined;
    }
    draw();
  });
  const beat = pulse(() => server.run_lives(known.run), end);
  const hear = () => {
    hearTail(props.value);
    beat(!over);
    goes(!over);
  };
  if (props.value) hear();
  watch("value", hear);
  new MutationObserver(() => known.report && drawChart(section, known.report))
    .observe(document.body, { attributes: true, attributeFilter: ["class"] });
};

/**
 * @param {PageFacts} facts
 * @param {() => void} close
 */
const head = ({ title }, close) => el("div", { class: "app-bar" },
  el("h2", { class: "app-title" }, `Doctor: ${title ?? "a drafter"}`),
  el("button", { type: "button", class: "app-close", "aria-label": "Close", onclick: close }));

/**
 * @param {string} sentence
 * @param {number | null} share
 */
const waiting = (sentence, share) => el("div", { role: "status" }, el("p", {}, sentence),
  share !== null && el("progress", { max: 1, value: share, "aria-label": sentence }));

/** @param {Report} report */
const found = (report) => [
  el("p", { class: `app-verdict ${report.healthy ? "app-healthy" : "app-ill"}`, role: "status" }, report.verdict),
  report.acceptance_given.length > 0 && el("div", { class: "app-doctor-chart", role: "img",
    "aria-label": "Acceptance by the place of a guess: the table below has its numbers" }),
  report.acceptance_given.length > 0 && acceptance(report),
  report.probes.length > 0 && folded("What was tried", table(["Changed", "Tokens a step", "Gain", "Its interval"],
    [["nothing, as given", number(report.tokens_per_step_given), "", ""], ...report.probes.map((probe) => [probe.name,
      number(probe.tokens_per_step), signed(probe.gain), `${signed(probe.interval[0])} to ${signed(probe.interval[1])}`])])),
  folded("What its files show", table(["Check", "", "Found"],
    report.checks.map(({ name, fine, sentence }) => [name, fine ? "ok" : "fault", sentence]))),
].filter((part) => part !== false);

/** @param {Report} report */
const acceptance = ({ acceptance_given: given, acceptance_best: best, healthy }) => {
  const places = given.map((_, place) => `Guess ${place + 1}`);
  const rows = [["as given", ...given.map(percent)], ...(healthy ? [] : [["mended", ...best.map(percent)]])];
  return table(["Accepted", ...places], rows);
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
