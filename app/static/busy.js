/**
 * A button that starts something does nothing while that goes on. It keeps the focus, which a disabled one would lose.
 * @param {string[]} names
 * @param {boolean} going
 */
export const busy = (names, going) => {
  for (const name of names) document.getElementById(name)?.setAttribute("aria-disabled", String(going));
};

/** Gradio reads no aria-disabled: a press on such a button must not reach it. */
export const holdBusyButtons = () => {
  addEventListener("click", (event) => {
    const pressed = event.target instanceof Element && event.target.closest("button[aria-disabled=true]");
    if (pressed) event.stopImmediatePropagation();
  }, true);
};
