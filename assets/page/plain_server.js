// Answers the server's calls from plain files: recordings, lessons, the recorded race, and run folders with their steps.
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

/** @param {unknown[]} objects what JSON lines hold */
const asLines = (objects) => ({ lines: objects.map((each) => `${JSON.stringify(each)}\n`).join("") });

/** @param {"detail" | "rows"} kind */
const ofStep = (kind) => (/** @type {[run: string | undefined, k: number]} */ [run, k]) =>
  orFault(async () => asLines((await recorded(run))[kind][k]), "This page has no more of that step.");

/**
 * Return true if an address of the Debug page asks for other steps than those that are here.
 * @param {URLSearchParams} asked
 * @param {URLSearchParams} ours
 */
const selects = (asked, ours) => {
  const fields = (/** @type {URLSearchParams} */ query) =>
    [...query].filter(([name]) => /^(f|b)\.|^(sql|against)$/.test(name)).map(String).sort().join("&");
  return (fields(asked) && fields(asked) !== fields(ours)) || (asked.get("folder") ?? ours.get("folder")) !== ours.get("folder");
};

/**
 * Return the run folder that an address names, or the first.
 * @param {string} query
 * @returns {Promise<string>}
 */
const folderIn = async (query) => {
  const { folders } = await dataOf("page/props"), named = new URLSearchParams(query).get("folder");
  return named && folders.includes(named) ? named : folders[0];
};

const refused = () => Promise.resolve({ fault: LIVE });

export const plainServer = {
  run_detail: ofStep("detail"),
  run_rows: ofStep("rows"),
  run_step: refused, // every step is whole
  run_lives: () => Promise.resolve({ lives: false }),
  run_export: refused,
  open_trace: refused,
  open_recording: (/** @type {string} */ run) => orFault(async () => asLines((await recorded(run)).lines),
    "There is no such recording on this page: choose another one."),
  open_race: () => orFault(async () => ({ lines: (await dataOf("page/race")).lines }), "The race is missing."),
  cost_runs: (/** @type {string} */ group) => orFault(() => dataOf(`costs/${group}`), "The steps of these runs are missing."),
  learn_lesson: (/** @type {string} */ id) => orFault(async () => {
    const { learn } = await dataOf("page/props");
    if (!learn.lessons.some((/** @type {{ id: string }} */ each) => each.id === id)) throw new Error("there is no such lesson");
    return { lesson: await dataOf(`lessons/${id}`) };
  }, "There is no lesson of that name: choose one."),
  debug_open: (/** @type {string} */ query) => orFault(async () => {
    const { open } = await dataOf(`debug/${await folderIn(query)}`);
    const asked = new URLSearchParams(query), ours = new URLSearchParams(open.address);
    const chart = asked.get("chart") ?? "";
    const linked = open.charts.some((/** @type {{ key: string }} */ { key }) => key === chart) ? { chart, address: `${open.address}&chart=${chart}` } : {};
    return { ...open, ...linked, notice: selects(asked, ours) ? LIVE : open.notice };
  }, "The run folder is missing."),
  debug_chart: (/** @type {[query: string, key: string]} */ [query, key]) =>
    orFault(async () => (await dataOf(`debug/${await folderIn(query)}`)).charts[key], "This chart is missing."),
  debug_steps: (/** @type {[query: string, key: string, row: number, second: boolean, offset: number]} */ [query, key, row, , offset]) =>
    orFault(async () => {
      const { steps, behind, listed } = await dataOf(`steps/${await folderIn(query)}`);
      const { at, ...order } = behind[`${key}:${row}`];
      const shown = at.slice(offset, offset + listed).map((/** @type {number} */ place) => steps[place]);
      return { count: at.length, offset, ...order, steps: shown };
    }, "These steps are missing."),
  debug_costs: (/** @type {string} */ folder) => orFault(async () => dataOf(`costs/folder-${await folderIn(`folder=${folder}`)}`),
    "This run folder is missing."),
  debug_export: refused,
  debug_bring: refused,
  debug_play: (/** @type {[folder: string, run: number, step: number]} */ [folder, number, step]) => orFault(async () => {
    const run = `debug-${folder}-${number}`, { lines } = await recorded(run);
    return { run, ...asLines([...lines, { kind: "host", step }]) };
  }, "This run is missing."),
};
