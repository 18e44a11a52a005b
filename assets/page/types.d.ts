// What the page's own scripts get: from Gradio, from the server, and from the lines of a stream that are for the page.
import type { AnyLine, FaultLine, LaneLine, Layout, Line, PlotTrace, RaceLine, StateLine } from "../player/types.js";
import type { Race } from "../player/race/race.js";
import type { Viewer } from "./viewer.js";
import type { Learn } from "./learn/learn.js";
import type { LearnIo } from "./learn/types.d.ts";
import type { Cost } from "./cost/cost.js";
import type { CostIo } from "./cost/types.d.ts";
import type { Debug } from "./debug/debug.js";
import type { DebugIo } from "./debug/types.d.ts";

/** A line of a job's stream, before its kind is known. */
export interface StreamLine extends AnyLine {
  lane?: number;
  run?: string;
  sentence?: string;
}

/** What lines of the kind "host" say of a run. */
export interface RunFacts {
  run?: string;
  title?: string;
  shows?: string;
  machine?: string; // where it was recorded, if not here
  address?: string; // the query that names it
  step?: number; // the one that a recording opens at
  notice?: string;
  left_out?: string; // what is too long for the address
  branch?: string; // of a run that goes on from another one: what the address says of it beside the other
  live?: "alone" | "beside"; // of a run that was started here: whether it takes the place of the one on the screen
  follows?: string; // what the server does once the last step is there, until that is done: no other run can begin
}

/** And of a race. */
export type RaceFacts = Omit<RunFacts, "step" | "notice" | "branch" | "live" | "follows"> & { model?: string; recorded?: boolean };

export type RunLine = StreamLine & (Line | ({ kind: "host" } & RunFacts));
export type RaceLines = StreamLine & (LaneLine | RaceLine | ({ kind: "host" } & RaceFacts)
  | { kind: "done"; runs: [label: string, run: string][]; notice?: string });
export type ReportLine<R> = StreamLine & (StateLine | FaultLine | { kind: "host"; run: string; title: string }
  | { kind: "done"; report: R });

/** What shows a job: it gets the job's lines, or a sentence that says why none come. */
export interface JobShower<L> {
  name: string; // what goes on
  starts: string; // a selector of the buttons that start it
  stop: string; // the button that ends it
  take(lines: L[], anew: boolean): void;
  refused(sentence: string): void;
  lost(sentence: string): void;
}

/** A token of a landscape, and whether it is the target's own choice. */
export interface StripColumn {
  text: string;
  is_choice: boolean;
  words: string;
}

/** A method of a landscape: the lists have an entry for each token. */
export interface StripRow {
  label: string;
  settings: string;
  mean: string;
  accepted: (number | null)[];
  signs: string[];
  words: string[];
}

export type LandscapeLine = StreamLine & ({ kind: "host"; run: string; of: string } | ({ kind: "row" } & StripRow)
  | { kind: "columns"; columns: StripColumn[]; legend: string }
  | StateLine | { kind: "done" | "fault"; sentence: string });

/** What an examination found, as `doctor --json` prints it, with a chart for each theme. */
export interface Report {
  healthy: boolean;
  condition: "healthy" | "faulty" | "poor";
  verdict: string;
  tokens_per_step_given: number | null;
  tokens_per_step_best: number | null;
  acceptance_given: number[];
  acceptance_best: number[];
  checks: { name: string; fine: boolean; note: boolean; sentence: string }[];
  evidence: { name: string; fine: boolean; sentence: string }[];
  probes: { name: string; tokens_per_step: number; gain: number; interval: [low: number, high: number] }[];
  charts: { [theme: string]: { data: PlotTrace[]; layout: Layout } };
}

/** Which settings of a method were raced, the fastest first. */
export interface SettingsReport {
  verdict: string;
  speculate: boolean;
  address: string; // of the winner's settings
  base: number; // tokens per second of autoregressive decoding
  compared: number; // prompts that it answered too
  rows: [settings: string, answers: number, speed: number][];
  others: number; // slower settings, which no row shows
}

export interface RecordedRun {
  id: string;
  title: string;
  family: string; // of the model
  group: string; // a prompt, or a method
  about: string; // the group
  label: string; // of the method
  tokens_per_step: number;
  speedup: number | null;
}

export interface Props {
  value?: string | null; // a run's lines, which only grow
  gallery?: RecordedRun[];
  landing?: string;
  largest: number; // bytes of a file
  live?: boolean; // whether runs can be made here
}

export interface ServerAnswer {
  fault?: string;
  lines?: string;
  debug?: boolean; // whether the Debug tab opens the file that was refused
}

export type Saved = { name: string; type: string; fault?: string; text?: string; bytes?: string };

export interface Server {
  run_lives(run: string | undefined): Promise<{ lives: boolean } | null>;
  run_detail(step: [run: string | undefined, k: number]): Promise<ServerAnswer | null>;
  run_step(step: [run: string | undefined, k: number]): Promise<ServerAnswer | null>;
  run_rows(step: [run: string | undefined, k: number]): Promise<ServerAnswer | null>;
  run_export(wanted: [run: string, form: string]): Promise<Saved | null>;
  open_recording(run: string): Promise<ServerAnswer | null>;
  open_race(which: string): Promise<ServerAnswer | null>;
  open_trace(file: string): Promise<ServerAnswer | null>;
}

/** What Gradio hands to a component's script. */
export interface Io {
  props: Props;
  server: Server;
  watch(name: string, changed: () => void): void;
}

/** What the form does for the run that an address names: take its settings, run them again, race with them,
 * or go on from a place of it. */
export type ViewerIo = Io & { [act in "fill" | "again" | "race" | "branch"]: (address: string) => void };

/** What the form does with the settings that won. */
export type SettingsIo = Io & { fill(address: string): void };

/** What the server does for a landscape: measure the run that an address names, or stop that. */
export type LandscapeIo = Io & { measure(address: string): void; end(): void };

export interface Shown {
  viewer: Viewer | null;
  race: Race | null;
  debug: Debug | null;
  cost: Cost | null;
  learn: Learn | null;
  placed: boolean; // whether the address that the page was opened with has been followed
}

declare global {
  var SpecscopeData: (name: string, packed: string) => void; // called by the data of a page that is plain files
  var SpecscopeApp: {
    viewer(element: HTMLElement, io: ViewerIo): void;
    race(element: HTMLElement, io: Io): void;
    chat(element: HTMLElement, io: Io): void;
    doctor(element: HTMLElement, io: Io): void;
    landscape(element: HTMLElement, io: LandscapeIo): void;
    settings(element: HTMLElement, io: SettingsIo): void;
    debug(element: HTMLElement, io: DebugIo): void;
    cost(element: HTMLElement, io: CostIo): void;
    learn(element: HTMLElement, io: LearnIo): void;
    theme(): void;
    readonly shown: Shown;
  };
}
