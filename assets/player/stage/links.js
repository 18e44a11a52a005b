// Lines between pieces of the stage, in its letters: a column is so many of them wide, a row so many high.

/** @import { SceneLink, StagePiece } from "../types.d.ts" */

export const COLUMN = 4.75;
export const NARROW_COLUMN = 3.4; // on a narrow page: so that letters are large enough to be read
export const ROW = 1.8;
export const GUTTER = 0.35; // between boxes
const HIGH = ROW - GUTTER;

/**
 * @param {StagePiece} piece
 * @param {number} column
 */
const box = ({ x, y }, column) => ({
  left: x * column, right: (x + 1) * column - GUTTER, top: y * ROW, bottom: y * ROW + HIGH,
  middle: y * ROW + HIGH / 2, centre: (x + 0.5) * column - GUTTER / 2,
});

/** @param {number} value */
const short = (value) => Math.round(value * 100) / 100;

/**
 * @param {number[]} from
 * @param {number[]} to
 * @param {[number, number]} [bend] how the ends leave: a share of the way in x and in y
 */
const curve = ([x, y], [u, v], [across, down] = [0.5, 0]) => {
  const [dx, dy] = [(u - x) * across, (v - y) * down];
  const points = [x, y, x + dx, y + dy, u - dx, v - dy, u, v].map(short);
  return `M${points[0]} ${points[1]}C${points.slice(2).join(" ")}`;
};

/**
 * @param {SceneLink} link
 * @param {number} [column]
 */
export const linkPath = ({ from, to, kind }, column = COLUMN) => {
  const [a, b] = [box(from, column), box(to, column)];
  if (kind === "diagonal") return `M${short(a.centre)} ${short(a.middle)}L${short(b.centre)} ${short(b.middle)}`;
  if ((kind === "tree" || kind === "flow") && b.left >= a.right - 1) return curve([a.right, a.middle], [b.left, b.middle]);
  if (Math.abs(a.middle - b.middle) < 0.1) { // side by side: an arch above them
    const high = a.top - Math.min(1.4, 0.4 + Math.abs(b.centre - a.centre) / 40);
    return `M${short(a.centre)} ${short(a.top)}C${[a.centre, high, b.centre, high, b.centre, b.top].map(short).join(" ")}`;
  }
  const below = b.top > a.bottom;
  return curve([a.centre, below ? a.bottom : a.top], [b.centre, below ? b.top : b.bottom], [0, 0.5]);
};
