// The report of a job above the player: its progress, then its result.
import { el } from "../player/dom/elements.js";
import { JobStream } from "./streams.js";

/** @import { Io, ReportLine } from "./types.d.ts" */

/**
 * @template R
 * @typedef {object} Reported what tells such jobs apart
 * @property {string} name of the job
 * @property {string} heading
 * @property {string} starts a selector of the buttons that start it
 * @property {(report: R) => Node[]} sections
 * @property {(section: HTMLElement, report: R) => void} [drawn] after the sections are on the page
 */

/**
 * @template R
 * @typedef {{ title: string, sentence: string, share: number | null, report?: R }} State
 */

/**
 * @template R
 * @param {HTMLElement} element
 * @param {Io} io
 * @param {Reported<R>} job
 */
export const showJobReport = (element, io, { name, heading, starts, sections, drawn }) => {
  const section = el("section", { class: `app-report app-${name}`, "aria-label": heading, hidden: true });
  element.replaceChildren(section);
  /** @type {State<R> | null} */
  let state = null;
  const draw = () => {
    section.hidden = !state;
    if (!state) return;
    const { title, sentence, share, report } = state;
    section.replaceChildren(head(title ? `${heading}: ${title}` : heading, () => { state = null; draw(); }),
      ...(report ? sections(report) : [waiting(sentence, share)]));
    if (report) drawn?.(section, report);
  };
  /** @param {Partial<State<R>>} changes */
  const change = (changes) => {
    if (state) state = { ...state, ...changes };
    draw();
  };
  // The button that was pressed may be far below.
  const begin = () => {
    state = { title: "", sentence: "Waiting for the engine.", share: null };
    draw();
    section.scrollIntoView({ block: "nearest" });
  };
  /** @type {JobStream<ReportLine<R>>} */
  const stream = new JobStream(io, {
    name, starts, stop: "run-stop",
    take(lines, anew) {
      if (anew) begin();
      for (const line of lines) {
        if (line.kind === "host") change({ title: line.title });
        else if (line.kind === "done") change({ report: line.report });
        else change({ sentence: line.sentence, share: line.kind === "state" ? line.share : null });
      }
    },
    refused(sentence) {
      state = { title: "", sentence, share: null };
      draw();
    },
    lost: (sentence) => change({ sentence, share: null }),
  });
  stream.read();
  if (!drawn) return;
  new MutationObserver(() => state?.report && drawn(section, state.report))
    .observe(document.body, { attributes: true, attributeFilter: ["class"] });
};

/**
 * @param {string} title
 * @param {() => void} close
 */
const head = (title, close) => el("div", { class: "app-bar" },
  el("h2", { class: "app-title" }, title),
  el("button", { type: "button", class: "app-close", "aria-label": "Close", onclick: close }));

/**
 * @param {string} sentence
 * @param {number | null} share
 */
const waiting = (sentence, share) => el("div", { role: "status" }, el("p", {}, sentence),
  share !== null && el("progress", { max: 1, value: share, "aria-label": sentence }));

/**
 * @param {string} sentence
 * @param {boolean} good
 */
export const verdict = (sentence, good) =>
  el("p", { class: `app-verdict ${good ? "app-healthy" : "app-ill"}`, role: "status" }, sentence);

/**
 * @param {string} summary
 * @param {HTMLElement} content
 */
export const folded = (summary, content) => el("details", {}, el("summary", {}, summary), content);

/**
 * @param {string[]} headings
 * @param {string[][]} rows
 */
export const table = (headings, rows) => el("div", { class: "app-report-table" }, el("table", {},
  el("thead", {}, el("tr", {}, ...headings.map((heading) => el("th", { scope: "col" }, heading)))),
  el("tbody", {}, ...rows.map(([first, ...rest]) => el("tr", {}, el("th", { scope: "row" }, first ?? ""),
    ...rest.map((cell) => el("td", {}, cell)))))));
