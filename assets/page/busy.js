/**
 * Make a button do nothing while its job runs. It keeps the focus, which a disabled one would lose.
 * @param {string} selector
 * @param {boolean} going
 */
export const busy = (selector, going) => {
  for (const button of document.querySelectorAll(selector)) button.setAttribute("aria-disabled", String(going));
};

/** @type {Record<string, Set<string>>} what goes on now that a Stop button ends */
const going = { "run-stop": new Set(), "race-stop": new Set() };

/**
 * Stop can be pressed as long as there is something to stop.
 * @param {string} name
 * @param {boolean} goes
 * @param {string} button
 */
export const stoppable = (name, goes, button) => {
  if (goes) going[button]?.add(name);
  else going[button]?.delete(name);
  busy(`#${button}`, going[button]?.size === 0);
};

/**
 * Call a function when an element is there: Gradio may draw a form after the player beside it.
 * @param {string} name
 * @param {() => void} then
 */
export const onceDrawn = (name, then) => {
  if (document.getElementById(name)) return then();
  const drawn = new MutationObserver(() => {
    if (!document.getElementById(name)) return;
    drawn.disconnect();
    then();
  });
  drawn.observe(document.body, { childList: true, subtree: true });
  return undefined;
};

/** Gradio reads no aria-disabled: a press on such a button must not reach it. */
export const holdBusyButtons = () => {
  addEventListener("click", (event) => {
    const pressed = event.target instanceof Element && event.target.closest("button[aria-disabled=true]");
    if (pressed) event.stopImmediatePropagation();
  }, true);
};
