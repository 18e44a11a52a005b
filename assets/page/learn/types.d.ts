// What the server sends of lessons: the counterpart of viz/lessons/page_lesson.py and app/pages/learn.py.
import type { Server } from "../types.d.ts";

/** A piece of a text: plain, or of a kind, a word of the glossary, or a link. */
export interface Span {
  text: string;
  kind?: "bold" | "code";
  entry?: string;
  screen?: string; // the query of another screen's address, which it leads to
}

export interface Block {
  kind: "p" | "li";
  spans: Span[];
}

/** A state of the player; several runs are shown side by side. */
export interface Show {
  runs: string[];
  step: number;
  phase: string;
  view: string | null;
  node: number | null;
  focus: string[];
  zoom: string[];
}

export interface Choice {
  spans: Span[];
  right: boolean;
  reply: Span[] | null;
  key: string; // what an order is judged by
}

export interface Ask {
  kind: "choose" | "press" | "number" | "order";
  question: Span[];
  choices: Choice[];
  what: string;
  many: boolean;
  span: [low: number, high: number];
  right: string[] | number | null;
  replies: [nodes: string[], spans: Span[]][];
  otherwise: Span[] | null;
}

export interface Slider {
  label: string;
  marks: { value: string; run: string | null; number: number }[];
  after: boolean; // whether it comes after the answer
}

export interface LessonScreen {
  anchor: string;
  title: string;
  show: Show | null;
  before: Block[];
  ask: Ask | null;
  reveal: Show | null;
  after: Block[];
  slider: Slider | null;
  dials: { [depth: string]: Span[] };
  cites: { paper: string; place: string; claim: string; verdicts: [model: string, verdict: string][] }[];
  notes: Span[][];
  chart: string | null; // the query that opens a chart of the Debug page
}

/** A lesson in the list of all. */
export interface LessonFacts {
  id: string;
  title: string;
  topic: string;
  minutes: number;
  follow: string;
  needs: string[];
  anchors: string[]; // of its screens
  questions: number;
}

export interface Lesson extends LessonFacts {
  runs: { [name: string]: string };
  screens: LessonScreen[];
}

export interface Answered {
  right: boolean;
  answer: string; // in words
  reply: Span[] | null;
}

export interface LearnServer extends Server {
  learn_lesson(id: string): Promise<{ lesson?: Lesson; fault?: string } | null>;
}

export interface LearnIo {
  props: { lessons: LessonFacts[]; glossary: { [entry: string]: string } };
  server: LearnServer;
}
