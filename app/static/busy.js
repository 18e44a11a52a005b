/**
 * A button that starts something does nothing while that goes on. It keeps the focus, which a disabled one would lose.
 * @param {string[]} names
 * @param {boolean} going
 */
export const busy = (names, going) => {
  for (const name of names) document.getElementById(name)?.setAttribute("aria-disabled", String(going));
};

/** @type {Set<string>} what goes on now that Stop ends */
const going = new Set();

/**
 * Stop can be pressed as long as there is something to stop.
 * @param {string} name
 * @param {boolean} goes
 */
export const stoppable = (name, goes) => {
  if (goes) going.add(name);
  else going.delete(name);
  mark();
};

const mark = () => busy(["run-stop"], going.size === 0);

/** Gradio reads no aria-disabled: a press on such a button must not reach it. */
export const holdBusyButtons = () => {
  const drawn = new MutationObserver(() => { // Gradio may draw the form behind the player
    if (!document.getElementById("run-stop")) return;
    drawn.disconnect();
    mark();
  });
  drawn.observe(document.body, { childList: true, subtree: true });
  addEventListener("click", (event) => {
    const pressed = event.target instanceof Element && event.target.closest("button[aria-disabled=true]");
    if (pressed) event.stopImmediatePropagation();
  }, true);
};
