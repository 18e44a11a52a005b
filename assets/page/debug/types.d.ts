// What the server answers on the Debug page: the counterpart of app/debug/calls.py and app/debug/view.py.
import type { Saved } from "../types.d.ts";

export type Cell = string | number | boolean | null;

export interface Facts {
  name: string;
  source: string;
  created: string;
  imported: boolean; // "created" is when it was imported, and its runs may be older
  finished: boolean;
  runs: number;
  steps: number;
  nodes: number;
  methods: { [method: string]: string[] }; // their settings
  labels: { [method: string]: string };
  categories: string[];
  missing: { [column: string]: string };
}

export interface ChartFacts {
  key: string;
  title: string;
  group: string;
  formula: string;
  look_for: string;
  chart: string;
}

export interface TableFacts {
  columns: string[];
  rows: Cell[][];
  more: boolean;
  opens?: number; // how many of the first rows open something; all unless given
}

export interface Opened {
  fault?: string;
  notice?: string;
  folders: { id: string; name: string }[];
  folder?: string;
  address?: string;
  facts?: Facts;
  against_facts?: Facts;
  filters?: { [name: string]: Cell };
  against?: string;
  against_method?: string;
  against_setting?: string;
  sql?: string;
  edited?: boolean;
  chart?: string;
  names?: string[];
  themes?: { [theme: string]: { [name: string]: string } };
  charts?: ChartFacts[];
  refused?: string; // why the query chose nothing
  table?: TableFacts; // what a query answers that chooses no steps
  chosen?: number;
  against_chosen?: number;
}

export interface Result {
  reason: string | null;
  value: number | null;
  low: number | null;
  high: number | null;
  unit: string;
  sentence: string;
  columns: string[];
  rows: Cell[][];
  more: number; // rows that were left out
  run?: string; // the query of a run that is advised
}

export interface Drawing {
  data: { [name: string]: unknown }[];
  layout: { [name: string]: unknown };
}

export interface Measured {
  fault?: string;
  key: string;
  names: string[];
  results: Result[];
  figure: Drawing | null;
}

export interface StepRow {
  run: number;
  step: number;
  start: number | null;
  accepted: number;
  drafted: number | null;
  written: number;
  text: string | null;
  ms: number | null;
  question: string;
  category: string | null;
  turn: number;
  method: string;
  label: string; // of the method
  setting: string;
  pieces: [text: string, fate: "accepted" | "rejected" | "bonus"][];
  wanted: string | null;
}

export interface StepRows {
  fault?: string;
  count: number;
  offset: number;
  whole: boolean; // of all chosen steps, which a row is one number of
  slowest: boolean; // listed first
  steps: StepRow[];
}

/** A run of a folder for the player. */
export interface Played {
  fault?: string;
  lines?: string;
  run?: string;
}

/** What the list of steps asks of the page; it says itself why something cannot be had. */
export interface StepsIo {
  steps(second: boolean, offset: number, say: (sentence: string) => void): Promise<StepRows | null>;
  run(row: StepRow, second: boolean, say: (sentence: string) => void): Promise<Played | null>;
  play(lines: string, run: string, step: number): Promise<void>;
}

export interface DebugServer {
  debug_open(query: string): Promise<Opened | null>;
  debug_chart(asked: [query: string, key: string]): Promise<Measured | null>;
  debug_steps(asked: [query: string, key: string, row: number, second: boolean, offset: number]):
    Promise<StepRows | null>;
  debug_export(asked: [query: string, form: string]): Promise<Saved | null>;
  debug_bring(files: string[]): Promise<{ fault?: string; folder?: string } | null>;
  debug_play(asked: [folder: string, run: number, step: number]): Promise<Played | null>;
}

export interface DebugIo {
  props: { largest: number; live: boolean };
  server: DebugServer;
}

/** What a card asks of the page. */
export interface CardIo {
  ask(key: string): Promise<Measured | null>;
  behind(behind: Behind): void;
  link(key: string): string; // the address of a chart
  live: boolean; // whether runs can be made
  signal: AbortSignal; // ends it
}

/** A point of a figure, by its place on the grid over which keys move; `at` is what plotly calls it in its trace. */
export interface FigurePoint {
  curve: number;
  at: number | [row: number, column: number];
  row: number; // of the result
  second: boolean; // of the selection that is compared with
  x: number;
  y: number;
}

/** What a bar, a cell or a row counts. */
export interface Behind {
  key: string; // of the metric; "" for all chosen steps
  title: string;
  row: number; // -1 for all of them
  second: boolean; // of the selection that is compared with
}
