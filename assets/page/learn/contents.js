// The list of lessons, with the reader's score in each.
import { el } from "../../player/dom/elements.js";

/** @import { Learn } from "./learn.js" */

/** @param {Learn} learn */
export const contents = (learn) => {
  const { lessons, score } = learn;
  const numbers = new Map(lessons.map(({ id }, i) => [id, i + 1]));
  const cards = lessons.map(({ id, title, topic, minutes, needs, questions }, i) => {
    const { answered, right } = score.of(id);
    const done = answered ? `${right} of ${questions} predicted` : `${questions} questions`;
    const before = needs.map((each) => numbers.get(each)).filter(Boolean);
    const after = before.length > 0 ? `, after lesson${before.length > 1 ? "s" : ""} ${before.join(" and ")}` : "";
    return el("li", {}, el("button", { type: "button", class: "app-learn-lesson", onclick: () => learn.open(id) },
      el("span", { class: "app-learn-number" }, String(i + 1)), el("strong", {}, title),
      el("span", {}, topic),
      el("span", { class: "app-learn-facts" }, `${minutes} minutes, ${done}${after}`)));
  });
  const forget = el("button", { type: "button", class: "app-button app-quiet", hidden: !score.any, onclick: () => {
    score.forget();
    learn.leave();
  } }, "Forget my answers");
  return [
    el("h2", {}, "Learn how several words come out of one pass"),
    el("p", { class: "ss-quiet" }, "Each lesson asks before it shows, on real recorded runs. Your answers stay in this browser."),
    el("ol", { class: "app-learn-lessons" }, ...cards), forget,
  ];
};
