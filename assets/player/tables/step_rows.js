// The timeline as a table, from the steps themselves: all that are known, as in the chart.
import { isRejection } from "../stream/jumps.js";

/** @import { Player } from "../player.js" */
/** @import { Rows } from "../types.d.ts" */

const COUNTS = ["Step", "Accepted", "The target's own", "A guess was rejected", "Tokens the target processed"];
const TIMES = ["Forward", "Draft", "Accept", "Commit", "Other", "Whole"].map((part) => `${part} ms`);

/**
 * @param {Player} player
 * @returns {Rows}
 */
export const stepRows = (player) => {
  const { record } = player;
  const mixture = record.steps.some((step) => step.experts !== undefined);
  const rows = record.steps.slice(0, player.told).map((step, k) => {
    const own = step.emitted_fates.find((fate) => fate !== record.fates.accepted);
    const accepted = step.emitted_fates.filter((fate) => fate === record.fates.accepted).length;
    const [draft, forward, accept, commit, whole] = step.ms;
    const other = Math.max(0, whole - draft - forward - accept - commit);
    return { step: k, cells: [k, accepted, own === undefined ? "none" : player.fate(own).label,
      isRejection(step, record) ? "yes" : "no", step.pending && !k ? `${step.fed}, with the prompt` : step.fed,
      ...(mixture ? [step.experts ?? "not known"] : []), forward, draft, accept, commit, other, whole] };
  });
  return { headings: [...COUNTS, ...(mixture ? ["Experts read in a layer"] : []), ...TIMES], rows };
};
