// Charts of the Cost tab, drawn as SVG: few marks, redrawn while a slider moves. Measured values are filled marks, others
// hollow ones on a broken line.
import { el, svg } from "../../player/dom/elements.js";

/**
 * @typedef {object} Axis
 * @property {string} label
 * @property {number} low
 * @property {number} high
 * @property {[value: number, text: string][]} ticks
 * @property {boolean} [log] by powers of two
 *
 * @typedef {object} Point
 * @property {number} x
 * @property {number} y
 * @property {boolean} measured
 * @property {string} says
 * @property {() => void} [press]
 *
 * @typedef {object} Series
 * @property {string} name
 * @property {number} look of its marks and lines, the same wherever it is drawn
 * @property {Point[]} points
 * @property {boolean} [line] whether its points are joined, by a broken line: nothing between them was measured
 *
 * @typedef {object} Figure
 * @property {string} says what is seen, in a sentence
 * @property {number} height
 * @property {Axis} x
 * @property {Axis} y
 * @property {Series[]} series
 * @property {number} [level] where two things are equal: a line across
 * @property {number} [levelX] and one upright
 * @property {number} [chosen] a value across, which a line upright marks
 */

const FOOT = 40, TOP = 24, RIGHT = 16; // pixels around the marks
const LETTER = 6.4; // pixels of a digit or a letter, at 12 px
const MARK = 4.6; // pixels from the middle of a mark to its edge

/** @type {((r: number) => string)[]} */
const SHAPES = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (r) => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  (r) => `M0 ${-1.2 * r}L${1.1 * r} ${r}H${-1.1 * r}z`,
  (r) => `M0 ${-1.4 * r}L${1.4 * r} 0L0 ${1.4 * r}L${-1.4 * r} 0z`,
  (r) => `M0 ${1.2 * r}L${1.1 * r} ${-r}H${-1.1 * r}z`,
];

/**
 * @param {number} look
 * @param {boolean} measured
 */
const mark = (look, measured) => svg("path", { d: SHAPES[look](MARK),
  class: `app-cost-mark app-cost-look-${look}${measured ? "" : " app-cost-hollow"}` });

/**
 * Return round numbers within a span, few enough to be read.
 * @param {number} low
 * @param {number} high
 * @param {number} [most]
 */
export const roundTicks = (low, high, most = 6) => {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough * 0.999) ?? power;
  /** @type {[number, string][]} */
  const ticks = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high * (1 + 1e-9); at += 1) {
    ticks.push([at * step, (at * step).toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)))]);
  }
  return ticks;
};

/**
 * Return where a value is on an axis, from 0 to 1.
 * @param {Axis} axis
 * @param {number} value
 */
const place = ({ low, high, log }, value) => (log ? Math.log2(value / low) / Math.log2(high / low) : (value - low) / (high - low));

/**
 * @param {Figure} figure
 * @param {number} width in pixels
 */
export const drawChart = ({ says, height, x, y, series, level, levelX, chosen }, width) => {
  const left = Math.min(0.4 * width, 14 + LETTER * Math.max(...y.ticks.map(([, text]) => text.length)));
  const [across, down] = [width - left - RIGHT, height - TOP - FOOT];
  const atX = (/** @type {number} */ value) => left + across * place(x, value);
  const atY = (/** @type {number} */ value) => TOP + down * (1 - place(y, value));
  const near = Math.ceil((LETTER * Math.max(...x.ticks.map(([, text]) => text.length)) + 8) * x.ticks.length / Math.max(across, 1));
  const lines = [
    ...y.ticks.map(([value, text]) => [
      svg("line", { x1: left, x2: width - RIGHT, y1: atY(value), y2: atY(value), class: "app-cost-grid" }),
      svg("text", { x: left - 8, y: atY(value) + 4, "text-anchor": "end" }, cut(text, left - 8)),
    ]).flat(),
    ...x.ticks.filter((_, at) => at % near === 0).map(([value, text]) => [
      svg("line", { x1: atX(value), x2: atX(value), y1: height - FOOT, y2: height - FOOT + 4, class: "app-cost-axis" }),
      svg("text", { x: atX(value), y: height - FOOT + 16, "text-anchor": "middle" }, text),
    ]).flat(),
    svg("text", { x: left + across / 2, y: height - 4, "text-anchor": "middle", class: "app-cost-label" }, x.label),
    svg("text", { x: 0, y: 12 }, y.label),
  ];
  if (chosen !== undefined) {
    lines.push(svg("line", { x1: atX(chosen), x2: atX(chosen), y1: TOP, y2: height - FOOT, class: "app-cost-chosen" }));
  }
  if (level !== undefined) {
    lines.push(svg("line", { x1: left, x2: width - RIGHT, y1: atY(level), y2: atY(level), class: "app-cost-level" }));
  }
  if (levelX !== undefined) {
    lines.push(svg("line", { x1: atX(levelX), x2: atX(levelX), y1: TOP, y2: height - FOOT, class: "app-cost-level" }));
  }
  const drawn = series.flatMap(({ points, look, line }) => [
    line ? svg("polyline", { points: points.map((each) => `${atX(each.x)},${atY(each.y)}`).join(" "),
      class: `app-cost-line app-cost-look-${look}` }) : null,
    ...points.map((each) => svg("g", { transform: `translate(${atX(each.x)} ${atY(each.y)})`, class: each.press ? "app-cost-pressed" : null,
        onclick: each.press }, svg("title", {}, each.says),
    each.press ? svg("circle", { r: 12, class: "app-cost-finger" }) : null, mark(look, each.measured))),
  ]);
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": says, class: "app-cost-chart" },
    ...lines, ...drawn);
};

/**
 * @param {string} text
 * @param {number} room pixels
 */
const cut = (text, room) => (text.length * LETTER > room ? `${text.slice(0, Math.max(1, Math.floor(room / LETTER) - 1))}…` : text);

/**
 * A mark as it is in the chart, for a legend.
 * @param {number} look
 * @param {boolean} measured
 * @param {boolean} line
 */
export const keyMark = (look, measured, line) => svg("svg", { width: 28, height: 14, viewBox: "-14 -7 28 14", "aria-hidden": "true" },
  line ? svg("line", { x1: -14, x2: 14, y1: 0, y2: 0, class: `app-cost-line app-cost-look-${look}` }) : null, mark(look, measured));

/**
 * What each mark stands for.
 * @param {{ name: string, look: number, measured: boolean, line?: boolean }[]} entries
 * @param {string} [level] what the level line is
 */
export const chartKey = (entries, level) => el("ul", { class: "ss-key app-cost-key" },
  ...entries.map(({ name, look, measured, line }) => el("li", {}, keyMark(look, measured, line ?? false), name)),
  level ? el("li", {}, svg("svg", { width: 28, height: 14, viewBox: "-14 -7 28 14", "aria-hidden": "true" },
    svg("line", { x1: -14, x2: 14, y1: 0, y2: 0, class: "app-cost-level" })), level) : null);
