// The opening: a short recorded race that plays once by itself, and its result.
import { el, prefersCalm, show, write } from "../player/dom/elements.js";
import { Race } from "../player/race/race.js";
import { slowing } from "../player/race/pace.js";
import { outcome } from "../player/race/results.js";
import { plural } from "../player/text/words.js";
import { addressOf, asked, write as writeAddress } from "./address.js";
import { landed, opened } from "./first_run.js";
import { shown } from "./shown.js";
import { factsIn, linesIn } from "./streams.js";
import { turnTo } from "./tabs.js";

/** @import { Viewer } from "./viewer.js" */
/** @import { RaceFacts } from "./types.d.ts" */

const OPENS = "app-opens"; // of the page, while the opening covers form and player

let missing = opened === null; // where it cannot be loaded, the player is shown instead

// Only the page's own address shows the opening.
export const opens = () => !missing && [...asked().keys()].every((name) => name === "__theme");

// The race alone, in large letters: its only controls are keys and buttons.
class OpeningRace extends Race {
  build() {
    return el("div", { class: "ss ss-race ss-opening", role: "group", "aria-label": "Race", tabindex: -1 },
      this.lanes, this.headline, this.times, this.legend);
  }

  // The visitor watches the race for its end.
  conclude() {
    const result = outcome(this);
    write(this.headline, result?.words ?? "");
    this.root.classList.toggle("ss-over", this.ended);
    const { threads, processor } = this.running[0]?.record.head.header ?? {};
    const machine = [processor, threads && plural(threads, "thread")].filter(Boolean).join(", ");
    const factor = slowing(this.length);
    const pace = factor > 1 ? `Shown ${factor} times slower than recorded` : "Shown as fast as recorded";
    write(this.times, result ? `${result.passes} ${pace}${machine ? ` (${machine})` : ""}.` : `${pace}.`);
  }
}

/** It covers form and player while the address is the page's alone, and is kept as it was left. */
export class Opening {
  /** @param {Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.plays = false; // whether it played when it was left
    this.asks = el("p", { class: "app-asks" });
    this.why = el("p", { class: "app-shows" });
    this.stage = el("div", {});
    const step = button("app-first", "Step through it", () => this.stepping());
    const again = button("", "Watch again", () => this.watch());
    const learn = button("app-quiet", "Learn it in ten minutes", () => beginLessons());
    const recorded = button("app-quiet", "Recorded runs", () => viewer.gallery.showModal());
    this.live = button("app-quiet", "Back to your run", () => viewer.showLive());
    const own = viewer.props.live ? [button("app-quiet", "Your own prompt", () => this.writing())] : [];
    this.node = el("section", { class: "app-opening", "aria-label": "A recorded race" },
      this.asks, this.stage, this.why);
    this.race = new OpeningRace(this.stage);
    this.race.headline.after(el("div", { class: "app-tools" }, step, again, learn, recorded, ...own, this.live));
    /** Resolves when it has been painted, or could not be. */
    this.painted = this.begin();
  }

  async begin() {
    const lines = linesIn(await opened ?? "");
    if (!lines.length) {
      missing = true;
      this.leave();
      return undefined;
    }
    this.describe(factsIn(lines));
    this.race.feed(lines);
    this.race.flush();
    this.watch(prefersCalm());
    if (!this.covers) this.pause();
    return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  }

  /** @param {RaceFacts} facts */
  describe({ model, title, shows, machine }) {
    this.asks.replaceChildren(el("span", {}, `${model} is asked: `), `“${title}”`);
    this.why.textContent = [shows, machine].filter(Boolean).join(" ");
  }

  watch(atOnce = false) {
    this.race.change(atOnce ? { time: this.race.length, playing: false } : { time: 0, playing: true });
  }

  pause() {
    this.plays = this.race.state.playing;
    this.race.change({ playing: false });
  }

  /** Whether form and player wait behind it. */
  get covers() {
    return this.node.isConnected;
  }

  enter() {
    if (this.covers) return;
    show(this.viewer.root, false);
    this.viewer.root.before(this.node);
    document.body.classList.add(OPENS);
    show(this.live, this.viewer.live.begun);
    if (this.plays) this.race.change({ playing: true });
  }

  /** Answers whether it was there to be left. */
  leave() {
    if (!this.covers) return false;
    this.pause();
    this.node.remove();
    show(this.viewer.root, true);
    document.body.classList.remove(OPENS);
    return true;
  }

  // The run of its last lane, at the step to learn from.
  async stepping() {
    const { viewer } = this;
    if (viewer.facts.run !== viewer.props.landing) return viewer.show(linesIn(await landed ?? ""));
    viewer.player.goto({ step: viewer.facts.step });
    viewer.io.fill(viewer.facts.address ?? ""); // the form has had what suits a run of one's own
    viewer.reveal();
    viewer.player.root.focus({ preventScroll: true });
    scrollTo(0, 0);
    return undefined;
  }

  // The player, now in sight, takes the keys right after this press.
  writing() {
    this.viewer.reveal();
    this.viewer.fold.choose(false);
    setTimeout(() => prompt()?.select()); // so that what is typed takes its place
  }

  destroy() {
    this.leave();
    this.race.destroy();
  }
}

const beginLessons = () => {
  writeAddress(addressOf("screen=learn&lesson=slow", {}), true);
  turnTo("learn");
  shown.learn?.returned(); // it follows the address by itself where it has not been drawn yet
};

/**
 * @param {string} kind
 * @param {string} words
 * @param {() => void} onclick
 */
const button = (kind, words, onclick) =>
  el("button", { type: "button", class: `app-button ${kind}`.trim(), onclick }, words);

/** @returns {HTMLTextAreaElement | null} */
const prompt = () => document.querySelector("#run-prompt textarea");
