// The column of a lesson: one screen, its question and what follows the answer; and the keys.
import { copyLink } from "../../player/controls/save.js";
import { el, show } from "../../player/dom/elements.js";
import { modelName } from "../../player/text/words.js";
import { addressOf } from "../address.js";
import { Question } from "./question.js";
import { sliderOf } from "./slider.js";

/** @import { Learn } from "./learn.js" */
/** @import { Answered, Lesson, LessonScreen } from "./types.d.ts" */

const DEPTHS = /** @type {const} */ (["idea", "mechanism", "paper"]);
const DEPTH_KEY = "specscope-depth";

export class Column {
  /** @param {Learn} learn */
  constructor(learn) {
    this.learn = learn;
    /** @type {Question | null} */
    this.question = null;
    this.revealed = true;
    this.depth = storedDepth();
    this.presenting = false;
    this.notesFolded = true;
    this.head = el("header", { class: "app-learn-head" });
    this.screen = el("div", { class: "app-learn-screen" });
    this.away = el("div", { class: "app-learn-away", hidden: true });
    this.foot = el("nav", { class: "app-learn-foot", "aria-label": "Screens of the lesson" });
    this.node = el("section", { class: "app-learn-column", "aria-label": "Lesson" },
      this.head, this.away, this.screen, this.foot);
  }

  /** Whether a question is open. */
  get asking() {
    return this.question !== null && !this.revealed;
  }

  /**
   * @param {Lesson} lesson
   * @param {number} at
   */
  draw(lesson, at) {
    const screen = lesson.screens[at];
    const { words } = this.learn;
    this.revealed = screen.ask === null;
    this.question = screen.ask && new Question(screen.ask, words, {
      answered: (answer) => this.answered(lesson, screen, answer),
      skip: () => this.reveal(),
      texts: (node) => this.learn.textOf(node),
    });
    this.after = el("div", { class: "app-learn-after", hidden: !this.revealed });
    this.fillAfter(screen);
    this.head.replaceChildren(
      el("button", { type: "button", class: "app-learn-all", onclick: () => this.learn.finish() }, "All lessons"),
      el("h2", {}, lesson.title),
      el("div", { class: "app-learn-tools" }, this.dial(), this.link(), this.present()));
    this.screen.replaceChildren(el("h3", { id: "app-learn-title", tabindex: -1 }, screen.title), ...words.blocks(screen.before),
      ...this.slider(screen, false),
      ...(this.question ? [this.question.node] : []), this.after,
      el("aside", { class: "app-learn-notes", hidden: !this.showsNotes(screen) }, ...screen.notes.map((note) =>
        el("p", {}, ...words.spans(note)))));
    this.drawFoot(lesson, at);
  }

  /**
   * @param {LessonScreen} screen
   * @param {boolean} after
   */
  slider({ slider }, after) {
    const { lesson, at } = this.learn;
    const place = after ? (lesson?.screens[at].reveal ?? lesson?.screens[at].show) : lesson?.screens[at].show;
    return slider?.after === after
      ? [sliderOf(slider, (run) => this.learn.place(this.learn.placed, run), place?.runs[0])] : [];
  }

  /** @param {LessonScreen} screen */
  fillAfter(screen) {
    const { words } = this.learn;
    const dial = screen.dials[this.depth] ?? screen.dials.idea ?? screen.dials.mechanism ?? screen.dials.paper;
    this.after?.replaceChildren(...this.slider(screen, true), ...words.blocks(screen.after),
      ...(screen.chart ? [this.chart(screen.chart)] : []),
      ...(dial ? [el("p", { class: "app-learn-dial" }, ...words.spans(dial))] : []),
      ...screen.cites.map(({ paper, place, claim, verdicts }) => el("p", { class: "app-learn-cite" },
        `${paper}, ${place}: ${claim}. `, ...verdicts.flatMap(([model, verdict], number) =>
          [`${number ? ", on" : "On"} ${modelName(model)} it `, el("strong", {}, verdictWords(verdict))]), ".")));
  }

  // In this tab, as an entry of the history: going back leads to the lesson.
  /** @param {string} query */
  chart(query) {
    const link = el("a", { href: addressOf(query) }, "Open this chart on the Debug tab");
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      this.learn.openChart(query);
    });
    return el("p", { class: "app-learn-chart" }, link);
  }

  dial() {
    const menu = el("select", { class: "ss-select app-learn-depth", "aria-label": "Depth" }, ...DEPTHS.map((depth) =>
      el("option", { value: depth, selected: depth === this.depth }, depth[0].toUpperCase() + depth.slice(1))));
    menu.addEventListener("change", () => {
      this.depth = DEPTHS.find((depth) => depth === menu.value) ?? "idea";
      storeDepth(this.depth);
      const { lesson, at } = this.learn;
      if (lesson) this.fillAfter(lesson.screens[at]);
    });
    return menu;
  }

  link() {
    const button = el("button", { type: "button", class: "app-button app-quiet", onclick: () => copyLink({
      on: { link: () => this.learn.address() }, place: () => null, root: this.learn.root,
      announce: (words) => { button.textContent = words; },
    }) }, "Copy link");
    return button;
  }

  present() {
    return el("button", { type: "button", class: "app-button app-quiet", title: "Question and stage in large letters (f)",
      onclick: () => this.togglePresenting() }, "Present");
  }

  /**
   * @param {Lesson} lesson
   * @param {number} at
   */
  drawFoot(lesson, at) {
    const { score } = this.learn;
    const last = at === lesson.screens.length - 1;
    const dots = lesson.screens.map(({ anchor, title }, i) => {
      const answer = score.answers[`${lesson.id}/${anchor}`];
      const state = answer ? (answer.right ? "app-right" : "app-wrong") : "";
      const words = answer ? (answer.right ? ", predicted" : ", not predicted") : "";
      return el("button", { type: "button", class: `app-learn-dot ${state}`.trim(), "aria-label": `${i + 1}: ${title}${words}`,
        title, "aria-current": i === at ? "step" : null, onclick: () => this.learn.enter(i, true) });
    });
    this.foot.replaceChildren(
      el("button", { type: "button", class: "app-button", disabled: at === 0, onclick: () => this.learn.turn(-1) }, "Back"),
      el("div", { class: "app-learn-dots" }, ...dots),
      el("button", { type: "button", class: "app-button app-learn-next", onclick: () => this.learn.turn(1) },
        last ? "Finish" : "Next"));
  }

  /**
   * @param {Lesson} lesson
   * @param {LessonScreen} screen
   * @param {Answered} answer
   */
  answered(lesson, screen, answer) {
    this.learn.score.note(lesson.id, screen.anchor, answer);
    this.drawFoot(lesson, this.learn.at);
    this.reveal();
  }

  // What comes after the answer; whoever goes on without one is shown it too.
  reveal() {
    const { lesson, at } = this.learn;
    if (!lesson || this.revealed) return;
    this.revealed = true;
    const { reveal, show: before } = lesson.screens[at];
    if (!this.question?.reply.textContent) this.question?.give();
    this.question?.settled();
    if (this.after) show(this.after, true);
    if (this.presenting) this.after?.scrollIntoView({ block: "nearest" });
    this.learn.place(reveal ?? before);
  }

  /** @param {number} node */
  press(node) {
    if (this.asking || this.question?.ask.many) this.question?.press(node);
  }

  /** @param {number | null} step where the reader has gone; null: where the lesson is */
  wander(step) {
    show(this.away, step !== null);
    this.node.classList.toggle("app-learn-dimmed", step !== null);
    if (step === null) return;
    this.away.replaceChildren(`You are at step ${step}. `, el("button", { type: "button", class: "app-button",
      onclick: () => this.learn.rejoin() }, "Back to the lesson"));
  }

  togglePresenting() {
    if (this.presenting) return this.stopPresenting();
    this.presenting = true;
    document.body.classList.add("app-presenting");
    this.learn.root.requestFullscreen?.().catch(() => {}); // large letters do without it
    return undefined;
  }

  stopPresenting() {
    if (!this.presenting) return;
    this.presenting = false;
    document.body.classList.remove("app-presenting", "app-blank");
    if (document.fullscreenElement) document.exitFullscreen?.();
  }

  toggleNotes() {
    this.notesFolded = !this.notesFolded;
    const notes = this.screen.querySelector(".app-learn-notes");
    const { lesson, at } = this.learn;
    if (notes instanceof HTMLElement && lesson) show(notes, this.showsNotes(lesson.screens[at]));
  }

  /** @param {LessonScreen} screen */
  showsNotes({ notes }) {
    return this.presenting && !this.notesFolded && notes.length > 0;
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean} whether the key was ours
   */
  key(event) {
    const { learn } = this;
    if (!learn.lesson || !learn.reading.getClientRects().length) return false;
    const { key, target } = event;
    const onControl = target instanceof Element && target.closest("button, a, summary, [role=button], [role=tab]");
    /** @type {{ [key: string]: () => unknown }} */
    const acts = {
      PageDown: () => learn.turn(1), PageUp: () => learn.turn(-1), r: () => this.reveal(), f: () => this.togglePresenting(),
      m: () => this.presenting && this.toggleNotes(), w: () => this.presenting && document.body.classList.toggle("app-blank"),
    };
    if (key === "Enter" && !onControl) learn.turn(1);
    else if (key === "Backspace" && learn.wandered) learn.rejoin();
    else if (key === "Escape" && this.presenting) this.stopPresenting();
    else if (Object.hasOwn(acts, key)) acts[key]();
    else return this.question?.key(key) ?? false;
    return true;
  }
}

/** @param {string} verdict */
const verdictWords = (verdict) => verdict.replace(/ here$/, "").replace(/^not /, "was not ");

const storedDepth = () => {
  try {
    return DEPTHS.find((depth) => depth === localStorage.getItem(DEPTH_KEY)) ?? "idea";
  } catch {
    return "idea";
  }
};

/** @param {string} depth */
const storeDepth = (depth) => {
  try {
    localStorage.setItem(DEPTH_KEY, depth);
  } catch {
    // without storage the choice lasts as long as the page
  }
};
