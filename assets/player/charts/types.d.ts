// Views, their figures, and plotly.js as far as the player uses it.
import type { CheckedPlace, Packed, Phase, RecordTable, Value } from "../types.d.ts";

export interface View {
  name: string;
  label: string;
  kind: "plot" | "text" | "numbers" | "stage";
  look_for: string;
  grows?: boolean;
  nodes: ("points" | "rows" | "own" | null)[];
  phases: Phase[];
  columns: [heading: string, name: string][];
  rows?: boolean; // whether Python makes its tables
  pinned?: boolean; // whether it shows the pinned node alone
  base: Base;
}

/** What a view says once. Which fields there are depends on its kind. */
export interface Base {
  data: Value[]; // parts, with encodings in them
  layout: Layout;
  draws?: number[];
  key?: KeyItem[];
  least?: number;
  table?: RecordTable;
  rows?: NumberRow[];
  say?: string;
  tone?: string;
  places?: CheckedPlace[];
}

export interface Patch {
  data?: { [attribute: string]: Value }[];
  layout?: { [attribute: string]: Value };
  summary?: string;
  about?: number; // the node that the picture is about
  unread?: [name: string, first: number, last: number][]; // chunks of the text
  values?: (number | number[] | string | null)[];
  ghosts?: Packed | number[];
}

export interface KeyItem {
  colour: string;
  words: string;
  symbol?: string;
  sample?: string;
  hatch?: "-" | "x";
  ink?: string;
  thin?: boolean;
}

export interface NumberRow {
  key?: string;
  label: string;
  formula: string;
  scale?: number;
  digits?: number;
  unit?: string;
  parts?: string[];
  first?: number;
}

export interface Layout {
  height?: number;
  paper_bgcolor?: string;
  plot_bgcolor?: string;
  xaxis?: LayoutAxis;
  yaxis?: LayoutAxis;
  [name: string]: Value;
}

export interface LayoutAxis {
  range?: number[];
  tickvals?: number[];
  ticktext?: string[];
}

export interface Marker {
  color?: string | ArrayLike<number>;
  colorscale?: (string | number)[][];
  cmin?: number;
  cmax?: number;
  showscale?: boolean;
  symbol?: string | ArrayLike<string>;
  size?: number | ArrayLike<number>;
  opacity?: number | ArrayLike<number>;
  line?: { width?: number; color?: string };
}

/** A layer of cells, which the page draws itself: viz/cells.py says what the keys mean. */
export interface Layer {
  layer: "squares" | "signs" | "labels";
  visible?: boolean;
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  yaxis?: string;
  nodes?: ArrayLike<number>;
  size?: number;
  span?: number[];
  opacity?: number | ArrayLike<number>;
  colour?: string;
  fate?: ArrayLike<number>;
  sign?: ArrayLike<string | number>;
  signs?: string[];
  stroke?: number;
  text?: string[];
  font?: number;
  ink?: string;
  side?: "left" | "right";
}

export interface PlotTrace {
  type?: string;
  orientation?: "h" | "v";
  mode?: string;
  visible?: boolean;
  x?: ArrayLike<number>;
  y?: ArrayLike<number>;
  z?: ArrayLike<number>[];
  base?: ArrayLike<number>;
  width?: number;
  offset?: number;
  text?: string[];
  customdata?: ArrayLike<number>;
  xaxis?: string;
  yaxis?: string;
  marker?: Marker;
  textfont?: { color?: string; size?: number; style?: string };
  textposition?: string;
  insidetextanchor?: string;
  textangle?: number;
  constraintext?: string;
  texttemplate?: string;
  hoverinfo?: string;
  opacity?: number;
  showlegend?: boolean;
  cliponaxis?: boolean;
}

export type Part = PlotTrace | Layer;

export interface Figure {
  data: Part[];
  fills: string[]; // the colours of the fates, by their codes
  layout: Layout;
  summary?: string;
}

export interface Axis {
  _offset: number;
  _length: number;
  showticklabels?: boolean;
  d2p(value: number): number;
  p2d(pixel: number): number;
}

export interface PlotElement extends HTMLDivElement {
  _fullLayout: { width: number; height: number; xaxis: Axis; [name: string]: Value };
  _context?: object;
  layout: Layout;
  on(name: string, listener: (event: PlotEvent) => void): void;
}

/** A point of a chart, as plotly names it. */
export interface Point {
  curveNumber: number;
  pointNumber: number | [row: number, column: number];
}

/** Where on its axes a chart is pointed at. */
export interface AxisValues {
  xval: unknown;
  yval: unknown;
}

export interface PlotEvent {
  points?: Point[];
  event: MouseEvent;
}

export interface PlotlyLibrary {
  react(element: HTMLElement, data: PlotTrace[], layout: Layout, config?: object): Promise<void>;
  newPlot(element: HTMLElement, data: PlotTrace[], layout: Layout, config?: object): Promise<void>;
  purge(element: HTMLElement): void;
  Fx: { hover(element: HTMLElement, points: Partial<Point & AxisValues>[], subplot: string): void; unhover(element: HTMLElement): void };
  toImage(figure: { data: PlotTrace[]; layout: Layout; config: object }, options: object): Promise<string>;
}

declare global {
  var Plotly: PlotlyLibrary | undefined;
}
