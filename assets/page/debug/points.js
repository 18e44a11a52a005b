// Finds the points of a figure that can be pressed, and moves from one to the next by keys.

/** @import { Drawing, FigurePoint } from "./types.d.ts" */

/** @type {{ [key: string]: [across: number, up: number] }} */
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
const ASIDE = 1000; // how much farther a point beside the way is than one on it

/**
 * Every point with its row, and its position as a reader sees it.
 * @param {Drawing} figure
 * @returns {FigurePoint[]}
 */
export const pointsOf = ({ data, layout }) => {
  const lies = /** @type {{ autorange?: unknown }} */ (layout.yaxis ?? {}).autorange === "reversed"; // the first on top
  const curves = data.map((trace, curve) => ({ trace, curve })).filter(({ trace }) => Array.isArray(trace.customdata));
  const bars = curves.some(({ trace }) => trace.type === "bar"); // those of one name are side by side
  let left = 0; // columns of the panels on the left
  /** @type {FigurePoint[][]} */
  const points = curves.map(({ trace, curve }, place) => {
    const second = sideOf(trace, curve) === 1;
    const rows = /** @type {(number | (number | null)[])[]} */ (trace.customdata);
    const from = left;
    left += Array.isArray(rows[0]) ? rows[0].length : 0;
    return rows.flatMap((row, at) => {
      if (Array.isArray(row)) return cells(row, at, from).map((cell) => ({ curve, second, ...cell }));
      const along = bars ? at * curves.length + place : at;
      const beside = bars ? 0 : place;
      return [{ curve, second, at: /** @type {FigurePoint["at"]} */ (at), row, x: lies ? beside : along, y: lies ? -along : -beside }];
    });
  });
  return points.flat();
};

/**
 * @param {(number | null)[]} row
 * @param {number} y
 * @param {number} left
 */
const cells = (row, y, left) => row.flatMap((each, x) => (each === null ? [] :
  [{ at: /** @type {FigurePoint["at"]} */ ([y, x]), row: each, x: left + x, y }]));

/**
 * Return the number of the selection that a trace shows: its own `meta`, else its index.
 * @param {{ meta?: unknown } | undefined} trace
 * @param {number} curve
 */
export const sideOf = (trace, curve) => (typeof trace?.meta === "number" ? trace.meta : curve);

/**
 * The point that a key leads to: the nearest that way, those straight ahead first. Null where it leads nowhere.
 * @param {FigurePoint[]} points
 * @param {FigurePoint} from
 * @param {string} key
 */
export const towards = (points, from, key) => {
  if (key === "Home" || key === "End") return points.at(key === "Home" ? 0 : -1) ?? null;
  if (!Object.hasOwn(WAYS, key)) return null;
  const [across, up] = WAYS[key];
  const ahead = points.flatMap((point) => {
    const [x, y] = [point.x - from.x, point.y - from.y];
    const forward = x * across + y * up;
    return forward > 0 ? [{ point, far: forward + ASIDE * (Math.abs(x * up) + Math.abs(y * across)) }] : [];
  });
  return ahead.reduce((/** @type {{ point: FigurePoint, far: number } | null} */ best, each) =>
    (best && best.far <= each.far ? best : each), null)?.point ?? null;
};
