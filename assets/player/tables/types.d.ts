// Rows of tables, and how they are read off a figure.
import type { NumbersView } from "../cards/numbers.js";
import type { Plot } from "../charts/plot.js";
import type { Figure, View } from "../charts/types.d.ts";

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

/** A table as it is shown: only words. */
export interface Table {
  headings: string[];
  rows: WordRow[];
  count: number;
  say: string[];
}

export interface WordRow {
  cells: string[];
  node?: number;
  step?: number;
}

/** What a table is made of: a view and, of an open one, what draws it. */
export interface Viewed {
  view: View;
  content?: Plot | NumbersView;
}

/** A view, the figure that it shows, and how its rows are read off. */
export interface Asked {
  view: View;
  spec: TableSpec;
  figure: () => Figure;
}

/** How the rows of a view's table are read off its figure, by kind. */
export type TableSpec = QuerySpec | SlotSpec | CellSpec | BoardSpec | { kind: "branches" | "shares" | "steps" };

export interface QuerySpec {
  kind: "queries";
  most: number;
}

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
