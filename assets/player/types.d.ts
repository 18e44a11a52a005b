// The player and its host; and, by one name for all of them, the types of lines, figures and tables.
import type { Phase, Spot, Line } from "./stream/types.d.ts";

export type * from "./charts/types.d.ts";
export type * from "./stage/types.d.ts";
export type * from "./stream/types.d.ts";
export type * from "./tables/types.d.ts";

export interface Place {
  step: number;
  phase: string;
  view: string | null;
  node: number | null;
}

/** A place that the player has moved to, and who moved it there: the visitor, the page around it, or the run as it goes on. */
export type Move = Place & { by: Mover };
export type Mover = "visitor" | "host" | "run";

/** Where the host wants the player to be. */
export type Wanted = Partial<Place> & {
  focus?: (string | number)[]; // nodes of the step ("n3" or 3), positions of the text ("place:56"), names of pieces
  zoom?: string[]; // names of the stage's zones
};

export interface State {
  step: number;
  phase: Phase;
  hover: Spot | null;
  pin: Spot | null;
  playing: boolean;
  follow: boolean;
  example: number | null; // a step to learn from, to which the end of the run leads
  open: Set<string>;
  view: string | null; // the one that was opened last; where there is room for one only, the one that is shown
  facts: boolean; // whether the step's facts are shown
  full: boolean; // whether the player fills the screen
  speed: string;
  substeps: boolean;
  narrow: boolean;
  focus: (string | number)[]; // what is outlined on the stage
  focused: number; // the step whose nodes are meant by it
  zoom: string[]; // the zones that the stage shows alone
  withheld: boolean; // whether what becomes of the step is kept back
  asking: boolean; // whether a question is open: the run's end and length are kept back, and what each node sees
  glide: boolean; // whether the stage may show how tokens came to where they are
  size: number;
}

/** What `change` takes: parts of the state, and what else tells the parts of the player to look again. */
export type Change = Partial<State> & { theme?: string; record?: number; detail?: number };

/** Where lines come from that the page did not get at once: by the number of a step. */
export interface Source {
  detail?: (k: number) => Promise<string>;
  step?: (k: number) => Promise<string>;
  rows?: (k: number) => Promise<string>;
}

/** Where a run shall go on otherwise: with a guess, or with a text after the first `keep` tokens of the step. */
export type Fork = { step: number } & ({ node: number } | { keep: number; text: string });

export interface Host {
  fork?: (fork: Fork) => void;
  link?: (place: Place | null) => string;
  lacks?: () => { words: string; save?: () => void } | null; // what a link cannot hold, and what to share instead
  change?: (move: Move) => void;
  compare?: (place: Place) => void;
}

/** What a place on the page has that can be linked to. */
export interface Linked {
  on: Host;
  root: HTMLElement;
  place(): Place | null; // null where it is the whole of what is shown
  announce(words: string): void;
}

export interface RaceLine {
  kind: "race";
  labels: string[];
  settings?: string[]; // with them labels tell lanes of one method apart
}

export type LaneLine = Line & { lane?: number };
