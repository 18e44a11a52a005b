// What a server answers, from plain files: recordings, lessons, the recorded race, and the cards of a run folder.
import { dataOf } from "./plain_data.js";

const LIVE = "This page is plain files, without a server: install Specscope to do that.";

/** @param {unknown} run */
const recorded = async (run) => {
  const { runs } = await dataOf("page/props");
  if (!runs.includes(run)) throw new Error("there is no such recording");
  return dataOf(`runs/${run}`);
};

/**
 * Answer from a file, or with a sentence that says why not.
 * @template T
 * @param {() => Promise<T>} read
 * @param {string} sentence
 * @returns {Promise<T | { fault: string }>}
 */
const orFault = (read, sentence) => read().catch(() => ({ fault: sentence }));

/** @param {"detail" | "rows"} kind */
const ofStep = (kind) => (/** @type {[run: string | undefined, k: number]} */ [run, k]) =>
  orFault(async () => ({ lines: /** @type {string} */ ((await recorded(run))[kind][k]) }), "This page has no more of that step.");

const refused = () => Promise.resolve({ fault: LIVE });

export const plainServer = {
  run_detail: ofStep("detail"),
  run_rows: ofStep("rows"),
  run_step: refused, // every step is whole
  run_lives: () => Promise.resolve({ lives: false }),
  run_export: refused,
  open_trace: refused,
  open_recording: (/** @type {string} */ run) => orFault(async () => ({ lines: (await recorded(run)).lines }),
    "There is no such recording on this page: choose another one."),
  open_race: () => orFault(async () => ({ lines: (await dataOf("page/race")).lines }), "The race is missing."),
  learn_lesson: (/** @type {string} */ id) => orFault(async () => {
    const { learn } = await dataOf("page/props");
    if (!learn.lessons.some((/** @type {{ id: string }} */ each) => each.id === id)) throw new Error("there is no such lesson");
    return { lesson: await dataOf(`lessons/${id}`) };
  }, "There is no lesson of that name: choose one."),
  debug_open: () => orFault(async () => (await dataOf("page/debug")).open, "The run folder is missing."),
  debug_chart: (/** @type {[query: string, key: string]} */ [, key]) =>
    orFault(async () => (await dataOf("page/debug")).charts[key], "This chart is missing."),
  debug_steps: refused,
  debug_export: refused,
  debug_bring: refused,
  debug_play: refused,
};
