// What a stage is made of: viz/stage/scene.py says what the columns mean.

export interface StageZone {
  name: string;
  title: string;
  columns: number;
  rows: number;
  fed: boolean; // whether the target reads the nodes in it
}

export interface StageFloor {
  columns: number;
  rows: number;
  places: ([x: number, y: number] | null)[]; // of the zones; null: it is not shown
}

export interface StageBase {
  zones: StageZone[];
  title: number; // rows of a zone's title
  wide: StageFloor;
  narrow: StageFloor;
}

/** Where things are, and when: a zone and two phases in one number. */
interface Placed {
  x: ArrayLike<number>;
  y: ArrayLike<number>;
  when: ArrayLike<number>;
}

/** What some pieces have: their numbers, and the values. */
type Some<T> = [numbers: ArrayLike<number>, values: ArrayLike<T>];

/** A step's scene, decoded. */
export interface SceneColumns {
  pieces: Placed & {
    id: ArrayLike<number>;
    text: string[];
    fate: ArrayLike<number>;
    nodes: ArrayLike<number>;
    origin?: ArrayLike<number>;
  };
  some?: {
    share?: Some<number>; note?: Some<string>; faint?: Some<number>; copied?: Some<number>;
    slot?: Some<number>; judged?: Some<number>; turn?: Some<number>; answer?: Some<string>; spare?: Some<number>;
  };
  moves?: ArrayLike<number>[]; // pieces, phases, zones, x, y
  links?: { from: ArrayLike<number>; to: ArrayLike<number>; when: ArrayLike<number> };
  words?: Placed & { text: string[]; side: ArrayLike<number>; loud: ArrayLike<number> };
  frames?: Placed & {
    text: string[]; wide: ArrayLike<number>; high: ArrayLike<number>; loud: ArrayLike<number>;
    filled?: ArrayLike<number>; limit?: ArrayLike<number>;
  };
}

/** A place on the stage, in its columns and rows. */
export interface Where {
  x: number;
  y: number;
}

export interface StagePiece extends Where {
  id: number;
  text: string;
  fate: number;
  node: number;
  origin: number | null; // the id of the piece that it comes out of
  note: string;
  answer: string; // the target's own token for the position of a guess, where that is to be seen
  share: number; // below 0 where it has no bar
  faint: boolean;
  copied: boolean; // not written by a model in this step
  zone: number;
  spare: boolean; // seen only where it is in focus, in the place of another row
  fed: boolean;
  cached: boolean; // its key and value
  turn: number; // how many others come before it, where new ones come one by one
  seen: boolean;
}

export interface SceneLink {
  from: StagePiece;
  to: StagePiece;
  kind: "tree" | "match" | "flow" | "diagonal" | "against";
}

export interface SceneWord extends Where {
  text: string;
  side: "right" | "left" | "middle";
  loud: boolean;
}

export interface SceneFrame extends Where {
  text: string;
  wide: number;
  high: number;
  loud: boolean;
  filled: number; // of a gauge; below 0 where it is none
  limit: number; // 0 where it has none
}

export interface Scene {
  pieces: Map<number, StagePiece>;
  links: SceneLink[];
  words: SceneWord[];
  frames: SceneFrame[];
}
