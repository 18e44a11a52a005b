// What is on the page. Gradio may draw a component anew: the one before it ends then.

/** @import { Shown } from "./types.d.ts" */

/** @type {Shown} */
export const shown = { viewer: null, race: null, debug: null, cost: null, learn: null, placed: false };
