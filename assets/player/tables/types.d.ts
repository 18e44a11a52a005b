// Rows of tables.
import type { NumbersView } from "../cards/numbers.js";
import type { Plot } from "../charts/plot.js";
import type { View } from "../charts/types.d.ts";
import type { Phase, State } from "../types.d.ts";

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

/** The step, phase and pin that a table is of. */
export type Seen = Pick<State, "step" | "phase" | "pin">;

/** Tables that Python makes: see viz/tables.py. */
export interface MadeTable {
  headings: string[];
  rows: MadeRow[];
  say: MadeCell[];
  count?: number; // of all rows, where some are left out
}

/** A row, the phases in which it is known, and the node that its first cell leads to. */
export interface MadeRow {
  cells: MadeCell[];
  node?: number;
  since?: Phase;
  until?: Phase;
}

/** A cell, or what it says from each phase on. */
export type MadeCell = CellValue | { [phase in Phase]?: CellValue };

/** Which rows a table has that its nodes, or the run's steps, are the rows of. */
export interface RecordTable {
  kind: "queries" | "branches" | "steps";
  most?: number; // nodes that have rows
  sees?: string; // what unread tokens see
}
