// Rows of tables, and how they are read off a figure.

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
