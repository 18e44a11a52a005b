// What the Cost page gets: the counterpart of app/store/pass_costs.py and app/store/run_costs.py.

import type { Played } from "../debug/types.d.ts";
import type { Server } from "../types.d.ts";

/** What passes cost on one machine, for one model after one length of text. */
export interface Curve {
  id: string; // FILE:MODEL:CONTEXT, as addresses have it
  device: string;
  threads: number | null;
  dtype: string;
  date: string;
  versions: string;
  here: boolean; // whether `python -m decoding cost` measured it on this server
  model: string;
  context: number; // tokens of the text before the pass
  rows: number[]; // the numbers of tokens that passes were measured over, 1 first
  milliseconds: number[];
  noisy: number[]; // those of the rows whose times differed much
  trees: TreeGrid | null;
  heads: number | null; // what drafting with Medusa's heads took in a step, in passes over one token
}

/** What a pass over k chains of w guesses costs, in passes over one token: a line for each k. */
export interface TreeGrid {
  k: number[];
  w: number[];
  costs: number[][];
  noisy: [k: number, w: number][]; // whose times differed much; 1 and 0: those of the pass over one token
}

/** How the tokens of steps were counted. */
export interface Counted {
  model: string;
  questions: number;
  max_new_tokens: number;
  date: string;
}

/** What a step of N-Grammys writes by k and w, on any machine. */
export interface WrittenGrid extends Counted {
  k: number[];
  w: number[];
  tokens_per_step: number[][];
}

/** What a step of Medusa writes by the guesses of its tree, on any machine. */
export interface WrittenSizes extends Counted {
  sizes: number[];
  tokens_per_step: number[];
  expected: number[]; // by how often each head was right in training, as if heads erred independently
}

export interface Written {
  ngrammys: { [model: string]: WrittenGrid };
  medusa: { [model: string]: WrittenSizes };
}

/** Ids of recorded runs of pocket, by the guesses of a tree, or by k and w as in "k2-w4". */
export interface TreeRuns {
  ngrammys: { [tree: string]: string };
  medusa: { [tree: string]: string };
}

/** What c(T) is asked of: the cost of a pass over so many tokens in passes over one; not a number where it is unknown. */
export type PassCost = (tokens: number) => number;

/** The sliders that say what a step drafts. */
export interface Drafting {
  draft: number; // guesses of a step, in a chain
  share: number; // what drafting one of them costs, in passes over one token
  accept: number; // the chance that the first guess is accepted
  keep: number; // the chance of each further guess, as a share of that of the one before it
}

/** The steps of a recorded run after its first, in columns. */
export interface RunSteps {
  fed: number[]; // tokens that the pass read
  wrote: number[];
  drafting: number[] | null; // what drafting took, in passes over one token; null where no such pass was recorded
}

export interface RecordedCosts extends RunSteps {
  id: string;
  label: string; // of the method
  title: string;
  group: string;
  family: string; // of the model
  model: string;
  recorded: string; // the machine that it was recorded on, in words
  speedup: number | null; // measured there, of the whole run
  later_speedup: number | null; // and of the steps after its first, which are those of a projection
  at?: ([run: number, step: number] | null)[]; // of each step in its run folder; null where it cannot be played
}

/** What a pass over one token took where runs were recorded. */
export interface PlainPass {
  model: string;
  recorded: string; // the machine, in words
  milliseconds: number;
}

/** Recorded runs that the gallery lists together. */
export interface RunGroup {
  id: string; // of the first
  family: string;
  name: string;
}

export interface RunCosts {
  runs: RecordedCosts[];
  plain: PlainPass[];
  folder?: string; // that they are of, and its name
  name?: string;
}

/** What Lookahead's paper expects of a step: equations 5 and 7. */
export interface LookaheadModel {
  alpha: number; // the chance of a guessed token
  every: number; // steps, one of which guesses well
  n: number; // tokens of an n-gram, the one that begins it included
}

/** A recorded run of Lookahead, its steps after the first. */
export interface WindowRun {
  id: string;
  model: string;
  window: number; // columns, and n-grams that are verified
  n: number;
  wrote: number[];
}

/** A run's steps on another machine. */
export interface Replay {
  speedup: number; // over one token a pass; not a number where a step is beyond what was measured
  costs: number[]; // of each step, in passes over one token, with its drafting
  between: number; // steps whose number of tokens was not measured itself
  beyond: number; // steps that read more tokens than were measured
}

/** What the page shows, all of it in the address. */
export interface Choices extends Drafting, LookaheadModel {
  curve: string;
  with: string[]; // ids of other curves
  runs: string; // a group of recorded runs, "open" or "folder"
  drafting: "recorded" | "none";
  gpu: string;
  model: string;
  bits: number; // of a weight
  context: number;
  batch: number;
}

export interface CostServer extends Server {
  cost_runs(asked: string): Promise<(RunCosts & { fault?: string }) | { windows: WindowRun[]; fault?: string } | { fault: string } | null>;
  debug_costs(folder: string): Promise<FolderCosts | null>;
  debug_play(asked: [folder: string, run: number, step: number]): Promise<Played | null>;
}

/** What a run folder's methods did. */
export interface FolderCosts {
  folder: string;
  name: string;
  runs: RecordedCosts[];
  fault?: string;
}

export interface CostIo {
  props: { curves: Curve[]; groups: RunGroup[]; written: Written; tree_runs: TreeRuns };
  server: CostServer;
}
