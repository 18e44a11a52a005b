/** @import { Spot } from "../types.d.ts" */

/**
 * Return what is hovered or pinned: a node of a step, or the token that the target chose there itself.
 * @param {number} step
 * @param {number} node
 * @param {boolean} [own]
 * @returns {Spot}
 */
export const spot = (step, node, own = false) => (own ? { step, node, own } : { step, node });

/**
 * @param {Spot | null} one
 * @param {Spot | null} other
 */
export const sameSpot = (one, other) =>
  one?.step === other?.step && one?.node === other?.node && Boolean(one?.own) === Boolean(other?.own);
