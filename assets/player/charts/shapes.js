// The symbols of signs as paths around a point, in the shapes and sizes of plotly's markers of these names.

const TIPS = Array.from({ length: 10 }, (_, i) => [Math.sin((Math.PI * i) / 5), -Math.cos((Math.PI * i) / 5)]);
const CORNER = [[0, 1], [1, 2], [2, 1]]; // of a cross that stands on two tips; the others are turned by quarters

const CROSS = [0, 1, 2, 3].flatMap((turns) => CORNER.map(([across, down]) =>
  [[across, down], [down, -across], [-across, -down], [-down, across]][turns]));

const SIDE = 2 / Math.sqrt(3); // of a triangle, half of it
const PLUS = [0, 1, 2, 3].flatMap((turns) => [[0.4, -1.2], [0.4, -0.4], [1.2, -0.4]].map(([across, down]) =>
  [[across, down], [-down, across], [-across, -down], [down, -across]][turns]));
const RIM = Array.from({ length: 8 }, (_, i) => (Math.PI * (2 * i + 1)) / 8).map((turn) =>
  [Math.sin(turn), Math.cos(turn)]);

/** @param {number[][]} points */
const path = (points) => `M${points.map((point) => point.join(" ")).join("L")}Z`;

/**
 * @param {number[]} point
 * @param {number} x
 * @param {number} y
 * @param {number} by
 */
const scaled = ([across, down], x, y, by) => [x + by * across, y + by * down];

/**
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
const circle = (x, y, r) => `M${x + r} ${y}A${r} ${r} 0 1 1 ${x - r} ${y}A${r} ${r} 0 1 1 ${x + r} ${y}Z`;

/**
 * @param {number} x
 * @param {number} y
 * @param {number} across half of the width
 * @param {number} down half of the height
 */
export const rectangle = (x, y, across, down) =>
  `M${x - across} ${y - down}h${2 * across}v${2 * down}h${-2 * across}Z`;

/**
 * Around x and y, with half the marker's size.
 * @typedef {(x: number, y: number, r: number) => string} Draw
 * @type {{ [name: string]: Draw }}
 */
const SHAPES = {
  circle,
  square: (x, y, r) => rectangle(x, y, r, r),
  cross: (x, y, r) => path(PLUS.map((point) => scaled(point, x, y, r))),
  octagon: (x, y, r) => path(RIM.map((point) => scaled(point, x, y, r))),
  "triangle-up": (x, y, r) => path([[x - SIDE * r, y + r / 2], [x + SIDE * r, y + r / 2], [x, y - r]]),
  "triangle-down": (x, y, r) => path([[x - SIDE * r, y - r / 2], [x + SIDE * r, y - r / 2], [x, y + r]]),
  "line-ew": (x, y, r) => `M${x + 1.4 * r} ${y}h${-2.8 * r}`,
  "square-cross": (x, y, r) =>
    `${rectangle(x, y, r, r)}M${x - r} ${y}h${2 * r}M${x} ${y - r}v${2 * r}`,
  diamond: (x, y, r) => path([[x + 1.3 * r, y], [x, y + 1.3 * r], [x - 1.3 * r, y], [x, y - 1.3 * r]]),
  x: (x, y, r) => path(CROSS.map((point) => scaled(point, x, y, 0.4 * Math.SQRT2 * r))),
  bowtie: (x, y, r) => `M${x + r} ${y + r}V${y - r}L${x - r} ${y + r}V${y - r}Z`,
  star: (x, y, r) => path(TIPS.map((point, i) => scaled(point, x, y, 1.4 * r * (i % 2 ? 0.382 : 1)))),
  "circle-x": (x, y, r) => {
    const k = r * Math.SQRT1_2;
    return `${circle(x, y, r)}M${x - k} ${y - k}L${x + k} ${y + k}M${x - k} ${y + k}L${x + k} ${y - k}`;
  },
  hash: (x, y, r) => [-r / 2, r / 2].map((k) => `M${x + k} ${y - r}v${2 * r}M${x - r} ${y + k}h${2 * r}`).join(""),
};

/**
 * Return what a symbol is made of; null for one that is not known.
 * @param {string} symbol
 */
export const markerShape = (symbol) => {
  const name = symbol.replace(/(-open)?(-dot)?$/, "");
  const open = symbol.includes("-open");
  const dot = symbol.endsWith("-dot");
  if (!Object.hasOwn(SHAPES, name)) return null;
  /** @type {Draw} */
  const draw = (x, y, r) => SHAPES[name](x, y, r) + (dot ? SHAPES.diamond(x, y, 0.4) : "");
  return { draw, open };
};
