// The markers of figures as paths around a place: plotly's shapes by their names or numbers, and their sizes.


const NAMES = { 0: "circle", 1: "square", 2: "diamond", 4: "x", 17: "star", 28: "circle-x", 36: "hash" };

const TIPS = Array.from({ length: 10 }, (_, i) => [Math.sin((Math.PI * i) / 5), -Math.cos((Math.PI * i) / 5)]);

const CORNER = [[0, 1], [1, 2], [2, 1]]; // of a cross that stands on two tips; the others are turned by quarters

const CROSS = [0, 1, 2, 3].flatMap((turns) => CORNER.map(([across, down]) =>
  [[across, down], [down, -across], [-across, -down], [-down, across]][turns]));

const path = (points) => `M${points.map((point) => point.join(" ")).join("L")}Z`;

const scaled = ([across, down], x, y, by) => [x + by * across, y + by * down];

const circle = (x, y, r) => `M${x + r} ${y}A${r} ${r} 0 1 1 ${x - r} ${y}A${r} ${r} 0 1 1 ${x + r} ${y}Z`;

// Around x and y, with half the marker's size.
const SHAPES = {
  circle,
  square: (x, y, r) => `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}Z`,
  diamond: (x, y, r) => path([[x + 1.3 * r, y], [x, y + 1.3 * r], [x - 1.3 * r, y], [x, y - 1.3 * r]]),
  x: (x, y, r) => path(CROSS.map((point) => scaled(point, x, y, 0.4 * Math.SQRT2 * r))),
  star: (x, y, r) => path(TIPS.map((point, i) => scaled(point, x, y, 1.4 * r * (i % 2 ? 0.382 : 1)))),
  "circle-x": (x, y, r) => {
    const k = r * Math.SQRT1_2;
    return `${circle(x, y, r)}M${x - k} ${y - k}L${x + k} ${y + k}M${x - k} ${y + k}L${x + k} ${y - k}`;
  },
  hash: (x, y, r) => [-r / 2, r / 2].map((k) => `M${x + k} ${y - r}v${2 * r}M${x - r} ${y + k}h${2 * r}`).join(""),
};

// What a marker is made of; null for one that is not drawn here.
export const markerShape = (symbol) => {
  const [name, open, dot] = typeof symbol === "number" ? [NAMES[symbol % 100], symbol % 200 >= 100, symbol >= 200]
    : [String(symbol).replace(/(-open)?(-dot)?$/, ""), /-open/.test(symbol), /-dot$/.test(symbol)];
  if (!Object.hasOwn(SHAPES, name)) return null;
  const draw = (x, y, r) => SHAPES[name](x, y, r) + (dot ? SHAPES.diamond(x, y, 0.4) : "");
  return { draw, open };
};
