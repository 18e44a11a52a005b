// Draws the layers of cells of a chart: squares, the words in them and beside them, and small signs. Plotly styles every
// point and every text twice at every drawing, which took three tenths of a step's time; here points of one look are one
// path, and words are rewritten in place. Saved pictures and figures elsewhere are drawn by plotly.
import { at, axesOf, drawnHere, halvesOf, placeholders, symbolOf } from "./layers.js";
import { markerShape, rectangle } from "./shapes.js";
import { svg, write } from "../dom/elements.js";
import { unescapeMarkup } from "../stream/escape.js";

/** @import { Axis, Figure, Layer, Point } from "../types.d.ts" */
/** @import { Plot } from "./plot.js" */

const REACH = 20; // pixels from a square's edge to a pointer that means it, as far as plotly's

// Where words are beside their places, as the text anchors of SVG.
const ANCHORS = { middle: "middle", left: "end", right: "start" };

/**
 * @typedef {([x: number, y: number] | null)[]} Pixels
 * @typedef {{ [attribute: string]: string | number }} Attributes
 * @typedef {{ draw: (x: number, y: number, across: number, down: number) => string, attributes: Attributes }} Look
 * @typedef {Map<string, { attributes: Attributes, d: string }>} Paths by their attributes
 */

export class Cells {
  /** @param {Plot} plot */
  constructor(plot) {
    this.plot = plot;
    /** @param {string} name */
    const canvas = (name) => svg("svg", { class: `ss-cells ss-cell-${name}`, "aria-hidden": "true" });
    this.squares = canvas("squares");
    this.signs = canvas("signs");
    this.words = canvas("words");
    this.here = drawnHere(plot.view);
    this.placeholders = placeholders(plot.view, this.here);
    /** @type {[number, Layer][]} the layers that are here now, by their numbers */
    this.drawn = [];
  }

  // Whether any part of the chart is drawn here.
  get any() {
    return this.here.size > 0;
  }

  /** @param {Figure} figure */
  draw(figure) {
    /** @type {Paths} */
    const squares = new Map();
    /** @type {Paths} */
    const signs = new Map();
    let written = 0;
    this.drawn = [...this.here].map((i) => [i, /** @type {Layer} */ (figure.data[i])]);
    this.drawn = this.drawn.filter(([, layer]) => layer.visible !== false);
    for (const [, layer] of this.drawn) {
      const places = this.places(layer);
      const halves = this.halves(layer);
      if (layer.layer === "squares") gather(squares, places, halves, (i) => square(layer, figure.fills, i));
      if (layer.layer === "signs") gather(signs, places, halves, (i) => sign(layer, i));
      if (layer.font) written = this.write(layer, places, written);
    }
    drawPaths(this.squares, squares);
    drawPaths(this.signs, signs);
    shorten(this.words, written);
  }

  /** @param {Layer} layer */
  axes(layer) {
    return axesOf(layer).map((name) => /** @type {Axis} */ (this.plot.gd._fullLayout[name]));
  }

  /** @param {Layer} layer */
  halves(layer) {
    return halvesOf(layer, 0, this.axes(layer)).map(round);
  }

  /**
   * Return where the places of a layer are in pixels, or nothing.
   * @param {Layer} layer
   * @returns {Pixels}
   */
  places(layer) {
    const [x, y] = this.axes(layer);
    return Array.from(layer.x, (value, i) => {
      const [left, top] = [x._offset + x.d2p(value), y._offset + y.d2p(layer.y[i] ?? NaN)];
      return Number.isFinite(left) && Number.isFinite(top) ? [round(left), round(top)] : null;
    });
  }

  /**
   * Write into the texts from number `used` on; returns how many are in use then.
   * @param {Layer} layer
   * @param {Pixels} places
   * @param {number} used
   */
  write({ text = [], font = 0, ink = "", side }, places, used) {
    const fixed = { fill: ink, "font-size": font, "text-anchor": ANCHORS[side ?? "middle"] };
    for (let i = 0; i < text.length; i += 1) {
      const place = places[i];
      if (!text[i] || !place) continue;
      const node = this.words.children[used] ?? this.words.appendChild(svg("text", { dy: ".35em" }));
      used += 1;
      set(node, { x: place[0], y: place[1], ...fixed });
      write(node, unescapeMarkup(text[i]));
    }
    return used;
  }

  // Whether the pointer finds squares here, and then nothing else.
  get catch() {
    return this.drawn.some(([, { layer }]) => layer === "squares");
  }

  /**
   * Return the square next to a place of the chart, as plotly tells of its points.
   * @param {number} x
   * @param {number} y
   * @returns {Point | null}
   */
  near(x, y) {
    /** @type {Point | null} */
    let nearest = null;
    let least = REACH;
    for (const [curveNumber, layer] of this.drawn) {
      if (layer.layer !== "squares") continue;
      const [across, down] = this.halves(layer);
      for (const [pointNumber, place] of this.places(layer).entries()) {
        const far = place ? Math.hypot(beyond(place[0] - x, across), beyond(place[1] - y, down)) : Infinity;
        if (far < least) [nearest, least] = [{ curveNumber, pointNumber }, far];
      }
    }
    return nearest;
  }

  clear() {
    this.drawn = [];
    for (const canvas of [this.squares, this.signs, this.words]) shorten(canvas, 0);
  }
}

/** @param {number} pixels */
const round = (pixels) => Math.round(10 * pixels) / 10;

/**
 * @param {number} far from a cell's middle
 * @param {number} half of its size
 */
const beyond = (far, half) => Math.max(0, Math.abs(far) - half);

/**
 * @param {Layer} layer
 * @param {string[]} fills
 * @param {number} i
 * @returns {Look}
 */
const square = ({ colour, fate, opacity }, fills, i) => {
  const fill = colour ?? fills[fate?.[i] ?? -1];
  return { draw: rectangle, attributes: { fill, "fill-opacity": at(opacity, i) ?? 1 } };
};

/**
 * @param {Layer} layer
 * @param {number} i
 * @returns {Look | null}
 */
const sign = (layer, i) => {
  const shape = markerShape(symbolOf(layer, i));
  const { colour = "", stroke = 1 } = layer;
  return shape && {
    draw: shape.draw, attributes: { fill: shape.open ? "none" : colour, stroke: colour, "stroke-width": stroke },
  };
};

/**
 * Add the places of a layer to those of the same look.
 * @param {Paths} paths
 * @param {Pixels} places
 * @param {number[]} halves of a cell's width and height
 * @param {(i: number) => Look | null} lookOf
 */
const gather = (paths, places, [across, down], lookOf) => {
  places.forEach((place, i) => {
    const look = place && lookOf(i);
    if (!look) return;
    const key = JSON.stringify(look.attributes);
    const path = paths.get(key) ?? { attributes: look.attributes, d: "" };
    path.d += look.draw(place[0], place[1], across, down);
    paths.set(key, path);
  });
};

/**
 * @param {SVGElement} canvas
 * @param {Paths} paths
 */
const drawPaths = (canvas, paths) => {
  [...paths.values()].forEach(({ attributes, d }, i) =>
    set(canvas.children[i] ?? canvas.appendChild(svg("path")), { ...attributes, d }));
  shorten(canvas, paths.size);
};

/**
 * @param {SVGElement} canvas
 * @param {number} length
 */
const shorten = (canvas, length) => {
  while (canvas.children.length > length) canvas.lastChild?.remove();
};

/**
 * @param {Element} node
 * @param {Attributes} attributes
 */
const set = (node, attributes) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
  }
};
