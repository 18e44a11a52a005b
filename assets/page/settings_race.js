// Shows the settings that won a race, with a button that copies them to the form.
import { el } from "../player/dom/elements.js";
import { showJobReport, table, verdict } from "./job_report.js";

/** @import { SettingsIo, SettingsReport } from "./types.d.ts" */

/**
 * @param {HTMLElement} element
 * @param {SettingsIo} io
 */
export const showSettings = (element, io) => showJobReport(element, io, {
  name: "settings-race", heading: "Fastest settings", starts: ".app-tune",
  sections: (/** @type {SettingsReport} */ report) => [
    verdict(report.verdict, report.speculate),
    use(report, io),
    table(["Settings", "Answers", "Tokens per second"],
      [["autoregressive decoding", `${report.compared}`, report.base.toFixed(1)],
        ...report.rows.map(([settings, answers, speed]) => [settings, `${answers}`, speed.toFixed(1)])]),
    el("p", { class: "app-report-note" },
      "Compare settings with the same number of answers: they decoded the same text. Slow settings drop out, so that the " +
      "others decode more of it" + (report.others ? `; slower ones (${report.others}) are not shown.` : ".")),
  ],
});

/**
 * @param {SettingsReport} report
 * @param {SettingsIo} io
 */
const use = ({ speculate, address }, io) => {
  /** @type {HTMLElement} */
  const button = el("button", { type: "button", class: "app-button app-use", onclick: () => {
    io.fill(address);
    button.textContent = "Put into the form";
  } }, speculate ? "Use these settings" : "Use autoregressive decoding");
  return el("p", { role: "status" }, button);
};
