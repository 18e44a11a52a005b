// The page around a race: lines are handed to it, and what it leaves can be opened.
import { copyLink } from "../player/controls/save.js";
import { el, prefersCalm } from "../player/dom/elements.js";
import { Race } from "../player/race/race.js";
import { addressOf, note } from "./address.js";
import { busy, onceDrawn, stoppable } from "./busy.js";
import { sayIn } from "./notice.js";
import { shown } from "./shown.js";
import { growing, pulse, split } from "./streams.js";

/** @import { Linked } from "../player/types.d.ts" */
/** @import { Io, PageFacts, Server } from "./types.d.ts" */

/**
 * @param {HTMLElement} element
 * @param {Io} io
 */
export const showRace = (element, { props, server, watch }) => {
  shown.race?.destroy();
  const head = el("div", { class: "app-bar app-race-head", hidden: true });
  const stage = el("div", { class: "app-stage" }), after = el("p", { class: "app-after" });
  element.replaceChildren(head, stage, after);
  const race = new Race(stage);
  shown.race = race;
  /** @type {PageFacts} */
  let known = {};
  const takes = () => growing((tail, anew) => {
    const [facts, rest] = split(tail);
    if (anew) race.reset();
    known = anew ? facts : { ...known, ...facts };
    race.feed(rest);
    head.hidden = !known.recorded;
    head.replaceChildren(...beforeRace(known));
    after.replaceChildren(...afterRace(race, known));
    race.address = known.address;
    if (facts.address && !known.recorded) note(stage, facts.address, {});
    if (facts.done && known.recorded && prefersCalm()) {
      race.flush(); // its length is known once its lanes have grown
      race.change({ time: race.length });
    } else if (facts.done) race.play();
  });
  let take = takes();
  /** @param {boolean} going */
  const goes = (going) => {
    busy(["race-go"], going);
    stoppable("race", going, "race-stop");
  };
  const beat = pulse(() => server.run_lives(known.run), (sentence) => {
    race.lose(sentence);
    goes(false);
    take = takes(); // should lines come after all, they are heard from the beginning
  });
  const hear = () => {
    const [{ refused }] = split(`${String(props.value ?? "").split("\n", 1)[0]}\n`);
    sayIn("#race-form", refused ?? "");
    if (refused) return;
    take(props.value);
    beat(!race.over);
    goes(!race.over);
  };
  hear();
  onceDrawn("race-stop", () => goes(Boolean(props.value) && !race.over));
  watch("value", hear);
  if (!props.value) landRace(server).then((lines) => lines && !props.value && race === shown.race && take(lines));
};

/**
 * The lines of the recorded race, which is seen until one is run; without an answer there is none.
 * @param {Server} server
 */
const landRace = (server) => server.open_race("").then((answer) => answer?.lines ?? "").catch(() => "");

/**
 * What is said above a race that was not run here.
 * @param {PageFacts} facts
 */
const beforeRace = ({ recorded, title, shows, machine }) => recorded ? [el("div", { class: "app-what" },
  el("p", { class: "app-title" }, title ?? ""), el("p", { class: "app-shows" }, shows ?? ""),
  el("p", { class: "app-shows app-machine" }, machine ?? ""))] : [];

/**
 * What a race leaves: its address, and every run of it to be looked at step by step.
 * @param {Race} race
 * @param {PageFacts} facts
 */
const afterRace = (race, { address, runs, notice, left_out: text }) => {
  if (!address) return [];
  const copy = el("button", { type: "button", class: "app-button", onclick: () => copyLink(link) }, "Copy link");
  /** @type {Linked} */
  const link = {
    on: { link: () => addressOf(address), lacks: () => text ? { words: `The ${text} is too long for a link, so this ` +
      "one names the race without it: open a method of the race and share its trace file instead." } : null },
    place: () => null, root: race.root,
    announce: (said) => { copy.textContent = said; },
  };
  const open = (runs ?? []).map(([label, run]) =>
    el("a", { class: "app-button", href: addressOf(`run=${run}`, {}), target: "_blank" }, `Open ${label}`));
  return [copy, ...open, ...(notice ? [el("span", { class: "app-shows" }, notice)] : [])];
};
