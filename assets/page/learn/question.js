// A question of a lesson, and the reply to each answer. A reader can always skip it and have the answer shown.
import { el } from "../../player/dom/elements.js";
import { plainText } from "./words.js";

/** @import { Words } from "./words.js" */
/** @import { Answered, Ask, Choice, Span } from "./types.d.ts" */

const LETTERS = "abcdef";
const NEAR = 0.1; // of a number: what is this close counts as predicted
const PRESS = {
  guess: "Press a guess on the stage.", cell: "Press a cell of the window.", row: "Press a row of the mask.",
  token: "Press a token of the text.",
};
const PRESS_ALL = { guess: "guesses", cell: "cells", row: "rows", token: "tokens" };

export class Question {
  /**
   * @param {Ask} ask
   * @param {Words} words
   * @param {{ answered: (answer: Answered) => void, skip: () => void, texts: (node: string) => string }} host
   */
  constructor(ask, words, host) {
    this.ask = ask;
    this.words = words;
    this.host = host;
    /** @type {Set<string>} the nodes pressed so far, where several are asked for */
    this.pressed = new Set();
    this.picked = el("p", { class: "app-learn-picked", "aria-live": "polite" });
    this.reply = el("div", { class: "app-learn-reply", role: "status" });
    this.form = this.build();
    this.node = el("section", { class: "app-learn-ask", "aria-label": "Question" },
      el("p", { class: "app-learn-question" }, ...words.spans(ask.question)), this.form, this.reply);
  }

  build() {
    const skip = el("button", { type: "button", class: "app-button app-quiet app-learn-skip", onclick: () => this.host.skip() },
      "Show the answer");
    const { kind } = this.ask;
    if (kind === "choose") return el("div", { class: "app-learn-choices" }, ...this.ask.choices.map((choice, i) =>
      this.choice(choice, i)), skip);
    if (kind === "number") return this.number(skip);
    if (kind === "order") return this.order(skip);
    const [what, several] = [/** @type {keyof typeof PRESS} */ (this.ask.what), this.ask.many];
    const check = el("button", { type: "button", class: "app-button", onclick: () => this.judgePressed() }, "Check");
    return el("div", { class: "app-learn-press" },
      el("p", {}, several ? `Press all ${PRESS_ALL[what]} that apply, then Check.` : PRESS[what]), this.picked,
      el("div", { class: "app-tools" }, several && check, skip));
  }

  /**
   * @param {Choice} choice
   * @param {number} i
   */
  choice(choice, i) {
    return el("button", { type: "button", class: "app-learn-choice", "data-choice": LETTERS[i], onclick: () => this.choose(i) },
      el("kbd", {}, LETTERS[i]), el("span", {}, ...this.words.spans(choice.spans)));
  }

  /** @param {number} i */
  choose(i) {
    const choice = this.ask.choices[i];
    if (!choice) return;
    const right = this.ask.choices.findIndex((each) => each.right);
    for (const [at, button] of this.form.querySelectorAll(".app-learn-choice").entries()) {
      button.classList.toggle("app-right", at === right);
      button.classList.toggle("app-wrong", at === i && i !== right);
      button.setAttribute("aria-pressed", String(at === i));
    }
    this.settle({ right: choice.right, answer: plainText(choice.spans), reply: choice.reply });
  }

  /** @param {HTMLElement} skip */
  number(skip) {
    const [low, high] = this.ask.span;
    const input = el("input", { type: "number", min: low, max: high, step: "any", "aria-label": "Your prediction",
      class: "app-learn-number" });
    const form = el("form", { class: "app-learn-numbers" }, input,
      el("button", { type: "submit", class: "app-button" }, "Predict"), skip);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (input.value.trim() === "" || !input.checkValidity()) {
        this.picked.textContent = `Give a number from ${low} to ${high}.`;
        if (!this.picked.isConnected) form.append(this.picked);
        return;
      }
      this.picked.textContent = "";
      const given = Number(input.value), right = Number(this.ask.right);
      const near = Math.abs(given - right) <= Math.max(NEAR * Math.abs(right), 0.5 * 10 ** -digits(right));
      this.settle({ right: near, answer: input.value, reply: near ? null : this.ask.otherwise });
    });
    return form;
  }

  /** @param {HTMLElement} skip */
  order(skip) {
    /** @type {HTMLElement[]} */
    const rows = shuffled(this.ask.choices).map((choice) => {
      const row = el("li", { "data-key": choice.key }, el("span", {}, ...this.words.spans(choice.spans)));
      const name = plainText(choice.spans);
      const move = (/** @type {"up" | "down"} */ way) => el("button", { type: "button", class: "app-button",
        "aria-label": `Move ${name} ${way}`, onclick: () => this.move(row, way) }, way === "up" ? "↑" : "↓");
      row.append(move("up"), move("down"));
      return row;
    });
    const list = el("ol", { class: "app-learn-order" }, ...rows);
    const check = el("button", { type: "button", class: "app-button", onclick: () => this.judgeOrder(list) }, "Check");
    return el("div", {}, list, el("div", { class: "app-tools" }, check, skip));
  }

  /**
   * @param {HTMLElement} row
   * @param {"up" | "down"} way
   */
  move(row, way) {
    if (way === "up") row.previousElementSibling?.before(row);
    else row.nextElementSibling?.after(row);
  }

  /** @param {HTMLElement} list */
  judgeOrder(list) {
    const order = [...list.children].map((row) => row.getAttribute("data-key") ?? "");
    const right = Array.isArray(this.ask.right) && order.join() === this.ask.right.join();
    this.settle({ right, answer: order.join(", "), reply: right ? null : this.ask.otherwise });
  }

  /**
   * A node of the player was pressed.
   * @param {number} node
   */
  press(node) {
    const name = `n${node}`;
    if (this.ask.kind !== "press") return;
    if (this.ask.what === "guess" && node === 0) {
      this.picked.textContent = "That is the last token of the text. Press a guess.";
      return;
    }
    if (!this.ask.many) {
      const right = Array.isArray(this.ask.right) && this.ask.right.includes(name);
      const reply = this.ask.replies.find(([nodes]) => nodes.includes(name))?.[1] ?? this.ask.otherwise;
      this.picked.textContent = `You pressed ${this.host.texts(name)}.`;
      this.settle({ right, answer: this.host.texts(name), reply: right ? null : reply });
      return;
    }
    this.pressed.add(name);
    this.drawPressed();
  }

  // What was pressed, to be taken back by another press.
  drawPressed() {
    this.picked.replaceChildren(...[...this.pressed].map((name) => el("button", { type: "button", class: "app-button",
      "aria-label": `Take ${this.host.texts(name)} back`, onclick: () => {
        this.pressed.delete(name);
        this.drawPressed();
      } }, `${this.host.texts(name)} ×`)));
  }

  judgePressed() {
    const wanted = Array.isArray(this.ask.right) ? this.ask.right : [];
    const right = wanted.length === this.pressed.size && wanted.every((name) => this.pressed.has(name));
    const wrong = [...this.pressed].find((name) => !wanted.includes(name));
    const reply = this.ask.replies.find(([nodes]) => wrong !== undefined && nodes.includes(wrong))?.[1] ?? this.ask.otherwise;
    const answer = [...this.pressed].map((name) => this.host.texts(name)).join(", ");
    this.settle({ right, answer, reply: right ? null : reply });
  }

  /** @param {Answered} answer */
  settle(answer) {
    this.tell(answer.right ? "Right." : "Not quite.", answer.reply);
    this.reply.classList.toggle("app-right", answer.right);
    this.reply.classList.toggle("app-wrong", !answer.right);
    this.host.answered(answer);
  }

  /**
   * @param {string} verdict
   * @param {Span[] | null} reply
   */
  tell(verdict, reply) {
    this.reply.replaceChildren(el("strong", {}, verdict), " ", ...(reply ? this.words.spans(reply) : []));
  }

  /**
   * An answer by the keyboard; returns whether there is such a one.
   * @param {string} key
   */
  key(key) {
    const at = LETTERS.indexOf(key);
    if (this.ask.kind !== "choose" || at < 0 || at >= this.ask.choices.length) return false;
    this.choose(at);
    return true;
  }

  /** There is nothing left to show. */
  settled() {
    this.form.querySelector(".app-learn-skip")?.remove();
  }

  /** Mark the right answer for whoever goes on without one. */
  give() {
    for (const [at, button] of this.form.querySelectorAll(".app-learn-choice").entries()) {
      button.classList.toggle("app-right", this.ask.choices[at].right);
    }
    const { right, kind } = this.ask;
    if (kind === "choose") return;
    if (typeof right === "number") this.tell(`The answer: ${Number(right.toFixed(Math.max(2 - digits(right), 0)))}.`, null);
    else if (right && kind === "press") this.tell(`The answer: ${right.map((name) => this.host.texts(name)).join(", ")}.`, null);
    else if (right) this.tell(`The answer: ${right.map((key) => this.label(key)).join(", ")}.`, null);
  }

  /** @param {string} key */
  label(key) {
    const choice = this.ask.choices.find((each) => each.key === key);
    return choice ? plainText(choice.spans) : key;
  }
}

/**
 * How many digits a number has before its point, less one: 0 for 5, 1 for 50.
 * @param {number} value
 */
const digits = (value) => Math.max(0, Math.floor(Math.log10(Math.max(Math.abs(value), 1))));

/**
 * Return the choices in another order than they are written, without chance: a class sees what its lecturer saw.
 * @template T
 * @param {T[]} items
 */
const shuffled = (items) => items.map((_, i) => items[(i * (items.length - 1) + 1) % items.length]);
