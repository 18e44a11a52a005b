// The charts' library, which a page may load after its text.

/** Whether it could not be loaded: whoever loads it says so here. */
export const library = { failed: false };
