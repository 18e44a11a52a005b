// The objects on the page. If Gradio draws a component again, the earlier object ends.

/** @import { Shown } from "./types.d.ts" */

/** @type {Shown} */
export const shown = { viewer: null, race: null, debug: null, cost: null, learn: null, placed: false };
