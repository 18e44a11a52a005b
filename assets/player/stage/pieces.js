// The pieces on the stage: one element each for as long as it is there, moved by its transform alone.
import { el, write } from "../dom/elements.js";
import { COLUMN, GUTTER, ROW } from "./links.js";
import { fitted } from "./text_fit.js";

/** @import { StagePiece, Where } from "../types.d.ts" */

const SHORT = 3; // letters of a word that a line through it would hide

/** @param {Where} where */
export const moved = ({ x, y }) => `translate(calc(${x} * var(--column)), ${y * ROW}em)`;
/** @param {number} wide */
export const width = (wide) => `calc(${wide} * var(--column) - ${GUTTER}em)`;

export class Pieces {
  constructor() {
    this.node = el("div", {});
    /** @type {Map<number, HTMLElement>} */
    this.elements = new Map();
    /** @type {Map<number, StagePiece>} what they show */
    this.shown = new Map();
    /** @type {Set<HTMLElement>} fading out */
    this.leaving = new Set();
    this.column = COLUMN; // letters
    this.letter = 16; // pixels, and of the smallest word
    this.least = 12;
  }

  /**
   * @param {Map<number, StagePiece>} pieces
   * @param {boolean} glides
   */
  draw(pieces, glides) {
    for (const gone of this.leaving) gone.remove();
    for (const element of this.elements.values()) element.style.transitionDelay = ""; // their turn is over
    this.leaving.clear();
    for (const [id, element] of this.elements) if (!pieces.has(id)) this.leave(id, element, glides);
    const fresh = [...pieces.values()].filter(({ id }) => !this.elements.has(id));
    for (const piece of fresh) this.enter(piece, pieces, glides);
    if (glides && fresh.length) this.node.getBoundingClientRect(); // new pieces begin to move from where they are put
    for (const piece of pieces.values()) this.show(piece);
    this.shown = pieces;
  }

  /**
   * Begin a new piece where its origin is.
   * @param {StagePiece} piece
   * @param {Map<number, StagePiece>} pieces
   * @param {boolean} glides
   */
  enter(piece, pieces, glides) {
    const element = el("div", { class: "ss-piece" }, el("span", { class: "ss-piece-word" }));
    element.style.width = width(1);
    const origin = piece.origin !== null ? this.shown.get(piece.origin) ?? pieces.get(piece.origin) : undefined;
    if (glides) {
      element.style.transform = moved(origin ?? piece);
      element.classList.toggle("ss-entering", !origin || piece.turn > 0);
      if (piece.turn) element.style.transitionDelay = `calc(var(--turn) * ${piece.turn})`;
    }
    this.elements.set(piece.id, element);
    this.node.append(element);
  }

  /**
   * @param {number} id
   * @param {HTMLElement} element
   * @param {boolean} glides
   */
  leave(id, element, glides) {
    this.elements.delete(id);
    if (!glides) return element.remove();
    this.leaving.add(element);
    element.classList.add("ss-leaving");
    return element.addEventListener("transitionend", () => {
      this.leaving.delete(element);
      element.remove();
    });
  }

  /** @param {StagePiece} piece */
  show(piece) {
    const element = /** @type {HTMLElement} */ (this.elements.get(piece.id));
    element.dataset.piece = String(piece.id);
    const classes = `ss-piece ss-is-${piece.fate}${piece.faint ? " ss-faint" : ""}${piece.text ? "" : " ss-empty"}${
      piece.fed ? " ss-fed" : ""}${piece.cached ? " ss-cached" : ""}${piece.copied ? " ss-copied" : ""}${piece.text.length <= SHORT ? " ss-short" : ""}`;
    if (element.className !== classes) element.className = classes;
    element.style.transform = moved(piece);
    const word = /** @type {HTMLElement} */ (element.firstChild);
    write(word, piece.text);
    const { size, narrow, most } = fitted(this, piece);
    Object.assign(word.style, { fontSize: `${size}em`, maxWidth: most, transform: narrow < 1 ? `scaleX(${narrow})` : "" });
    element.title = piece.text;
    if (piece.node >= 0) element.dataset.node = String(piece.node);
    else delete element.dataset.node;
    const before = this.shown.get(piece.id);
    if (before?.note !== piece.note || before?.share !== piece.share || before?.answer !== piece.answer) this.decorate(element, piece);
  }

  /**
   * @param {HTMLElement} element
   * @param {StagePiece} piece
   */
  decorate(element, { note, share, answer }) {
    while (element.childNodes.length > 1) element.lastChild?.remove();
    if (share >= 0) {
      const bar = el("i", { class: "ss-piece-share" }, el("i", {}));
      /** @type {HTMLElement} */ (bar.firstChild).style.width = `${Math.min(1, share) * 100}%`;
      element.append(bar);
    }
    if (note) element.append(el("small", {}, note));
    if (answer) element.append(el("small", { class: "ss-answer" }, answer));
  }

  /**
   * Return the pieces that a token came from and those that are made from it, as far as they are seen.
   * @param {StagePiece | undefined} piece
   * @returns {Set<number>} with the piece itself
   */
  kin(piece) {
    const row = piece ? this.row(piece) : [];
    const kin = new Set(row.map(({ id }) => id));
    for (const { origin } of row) {
      for (let at = origin; at !== null && !kin.has(at); at = this.shown.get(at)?.origin ?? null) kin.add(at);
    }
    for (const { id, origin } of this.shown.values()) if (piece && origin === piece.id) kin.add(id);
    return kin;
  }

  /**
   * Return the pieces that are lit with a piece: one that is no node of the step, as in a pool, represents its row.
   * @param {StagePiece} piece
   */
  row(piece) {
    const row = [piece];
    if (piece.node >= 0) return row;
    const beside = [...this.shown.values()].filter(({ node, origin, y }) => node < 0 && origin !== null && y === piece.y);
    for (const by of [-1, 1]) {
      for (let { x } = piece, next; (next = beside.find((each) => each.x === x + by)); x += by) row.push(next);
    }
    return row;
  }

  /** @param {number | null} number the number of a node */
  at(number) {
    return [...this.shown.values()].find(({ node }) => node >= 0 && node === number);
  }

  /**
   * @param {number | null} hovered the number of a node
   * @param {number | null} pinned
   * @param {Set<number>} kin
   */
  mark(hovered, pinned, kin) {
    for (const [id, element] of this.elements) {
      element.classList.toggle("ss-kin", kin.has(id));
      const node = element.dataset.node === undefined ? -1 : Number(element.dataset.node);
      element.classList.toggle("ss-hovered", node >= 0 && node === hovered);
      element.classList.toggle("ss-pinned", node >= 0 && node === pinned);
    }
  }

  clear() {
    this.elements.clear();
    this.shown = new Map();
    this.leaving.clear();
    this.node.replaceChildren();
  }
}
