// The page around a race: it receives the race's lines, and its runs can be opened.
import { copyLink } from "../player/controls/save.js";
import { el, prefersCalm } from "../player/dom/elements.js";
import { Race } from "../player/race/race.js";
import { addressOf, asked, note, unraced } from "./address.js";
import { sayIn } from "./notice.js";
import { shown } from "./shown.js";
import { JobStream, factsIn, linesIn } from "./streams.js";

/** @import { Linked } from "../player/types.d.ts" */
/** @import { Io, RaceFacts, RaceLines } from "./types.d.ts" */

/**
 * @param {HTMLElement} element
 * @param {Io} io
 */
export const showRace = (element, io) => {
  shown.race?.destroy();
  const head = el("div", { class: "app-bar app-race-head", hidden: true });
  const stage = el("div", { class: "app-stage" }), after = el("p", { class: "app-after" });
  element.replaceChildren(head, stage, after);
  const race = new Race(stage);
  shown.race = race;
  /** @type {RaceFacts} */
  let facts = {};
  /**
   * @param {RaceLines[]} lines
   * @param {boolean} anew
   */
  const take = (lines, anew) => {
    sayIn("#race-form", "");
    if (anew) {
      race.reset();
      facts = factsIn(lines);
      race.address = facts.address;
      head.hidden = !facts.recorded;
      head.replaceChildren(...beforeRace(facts, document.querySelector("#race-form") ? [] : unraced(asked())));
      if (facts.address && !facts.recorded) note(stage, facts.address, {});
    }
    race.feed(lines);
    const done = lines.find((line) => line.kind === "done");
    if (anew || done) after.replaceChildren(...afterRace(race, facts, done));
    if (done && facts.recorded && prefersCalm()) {
      race.flush(); // its length is known once its lanes have grown
      race.change({ time: race.length });
    } else if (done) race.play();
  };
  /** @type {JobStream<RaceLines>} */
  const stream = new JobStream(io, {
    name: "race", starts: "#race-go", stop: "race-stop", take,
    refused: (sentence) => sayIn("#race-form", sentence),
    lost: (sentence) => race.lose(sentence),
  });
  if (io.props.value) return stream.read();
  // The recorded race is seen until one is run; without an answer there is none.
  io.server.open_race("").catch(() => null).then((answer) => {
    const lines = linesIn(answer?.lines ?? "");
    if (lines.length && !io.props.value && race === shown.race) take(lines, true);
  });
  return undefined;
};

/**
 * The text above a race that was not run here.
 * @param {RaceFacts} facts
 * @param {string[]} problems of the address
 */
const beforeRace = ({ recorded, title, shows, machine }, problems) => recorded ? [el("div", { class: "app-what" },
  el("p", { class: "app-title" }, title ?? ""), el("p", { class: "app-shows" }, shows ?? ""),
  ...problems.map((sentence) => el("p", { class: "app-shows", role: "alert" }, sentence)),
  el("p", { class: "app-shows app-machine" }, machine ?? ""))] : [];

/**
 * Show a finished race's address, and a button for each of its runs.
 * @param {Race} race
 * @param {RaceFacts} facts
 * @param {Partial<Extract<RaceLines, { kind: "done" }>>} [done]
 */
const afterRace = (race, { address, left_out: text }, { runs = [], notice } = {}) => {
  if (!address) return [];
  const copy = el("button", { type: "button", class: "app-button", onclick: () => copyLink(link) }, "Copy link");
  /** @type {Linked} */
  const link = {
    on: { link: () => addressOf(address), lacks: () => text ? { words: `The ${text} is too long for a link, so this ` +
      "one names the race without it: open a method of the race and share its trace file instead." } : null },
    place: () => null, root: race.root,
    announce: (said) => { copy.textContent = said; },
  };
  const open = runs.map(([label, run]) =>
    el("a", { class: "app-button", href: addressOf(`run=${run}`, {}), target: "_blank" }, `Open ${label}`));
  return [copy, ...open, ...(notice ? [el("span", { class: "app-shows" }, notice)] : [])];
};
