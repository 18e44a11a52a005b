// The page around a race: lines are handed to it, and what it leaves can be opened.
import { copyLink } from "../../assets/player/controls/save.js";
import { el } from "../../assets/player/dom/elements.js";
import { Race } from "../../assets/player/race/race.js";
import { addressOf, note } from "./address.js";
import { busy } from "./busy.js";
import { shown } from "./shown.js";
import { growing, pulse, split } from "./streams.js";

/** @import { Linked } from "../../assets/player/types.d.ts" */
/** @import { Io, PageFacts } from "./types.d.ts" */

/**
 * @param {HTMLElement} element
 * @param {Io} io
 */
export const showRace = (element, { props, server, watch }) => {
  shown.race?.destroy();
  const stage = el("div", { class: "app-stage" }), after = el("p", { class: "app-after" });
  element.replaceChildren(stage, after);
  const race = new Race(stage);
  shown.race = race;
  /** @type {PageFacts} */
  let known = {};
  const takes = () => growing((tail, anew) => {
    const [facts, rest] = split(tail);
    if (anew) race.reset();
    known = anew ? facts : { ...known, ...facts };
    race.feed(rest);
    after.replaceChildren(...afterRace(race, known));
    race.address = known.address;
    if (facts.address) note(stage, facts.address, {});
    if (facts.done) race.play();
  });
  let take = takes();
  const beat = pulse(() => server.run_lives(known.run), (sentence) => {
    race.lose(sentence);
    busy("race-go", false);
    take = takes(); // should lines come after all, they are heard from the beginning
  });
  const hear = () => {
    take(props.value);
    beat(!race.over);
    busy("race-go", !race.over);
  };
  hear();
  watch("value", hear);
};

/**
 * What a race leaves: its address, and every run of it to be looked at step by step.
 * @param {Race} race
 * @param {PageFacts} facts
 */
const afterRace = (race, { address, runs, notice }) => {
  if (!address) return [];
  const copy = el("button", { type: "button", class: "app-button", onclick: () => copyLink(link) }, "Copy link");
  /** @type {Linked} */
  const link = {
    on: { link: () => addressOf(address) }, place: () => null, root: race.root,
    announce: (said) => { copy.textContent = said; },
  };
  const open = (runs ?? []).map(([label, run]) =>
    el("a", { class: "app-button", href: addressOf(`run=${run}`, {}), target: "_blank" }, `Open ${label}`));
  return [copy, ...open, ...(notice ? [el("span", { class: "app-shows" }, notice)] : [])];
};
