// Notes whether the visitor uses keys or the pointer: only keys need a frame around the whole player. And what is pressed
// stays pressed.

/** @param {boolean} pointing */
const setPointing = (pointing) => document.documentElement.classList.toggle("app-pointing", pointing);

export const followPointer = () => {
  setPointing(true); // a visitor who came by a link has pressed no key yet
  for (const name of ["pointerdown", "drop"]) addEventListener(name, () => setPointing(true), true);
  // A field of the form may grow when it loses the focus to this press: the button moves away, and is pressed all the same.
  addEventListener("pointerdown", ({ target, pointerId }) => {
    if (target instanceof Element) target.closest(".app-go button")?.setPointerCapture(pointerId);
  }, true);
  addEventListener("keydown", ({ key }) => key === "Tab" && setPointing(false), true);
};
