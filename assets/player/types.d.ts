// What the lines of a stream hold, as viz/play.py writes them, and what the player makes of them.
import type { RunRecord } from "./stream/record.js";

// Arrays: as they travel, and unpacked.

export interface Packed {
  dtype: "i1" | "u1" | "i2" | "u2" | "i4" | "f4";
  bdata: string;
  shape?: string;
}
export type Typed = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Float32Array;
export type Numbers = number[] | Typed;
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A value of a patch or a base with the encodings of viz/encode.py in it, or what came of it. */
export type Value = unknown;

/** What encoded values are resolved with. */
export interface Scope {
  judged: boolean;
  whole?: boolean; // no token's text is cut
  nodes?: Nodes | null;
  text(id: number): string;
  string(told: number | string): string;
  colour(name: string): string;
  symbol(fate: number): string;
}

// The lines.

export type Phase = "propose" | "verify" | "accept" | "commit";

export interface ModelCard {
  name: string;
  parameters?: number;
}

export interface Header {
  method: string;
  label: string;
  model: ModelCard;
  draft?: ModelCard | null;
  device?: string;
  dtype?: string;
  attention?: string;
  versions?: { [name: string]: string };
  params?: { [name: string]: string | number | boolean | null };
  sampling?: { temperature?: number };
  lossless: boolean;
  prompt_length: number;
  prefill_chunk: number;
  record: string;
  window?: number | null;
  slots?: number | null;
}

export interface FateMeaning {
  code: number;
  label: string;
  words: string;
  colour: string;
  symbol: string;
}

export interface Words {
  sources?: { [kind: string]: string };
  mask?: { [name: string]: string };
}

export interface PlayLine {
  kind: "play";
  header: Header;
  prompt: Packed | number[];
  themes: { [theme: string]: { [colour: string]: string } };
  fates: FateMeaning[];
  views?: (Partial<View> & Pick<View, "name" | "label" | "kind" | "look_for" | "base">)[];
  words?: Words;
}

export interface TextsLine {
  kind: "texts";
  texts?: { [id: string]: string };
  shown?: { [id: string]: string };
}

export interface StringsLine {
  kind: "strings";
  strings: string[];
}

export interface ValuesLine {
  kind: "values";
  values: Value[];
}

/** A step's nodes as columns, encoded. */
export interface NodeColumns {
  token: Value;
  parent: Value;
  fate: { fates: Packed | number[] };
  source?: Value;
  choice?: Value;
  p?: Value;
  q?: Value;
  inspired?: Value;
}

export interface StepLine {
  kind: "step";
  k: number;
  start: number;
  pending: number;
  fed: number;
  accepted: number;
  drafted: number;
  emitted: number[];
  emitted_fates: number[];
  branch: boolean;
  ms: [draft: number, forward: number, accept: number, commit: number, total: number];
  say: string;
  thin?: boolean;
  inspired?: number[]; // places among the emitted tokens
  nodes?: NodeColumns;
  views?: { [view: string]: Patch };
}

export interface DetailLine {
  kind: "detail";
  k: number;
  top: [token: number, p: number][][];
  draft_top?: Law[];
}

/** The drafter's best tokens at a node, with its share and the target's. */
export type Law = [token: number, q: number, p: number][];

export interface Place {
  step: number;
  phase: string;
  view: string | null;
  node: number | null;
}

export interface CheckedPlace {
  position: number;
  token: number;
  choice: number;
  margin: number;
}

export interface Check {
  say?: string;
  tone?: string;
  violations?: number;
  places?: CheckedPlace[];
}

export interface CheckLine {
  kind: "check" | "end";
  check?: Check | null;
  speedup?: number | null;
}

export interface Summary {
  tokens_per_second?: number;
  mean_acceptance_length?: number;
  fed_per_token?: number;
  steps?: number;
  decode_seconds?: number;
}

export interface EndLine extends CheckLine {
  kind: "end";
  finish: string;
  summary?: Summary;
  memory?: number | null;
}

export interface FaultLine {
  kind?: "fault";
  sentence: string;
}

export interface StateLine {
  kind: "state";
  what: string;
  sentence: string;
  share?: number | null;
}

export type Line = PlayLine | TextsLine | StringsLine | ValuesLine | StepLine | DetailLine | EndLine | CheckLine
  | FaultLine | StateLine;

// What the player makes of a step.

export interface Nodes {
  token: Numbers;
  parent: Numbers;
  fate: Numbers;
  choice: Numbers | null;
  p: Numbers | null;
  q: Numbers | null;
  source: string[];
  inspired: Set<number>;
  count: number;
  depth: Int16Array;
  children: number[][];
  path: number[]; // the accepted nodes, the root first
  place: number[]; // of each node: the first node with the same tokens from the root to it
  row?: (number | null)[];
}

export interface Emitted {
  token: number;
  place: number;
  fate: number;
  node: number; // where it was guessed or, for the target's own token, decided; -1 where no nodes are known
  own: boolean;
  position: number;
}

/** What is hovered or pinned: a node of a step, or the token that the target chose itself behind it. */
export interface Spot {
  step: number;
  node: number;
  own?: boolean;
}

// Views and their figures.

export interface View {
  name: string;
  label: string;
  kind: "plot" | "text" | "numbers";
  look_for: string;
  grows?: boolean;
  slides?: boolean;
  nodes: ("points" | "rows" | "own" | null)[];
  phases: Phase[];
  columns: [heading: string, where: string][];
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
  table?: TableSpec;
  rows?: NumberRow[];
  say?: string;
  tone?: string;
  places?: CheckedPlace[];
}

export interface Patch {
  data?: { [attribute: string]: Value }[];
  layout?: { [attribute: string]: Value };
  summary?: string;
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

export interface PlotTrace {
  type?: string;
  mode?: string;
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

// Tables.

export type CellValue = string | number | null | undefined;

export interface TableRow {
  cells: CellValue[];
  node?: number;
  step?: number;
}

export interface Rows {
  rows: TableRow[];
  headings?: string[];
  count?: number;
  say?: string[];
}

/** How the rows of a view's table are read off its figure, by kind. */
export type TableSpec = { kind: "queries"; most: number } | { kind: "branches" } | { kind: "shares" } | { kind: "steps" }
  | SlotSpec | CellSpec | BoardSpec;

export interface SlotSpec {
  kind: "slots";
  words: string[];
  page: number;
}

export interface CellSpec {
  kind: "cells";
  cells: [trace: number, kind: string | null][];
  rows: string[];
  ahead?: boolean;
  harvest: number;
  signed: { [symbol: string]: string };
}

export interface BoardSpec {
  kind: "board";
  by: "row" | "column" | "cell";
  split?: number;
  signs: number[];
  signed: { [symbol: string]: string };
  label: string;
  sides?: [string, string];
  depth?: boolean;
  told: string;
  column: string;
  total: number;
  totals: string;
}

// plotly.js, as far as the player uses it.

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

// The player and its host.

export interface State {
  step: number;
  phase: Phase;
  hover: Spot | null;
  pin: Spot | null;
  playing: boolean;
  follow: boolean;
  open: Set<string>;
  view: string | null;
  speed: string;
  substeps: boolean;
  narrow: boolean;
  size: number;
}

/** What `change` takes: parts of the state, and what else tells the parts of the player to look again. */
export type Change = Partial<State> & { theme?: string; record?: number; detail?: number };

/** Where lines come from that the page did not get at once: by the number of a step. */
export interface Source {
  detail?: (k: number) => Promise<string>;
  step?: (k: number) => Promise<string>;
}

export interface Host {
  link?: (place: Place) => string;
  change?: (place: Place) => void;
  compare?: (place: Place) => void;
}

/** What a place on the page has that can be linked to. */
export interface Linked {
  on: Host;
  root: HTMLElement;
  place(): Place;
  tell(words: string): void;
}

export interface RaceLine {
  kind: "race";
  labels: string[];
}

export type LaneLine = Line & { lane?: number };

declare global {
  var Plotly: PlotlyLibrary | undefined;
}

export type { RunRecord };
