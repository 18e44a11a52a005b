// The lines around the pictures: what is shown, what the page waits for, what a step did, and where it ran.
import { library } from "../charts/library.js";
import { button } from "../dom/buttons.js";
import { el, show, write } from "../dom/elements.js";
import { unpack } from "../stream/decode.js";
import { showTable } from "../tables/table.js";
import { withTerms } from "./glossary.js";
import { compact, finishWords, modelName, plural } from "./words.js";

/** @import { Player } from "../player.js" */
/** @import { RunRecord } from "../stream/record.js" */
/** @import { Header, ModelCard, State, StepLine } from "../types.d.ts" */

export class Status {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    this.title = el("h2", { class: "ss-title" });
    this.about = el("p", { class: "ss-about" });
    this.head = el("header", { class: "ss-head" }, this.title, this.about);
    // What the full screen shows, where the page around it is not seen.
    this.method = el("strong", {});
    this.by = el("span", {});
    this.prompt = el("span", { class: "ss-slim-prompt" });
    this.at = el("span", { class: "ss-slim-step" });
    this.slim = el("p", { class: "ss-slim" }, this.method, this.by, this.prompt, this.at);
    this.say = el("p", { class: "ss-say" }); // always of the same height, so that nothing moves while a run plays
    this.live = el("p", { class: "ss-hidden", "aria-live": "polite", role: "status" });
    this.words = el("span", {});
    this.share = el("progress", { max: 1, "aria-label": "Progress" });
    this.notice = el("div", { class: "ss-notice" }, this.words, this.share);
    this.foot = el("footer", { class: "ss-foot" }, this.model = el("span", {}), this.live);
    this.announced = "";
    /** @type {number | undefined} a timer */
    this.speaking = undefined;
    /** @type {number | undefined} a timer */
    this.announcing = undefined;
  }

  textButtons() {
    const { player } = this;
    const table = () => {
      const view = player.record.view("text");
      if (view) showTable(player, { view });
    };
    return el("div", { class: "ss-text-buttons" }, button("table", "The step's guesses as a table", table),
      button("info", "Facts of the step", () => player.change({ facts: !player.state.facts }), { key: "i" }));
  }

  /** @param {Set<string>} changed */
  update(changed) {
    const { record, state } = this.player;
    if (changed.has("record")) {
      this.drawHead();
      this.drawNotice();
    }
    const step = record.steps[state.step];
    write(this.at, step ? this.player.at.replace("s", "S") : "");
    const words = step ? sentence(step, state) : "";
    if (this.say.title !== words) {
      this.say.title = words; // whole, where there is no room for all of it
      this.say.replaceChildren(...withTerms(words, this.player));
    }
    if (["playing", "step", "phase", "record", "withheld"].some((name) => changed.has(name))) this.speak(step);
  }

  /**
   * Announce politely, and only while nothing moves.
   * @param {StepLine | undefined} step
   */
  speak(step) {
    const { state } = this.player;
    clearTimeout(this.speaking);
    if (state.withheld) write(this.live, "");
    if (!step || state.playing || state.follow || state.withheld) return;
    this.speaking = setTimeout(() => write(this.live, sentence(step, state)), 150);
  }

  /**
   * Announce that a requested thing does not exist.
   * @param {string} words
   */
  announce(words) {
    clearTimeout(this.speaking);
    this.announced = words;
    write(this.live, words);
    this.drawNotice();
    clearTimeout(this.announcing);
    this.announcing = setTimeout(() => {
      this.announced = "";
      this.drawNotice();
    }, 4000);
  }

  drawNotice() {
    const { record } = this.player;
    const [kind, words] = this.notable();
    write(this.words, words);
    show(this.notice, Boolean(words));
    this.notice.dataset.kind = kind;
    const share = record.state?.share;
    show(this.share, typeof share === "number");
    if (typeof share === "number") this.share.value = share;
  }

  /** @returns {[kind: string, words: string]} */
  notable() {
    const { record } = this.player;
    if (record.fault) return ["failed", record.fault];
    if (this.announced) return ["announced", this.announced];
    if (record.state) return [record.state.what, record.state.sentence];
    if (!record.play) return ["empty", "Nothing to show yet: choose a recorded run, or start one."];
    if (record.last < 0) return ["reading", "The run has started; its first step is on the way."];
    if (library.failed) return ["failed", "The charts could not be loaded: reload the page."];
    const finish = record.end?.finish ?? "";
    if (finish === "cancelled" && record.watched) return [finish, "You stopped this run."];
    if (["cancelled", "time", "error", "torn"].includes(finish)) return [finish, `This run ${finishWords(finish)}.`];
    return ["", ""];
  }

  drawHead() {
    const { record } = this.player;
    const header = record.play?.header;
    show(this.head, Boolean(header));
    if (!header) return write(this.model, "");
    write(this.title, header.label);
    write(this.method, header.label);
    write(this.by, modelName(header.model.name));
    write(this.prompt, asked(record));
    this.prompt.title = asked(record);
    write(this.about, about(record, header));
    return write(this.model, footer([header]));
  }
}

/**
 * Return the prompt in one line: of a conversation the user's last message.
 * @param {RunRecord} record
 */
const asked = (record) => {
  const whole = Array.from(unpack(record.head.prompt), (id) => record.raw(Number(id))).join("");
  const turn = whole.split(/<\|[^|>]*\|>/).findLast((part) => /^user\s/.test(part));
  return (turn?.replace(/^user\s/, "") ?? whole).replace(/\s+/g, " ").trim();
};

/**
 * Return what has happened up to a phase, and nothing of what comes after it.
 * @param {StepLine} step
 * @param {State} state
 */
export const sentence = (step, { step: k, phase, withheld }) => {
  if (withheld) return "";
  const guesses = plural(step.drafted, "guess", "guesses");
  if (phase === "propose") return `Step ${k}: ${step.drafted ? guesses : "no guess"} for the target to read.`;
  if (phase === "verify") return `Step ${k}: the target processes ${plural(step.fed, "token")} in one pass.`;
  if (phase === "answers") return `Step ${k}: the target's likeliest token ${step.drafted ? "at the position of each guess" : "is known"}.`;
  if (phase === "accept") return `Step ${k}: ${step.accepted} of ${guesses} accepted, then the target's own token.`;
  return step.say;
};

/**
 * Return the name of a setting as the form shows it; a setting of a method that is none of ours goes by its own.
 * @param {Header} header
 * @param {string} name
 */
export const settingName = ({ labels }, name) => (labels && Object.hasOwn(labels, name) ? labels[name] : name);

/**
 * Return the settings in which a run differs from other runs of its method, as "W 4, N 5"; empty if in none.
 * @param {Header} header
 * @param {Header[]} others of any method
 */
export const ownSettings = (header, others) => {
  const alike = others.filter(({ method }) => method === header.method);
  /** @param {string} name as short as it can be */
  const symbol = (name) => /\(([^()]+)\)$/.exec(settingName(header, name))?.[1] ?? settingName(header, name);
  return Object.entries(header.params ?? {})
    .filter(([name, value]) => alike.some(({ params }) => params?.[name] !== value))
    .map(([name, value]) => `${symbol(name)} ${value}`).join(", ");
};

/**
 * Return what made a run, and how it ended.
 * @param {RunRecord} record
 * @param {Header} header
 */
export const about = (record, header) => {
  const params = Object.entries(header.params ?? {})
    .filter(([, value]) => typeof value !== "boolean" && value !== null)
    .slice(0, 8).map(([name, value]) => `${settingName(header, name)} ${value}`);
  const warm = header.sampling?.temperature;
  const parts = [params.join(", "), warm ? `${settingName(header, "temperature")} ${warm}` : "greedy"];
  if (!header.lossless) parts.push("not lossless by design");
  parts.push(plural(header.prompt_length, "prompt token"));
  if (record.end) parts.push(finishWords(record.end.finish));
  return parts.filter(Boolean).join(" · ");
};

/**
 * Return where runs ran: what several share is named once.
 * @param {Header[]} headers
 */
export const footer = (headers) => {
  /** @param {ModelCard} model */
  const card = (model) => {
    const named = modelName(model.name); // a name of the page's tells the size
    return named === model.name && model.parameters ? `${named} (${compact(model.parameters)})` : named;
  };
  /** @param {Header} header */
  const versions = ({ versions: all }) =>
    Object.entries(all ?? {}).map(([name, number]) => `${name} ${number}`).join(", ");
  /** @type {((header: Header) => string | number | boolean | null | undefined)[]} */
  const parts = [(header) => card(header.model), (header) => header.draft && `drafter ${card(header.draft)}`,
    (header) => header.device, (header) => header.processor,
    (header) => header.threads && plural(header.threads, "thread"),
    (header) => (header.ranks ?? 1) > 1 && plural(header.ranks ?? 1, "rank"),
    (header) => header.dtype, (header) => header.attention, versions];
  return [...new Set(parts.flatMap((part) => headers.map(part)).filter(Boolean))].join(" · ");
};
