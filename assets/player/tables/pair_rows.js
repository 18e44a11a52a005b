// Target against drafter as a table: a row for every token that has a bar, from the record.
import { pairAt } from "../charts/pair.js";
import { PHASES, isJudged } from "../stream/fates.js";

/** @import { Player } from "../player.js" */
/** @import { PairDetail, Rows, Seen } from "../types.d.ts" */

const HEADINGS = ["Token", "p of the target", "q of the drafter", "Guessed at node", "Sign"];

/**
 * @param {Player} player
 * @param {PairDetail} detail
 * @param {Seen} at
 * @returns {Rows}
 */
export const pairRows = ({ record }, detail, at) => {
  const chosen = at.pin?.step === at.step ? at.pin : { node: record.steps[at.step].views?.pair?.about ?? -1 };
  const pair = pairAt(record, detail, at.step, chosen);
  if (!pair) return { headings: HEADINGS, rows: [] };
  const [verified, judged] = [PHASES.indexOf(at.phase) >= PHASES.indexOf("verify"), isJudged(at)];
  const rows = pair.rows.map(({ token, p, q, node, written, guessed }) => {
    const signs = [written && "taken", guessed && "the guess"].filter(Boolean).join(", ");
    const cells = [record.visible(token), verified ? p : null, q, node < 0 ? null : node, judged ? signs : null];
    return { node, cells };
  });
  return { headings: HEADINGS, rows, say: judged ? pair.say.filter(Boolean) : [] };
};
