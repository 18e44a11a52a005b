// What the lines of a stream hold, as viz/stream/play.py writes them, and what is made of a step's nodes.
import type { MadeTable, Patch, View } from "../types.d.ts";

// Arrays: as they travel, and unpacked.

export interface Packed {
  dtype: "i1" | "u1" | "i2" | "u2" | "i4" | "f4";
  bdata: string;
  shape?: string;
}
export type Typed = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Float32Array;
export type Numbers = number[] | Typed;
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A value of a patch or a base with the encodings of viz/stream/encode.py in it, or what came of it. */
export type Value = unknown;

// The lines.

export type Phase = "propose" | "verify" | "answers" | "accept" | "commit";

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
  end_tokens?: number[];
  dtype?: string;
  attention?: string;
  versions?: { [name: string]: string };
  params?: { [name: string]: string | number | boolean | null };
  sampling?: { temperature?: number };
  labels?: { [setting: string]: string };
  lossless: boolean;
  max_new_tokens: number;
  prompt_length: number;
  prefill_chunk: number;
  record: string;
  window?: number | null;
  slots?: number | null;
  processor?: string | null;
  threads?: number | null;
  ranks?: number;
  branch?: BranchOf | null;
}

/** Where a run goes on from another one: `forced` holds the first of its forced tokens, which are `forces`. */
export interface BranchOf {
  run: string;
  prompt: number;
  step: number;
  at: number;
  forced: number[];
  forces: number;
}

export interface FateMeaning {
  fate: string; // its name
  code: number;
  judged: boolean; // a guess: until the target has judged it, it is only proposed
  label: string;
  words: string;
  colour: string;
  symbol: string;
}

export interface PlayLine {
  kind: "play";
  header: Header;
  prompt: Packed | number[];
  themes: { [theme: string]: { [colour: string]: string } };
  fates: FateMeaning[];
  views?: (Partial<View> & Pick<View, "name" | "label" | "kind" | "look_for" | "base">)[];
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
  u?: Value;
  inspired?: Value;
  readers?: Value;
  row?: Value; // -1: in none; left out where all are 0
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
  experts?: number; // different ones that the pass read in a layer, on average; only under a mixture
  say: string;
  thin?: boolean;
  inspired?: number[]; // places among the emitted tokens
  nodes?: NodeColumns;
  views?: { [view: string]: Patch };
}

export interface DetailLine {
  kind: "detail";
  k: number;
  top: [token: number, p: number][][]; // the target's best tokens after each node
  left?: { [node: number]: [token: number, share: number][] }; // what is drawn from once a guess was rejected
  views: { [view: string]: Patch[] }; // what a view shows when a node, or the target's own token, is pinned
  values: Value[];
  words: string[];
  sees: number[]; // of each node: the number of its words
}

export interface Details extends Pick<DetailLine, "top" | "left" | "views"> {
  sees: string[];
}

export interface RowsLine {
  kind: "rows";
  k: number;
  views: { [view: string]: MadeTable };
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
  kind: "check";
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

export interface EndLine extends Omit<CheckLine, "kind"> {
  kind: "end";
  finish: string;
  summary?: Summary;
  memory?: number | null;
  bandwidth?: string | null;
}

export interface FaultLine {
  kind: "fault";
  sentence: string;
}

export interface StateLine {
  kind: "state";
  what: string;
  sentence: string;
  share?: number | null;
}

/** A line of any stream, before anybody has looked at its kind. */
export interface AnyLine {
  kind: string;
}

export type Line = PlayLine | TextsLine | StringsLine | ValuesLine | StepLine | DetailLine | RowsLine | EndLine
  | CheckLine | FaultLine | StateLine;

// What the player makes of a step.

export interface Nodes {
  token: Numbers;
  parent: Numbers;
  fate: Numbers;
  choice: Numbers | null;
  p: Numbers | null;
  q: Numbers | null;
  u: Numbers | null; // the number that each sampled guess was tested with
  source: string[]; // in words
  readers: string[]; // the ranks that read each node; empty where there was one process
  inspired: Set<number>;
  count: number;
  depth: Int16Array;
  path: number[]; // the accepted nodes, the root first
  explored: Set<number>; // nodes that are no guesses: they are read to learn from
  row: (number | null)[]; // in the picture of the tree; null for a node that is not in it
}

export interface Emitted {
  token: number;
  place: number;
  fate: number;
  node: number; // where it was guessed or, for the target's own token, decided; -1 where no nodes are known
  own: boolean;
  position: number;
}

/** What is hovered or pinned: a node of a step, or the token that the target chose itself after it. */
export interface Spot {
  step: number;
  node: number;
  own?: boolean;
}

/** What encoded values are resolved with. */
export interface Scope {
  seen(fate: number): number; // what is seen of a fate in this phase
  whole?: boolean; // no token's text is cut
  nodes?: Nodes | null;
  text(id: number): string;
  string(given: number | string): string;
  colour(name: string): string;
  symbol(fate: number): string;
}
