// The Learn tab: lessons as a column of text beside the player. A screen sets the whole state of the player, so that any
// screen can be entered from anywhere.
import { el, show } from "../../player/dom/elements.js";
import { listenToKeys } from "../../player/controls/keys.js";
import { Player } from "../../player/player.js";
import { MOST_PROBLEMS, addressOf, asked, lacking, leftOut, misspelt, placeIn, unknownFields, write } from "../address.js";
import { answerOf, runSource } from "../answers.js";
import { lessonShown } from "../lesson_first.js";
import { onceInSight } from "../show_in_player.js";
import { shown } from "../shown.js";
import { linesIn } from "../streams.js";
import { turnTo } from "../tabs.js";
import { Column } from "./column.js";
import { contents } from "./contents.js";
import { Score } from "./score.js";
import { Words } from "./words.js";

/** @import { Move } from "../../player/types.d.ts" */
/** @import { RunLine } from "../types.d.ts" */
/** @import { LearnIo, Lesson, Show } from "./types.d.ts" */

const OPEN = new Set(["accept", "commit"]); // phases that show what becomes of a step
const FIELDS = ["lesson", "at", "bare", "step", "phase", "view", "node"]; // of an address
const OFF_STAGE = new Set(["cache", "timeline"]); // views of what no stage draws

export class Learn {
  /**
   * @param {HTMLElement} element
   * @param {LearnIo} io
   */
  constructor(element, { props, server }) {
    this.lessons = props.lessons;
    this.server = server;
    this.words = new Words(props.glossary);
    this.score = new Score();
    /** @type {Map<string, Lesson>} by id, as the server sent them */
    this.loaded = new Map();
    /** @type {Map<string, string>} lines of runs by their ids */
    this.runs = new Map();
    /** @type {Lesson | null} */
    this.lesson = null;
    this.at = 0; // the screen
    /** @type {string | undefined} the run in the player */
    this.run = undefined;
    /** @type {Show | null} where the lesson put the player */
    this.placed = null;
    /** @type {number | null} the node that was pressed last */
    this.pinned = null;
    this.wandered = false;
    this.entered = 0; // counts screens: an answer for an earlier one is not shown
    /** @type {Player[]} the runs beside the first */
    this.others = [];
    this.notice = el("p", { class: "app-learn-notice", role: "alert", hidden: true });
    this.list = el("div", { class: "app-learn-contents" });
    this.column = new Column(this);
    const lead = el("div", { class: "app-learn-lead" });
    this.stages = el("div", { class: "app-learn-stages" }, lead);
    this.reading = el("div", { class: "app-learn", hidden: true }, this.column.node, this.stages);
    this.root = el("div", { class: "app-learn-root", tabindex: -1 }, this.notice, this.list, this.reading);
    element.replaceChildren(this.root);
    this.root.addEventListener("fullscreenchange", () => {
      if (!document.fullscreenElement) this.column.stopPresenting();
    });
    this.unsubscribe = listenToKeys(this.root, (event) => this.column.key(event)); // before the player: some keys mean more here
    this.player = new Player(lead, {
      source: runSource(server, () => this.run),
      on: { link: () => this.address(), change: (place) => this.moved(place) },
    });
    this.gone = new AbortController();
    addEventListener("popstate", () => this.returned(), { signal: this.gone.signal });
    onceInSight(this.root, () => this.returned().finally(lessonShown));
  }

  /** @param {string} sentence */
  say(sentence) {
    this.notice.textContent = sentence;
    show(this.notice, sentence !== "");
  }

  /** The address of what is seen: lesson, screen, and the place in the run where the reader has left the lesson's. */
  address() {
    const query = new URLSearchParams({ screen: "learn" });
    if (this.lesson) {
      query.set("lesson", this.lesson.id);
      query.set("at", this.lesson.screens[this.at].anchor);
    }
    if (asked().get("bare") === "1") query.set("bare", "1");
    return addressOf(query.toString(), this.lesson && this.wandered ? this.player.place() : {});
  }

  // What the address names, when the page opens, and when the reader goes back or forward.
  async returned() {
    const query = asked();
    if (query.get("screen") !== "learn") return;
    document.body.classList.toggle("app-bare", query.get("bare") === "1");
    const id = query.get("lesson"), problems = unknownFields(query, FIELDS);
    if (!id || !this.lessons.some((each) => each.id === id)) {
      this.leave();
      if (id) problems.push(leftOut(["lesson"], "this page has no such lesson"));
      this.say(problems.slice(0, MOST_PROBLEMS).join(" "));
      return;
    }
    const lesson = await this.load(id);
    if (!lesson || asked().get("lesson") !== id) return;
    const at = lesson.screens.findIndex(({ anchor }) => anchor === query.get("at"));
    if (at < 0 && query.has("at")) problems.push(leftOut(["at"], "this lesson has no such screen"));
    const shownAlready = this.lesson === lesson && this.at === Math.max(at, 0); // the reader left for another tab
    if (shownAlready && !this.wandered && !query.has("step") && !problems.length) return;
    this.lesson = lesson;
    await this.enter(Math.max(at, 0));
    problems.push(...misspelt(query), ...lacking(query, this.player.record, (view) => this.player.cards.buttons.has(view)));
    if (query.has("step")) this.player.goto(placeIn(query));
    this.say(problems.slice(0, MOST_PROBLEMS).join(" "));
  }

  /** @param {string} id */
  async load(id) {
    const before = this.loaded.get(id);
    if (before) return before;
    const answer = await answerOf(() => this.server.learn_lesson(id), (sentence) => this.say(sentence));
    if (!answer?.lesson) {
      this.leave();
      return null;
    }
    this.loaded.set(id, answer.lesson);
    return answer.lesson;
  }

  /**
   * @param {string} id
   * @param {number} [at]
   */
  async open(id, at = 0) {
    const lesson = await this.load(id);
    if (!lesson) return;
    this.lesson = lesson;
    const entered = this.enter(at, true);
    this.toTop();
    await entered;
  }

  /** Show the list of lessons. */
  leave() {
    this.lesson = null;
    this.entered += 1;
    this.column.stopPresenting();
    show(this.reading, false);
    show(this.list, true);
    this.list.replaceChildren(...contents(this));
  }

  /**
   * Show a screen of the lesson.
   * @param {number} at
   * @param {boolean} [another] whether it is another entry of the browser's history
   */
  async enter(at, another = false) {
    const { lesson } = this;
    if (!lesson) return;
    this.say("");
    this.at = Math.min(Math.max(at, 0), lesson.screens.length - 1);
    this.entered += 1;
    this.wandered = false;
    show(this.list, false);
    show(this.reading, true);
    if (another) write(this.address(), this.address() !== location.href);
    const screen = lesson.screens[this.at];
    this.column.draw(lesson, this.at);
    await this.place(screen.show);
  }

  /** @param {number} direction */
  turn(direction) {
    const { lesson, at } = this;
    if (!lesson) return;
    if (lesson.screens[at + direction]) {
      this.enter(at + direction, true);
      this.toTop();
    } else if (direction > 0) this.finish();
  }

  /**
   * Turn to a chart of the Debug page.
   * @param {string} query
   */
  openChart(query) {
    write(addressOf(query), true);
    turnTo("debug");
    if (shown.debug?.opened.facts) shown.debug.returned(); // else it follows the address once it is seen
  }

  // The list again, where the score is.
  finish() {
    this.leave();
    write(this.address(), true);
    this.toTop();
  }

  // Where what is shown now begins: the button that was pressed is gone.
  toTop() {
    this.root.focus({ preventScroll: true });
    scrollTo(0, 0);
  }

  /**
   * Move the player to the lesson's place.
   * @param {Show | null} place
   * @param {string} [run] another run than the one it names, at the same step
   */
  async place(place, run) {
    const { entered } = this;
    if (!place) return;
    const [first, ...others] = run ? [run] : place.runs;
    this.stages.classList.add("app-learn-loading"); // until then it shows another place
    const texts = await Promise.all([first, ...others].map((id) => this.linesOf(id)));
    if (entered === this.entered) this.stages.classList.remove("app-learn-loading");
    if (entered !== this.entered || texts.includes("")) return;
    this.placed = place;
    this.wandered = false;
    this.column.wander(null);
    if (this.run !== first) {
      this.run = first;
      this.player.reset();
      this.player.feed(/** @type {RunLine[]} */ (linesIn(texts[0])));
    }
    this.player.release();
    const { step, phase, view, node, focus, zoom } = place;
    this.pinned = node;
    this.withhold(this.player);
    this.player.change({ open: new Set(), view: null }); // of the screen before
    this.player.goto({ step, phase, view, node, focus, zoom });
    this.beside(others, texts.slice(1));
    if (OFF_STAGE.has(view ?? "") && getComputedStyle(this.column.node).position === "sticky") {
      this.player.cards.reveal(/** @type {string} */ (view)); // the lesson's words stay in sight beside it
    }
  }

  /**
   * Show runs beside the first, at the same token of the text.
   * @param {string[]} runs
   * @param {string[]} texts
   */
  beside(runs, texts) {
    for (const player of this.others) player.destroy();
    for (const node of this.stages.querySelectorAll(".app-learn-other")) node.remove();
    const many = runs.length > 1; // than two, of which only the first is whole
    this.stages.classList.toggle("app-learn-several", runs.length > 0);
    this.stages.classList.toggle("app-learn-many", many);
    this.others = runs.map((run, i) => {
      const node = el("div", { class: "app-learn-other" });
      this.stages.append(node);
      const player = new Player(node, { source: runSource(this.server, () => run), follower: true, small: many });
      player.feed(/** @type {RunLine[]} */ (linesIn(texts[i])));
      this.withhold(player);
      return player;
    });
    this.follow();
  }

  // The other runs go to where as much of the text is written as in the first.
  follow() {
    const { record, state } = this.player;
    const step = record.steps[state.step];
    if (!step) return;
    const written = step.start - record.head.header.prompt_length + (state.phase === "commit" ? step.emitted.length - 1 : 0);
    for (const player of this.others) player.seekToken(Math.max(written, 0), state.phase);
  }

  /**
   * Hide the answer while a question is open; the step's outcome is not hidden if the lesson itself shows it.
   * @param {Player} player
   */
  withhold(player) {
    const { asking } = this.column;
    player.withhold(asking && !OPEN.has(this.placed?.phase ?? ""), asking);
  }

  /** @param {string} run */
  async linesOf(run) {
    const stored = this.runs.get(run);
    if (stored !== undefined) return stored;
    const answer = await answerOf(() => this.server.open_recording(run), (sentence) => this.say(sentence));
    const lines = answer?.lines ?? "";
    if (lines) this.runs.set(run, lines);
    return lines;
  }

  /**
   * Handle a move of the player: by the lesson, or by the reader, who may go elsewhere at any time.
   * @param {Move} place
   */
  moved(place) {
    const { placed } = this;
    if (!placed || !this.lesson) return;
    this.follow();
    if (place.by !== "visitor") return;
    const there = place.step === placed.step && (place.phase === placed.phase || this.player.state.withheld);
    if (there && place.node !== null && place.node !== this.pinned) this.column.press(place.node);
    this.pinned = place.node;
    this.wandered = !there;
    this.column.wander(there ? null : place.step);
    if (this.root.offsetParent && navigator.userActivation?.hasBeenActive && !this.player.state.playing) {
      write(this.address(), false);
    }
  }

  /** Go back to the lesson's place. */
  rejoin() {
    this.place(this.placed);
  }

  /**
   * Return a node of the player in words.
   * @param {string} name as n3
   */
  textOf(name) {
    const { record } = this.player, k = this.placed?.step ?? -1, node = Number(name.slice(1));
    const nodes = record.nodes(k);
    const token = nodes && node < nodes.count ? nodes.token[node] : record.steps[k]?.emitted.at(-1);
    return token === undefined ? name : `“${record.visible(token)}”`;
  }

  destroy() {
    this.gone.abort();
    this.unsubscribe();
    for (const player of [this.player, ...this.others]) player.destroy();
  }
}

/**
 * @param {HTMLElement} element
 * @param {LearnIo} io
 */
export const showLearn = (element, io) => {
  shown.learn?.destroy();
  shown.learn = new Learn(element, io);
};
