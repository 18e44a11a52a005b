// Views, their figures, and plotly.js as far as the player uses it.
import type { CheckedPlace, Packed, Phase, RecordTable, Value } from "../types.d.ts";

export interface View {
  name: string;
  label: string;
  kind: "plot" | "text" | "numbers";
  look_for: string;
  grows?: boolean;
  slides?: boolean;
  nodes: ("points" | "rows" | "own" | null)[];
  phases: Phase[];
  columns: [heading: string, name: string][];
  rows?: boolean; // whether Python makes its tables
  base: Base;
}

/** What a view says once. Which fields there are depends on its kind. */
export interface Base {
  data: Value[];
  layout: Layout;
  draws?: number[];
  key?: KeyItem[];
  least?: number;
  detail?: PairDetail;
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

/** How the picture of a pinned node is made: numbers of its traces, and words. */
export interface PairDetail {
  target: number;
  draft: number;
  names: number;
  marks: number;
  say: number;
  rows: number;
  ranks: string[];
  words: { [name: string]: string };
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
  color?: string | ArrayLike<number> | ArrayLike<string>;
  colorscale?: [number, string][];
  cmin?: number;
  cmax?: number;
  symbol?: string | number | ArrayLike<string>;
  size?: number | ArrayLike<number>;
  opacity?: number | ArrayLike<number>;
  line?: { width?: number; color?: string };
}

export type CellLayer = "squares" | "signs" | "words";

export interface PlotTrace {
  type?: string;
  mode?: string;
  cell_layer?: CellLayer; // which layer of cells the page draws it in; without one plotly draws it
  visible?: boolean;
  x?: ArrayLike<number>;
  y?: ArrayLike<number>;
  z?: ArrayLike<number>[];
  base?: ArrayLike<number>;
  text?: string[];
  customdata?: ArrayLike<number>;
  xaxis?: string;
  yaxis?: string;
  marker?: Marker;
  textfont?: { color?: string; size?: number; style?: string };
  textposition?: string;
  texttemplate?: string;
  hoverinfo?: string;
  opacity?: number;
  showlegend?: boolean;
}

export interface Figure {
  data: PlotTrace[];
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
  on(name: string, heard: (event: PlotEvent) => void): void;
}

/** A point of a chart, as plotly names it. */
export interface Point {
  curveNumber: number;
  pointNumber: number | [row: number, column: number];
}

export interface PlotEvent {
  points?: Point[];
  event: MouseEvent;
}

export interface PlotlyLibrary {
  react(element: HTMLElement, data: PlotTrace[], layout: Layout, config?: object): Promise<void>;
  purge(element: HTMLElement): void;
  toImage(figure: { data: PlotTrace[]; layout: Layout; config: object }, options: object): Promise<string>;
}

declare global {
  var Plotly: PlotlyLibrary | undefined;
}
