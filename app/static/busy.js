/**
 * A button that starts something does nothing while that goes on. It keeps the focus, which a disabled one would lose.
 * @param {string} name
 * @param {boolean} going
 */
export const busy = (name, going) => document.getElementById(name)?.setAttribute("aria-disabled", String(going));
