// What is on the page. Gradio may draw a component anew: the one before it ends then.

/** @type {import("./types.d.ts").Shown} */
export const shown = { viewer: null, race: null, placed: false };
