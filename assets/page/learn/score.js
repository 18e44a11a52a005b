// The reader's score. It stays in this browser, and is never sent.

/** @import { Answered } from "./types.d.ts" */

const KEY = "specscope-lessons";

/** @typedef {{ right: boolean, answer: string }} FirstAnswer */

export class Score {
  constructor() {
    /** @type {{ [screen: string]: FirstAnswer }} by lesson/anchor */
    this.answers = stored();
  }

  /**
   * The first answer counts.
   * @param {string} lesson
   * @param {string} anchor
   * @param {Answered} answer
   */
  note(lesson, anchor, { right, answer }) {
    this.answers[`${lesson}/${anchor}`] ??= { right, answer };
    this.save();
  }

  /** @param {string} lesson */
  of(lesson) {
    const answers = Object.entries(this.answers).filter(([screen]) => screen.startsWith(`${lesson}/`));
    return { answered: answers.length, right: answers.filter(([, { right }]) => right).length };
  }

  get any() {
    return Object.keys(this.answers).length > 0;
  }

  forget() {
    this.answers = {};
    this.save();
  }

  save() {
    try {
      localStorage.setItem(KEY, JSON.stringify(this.answers));
    } catch {
      // without storage the score lasts as long as the page
    }
  }
}

/** Return the score of an earlier visit, as far as it can be read. */
const stored = () => {
  try {
    /** @type {unknown} */
    const answers = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (!answers || typeof answers !== "object" || Array.isArray(answers)) return {};
    return Object.fromEntries(Object.entries(answers).filter(([, each]) =>
      typeof each?.right === "boolean" && typeof each?.answer === "string"));
  } catch {
    return {};
  }
};
