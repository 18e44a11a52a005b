// Answers of the server's functions.

/** @import { Source } from "../player/types.d.ts" */
/** @import { Server } from "./types.d.ts" */

/**
 * An answer, or null after its sentence has been shown; what is on the screen stays.
 * @template {{ fault?: string }} T
 * @param {() => Promise<T | null>} call
 * @param {(sentence: string, answer?: T | null) => void} say
 */
export const answerOf = async (call, say) => {
  try {
    const answer = await call();
    if (answer && !answer.fault) return answer;
    say(answer?.fault ?? "The server gave no answer: try again.", answer);
  } catch {
    say("The server could not be reached: try again.");
  }
  return null;
};

/**
 * Return what a player asks the server for of a run.
 * @param {Server} server
 * @param {() => string | undefined} run
 * @returns {Source}
 */
export const runSource = (server, run) => {
  /** @param {"run_detail" | "run_step" | "run_rows"} name */
  const lines = (name) => async (/** @type {number} */ k) => {
    const answer = await server[name]([run(), k]);
    if (!answer?.lines) throw new Error(answer?.fault);
    return answer.lines;
  };
  return { detail: lines("run_detail"), step: lines("run_step"), rows: lines("run_rows") };
};
