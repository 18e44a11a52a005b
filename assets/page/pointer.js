// Whether the visitor moves over the page by keys or by pointing: only the former needs a frame around the whole player.

/** @param {boolean} pointing */
const setPointing = (pointing) => document.documentElement.classList.toggle("app-pointing", pointing);

export const followPointer = () => {
  setPointing(true); // a visitor who came by a link has pressed no key yet
  for (const name of ["pointerdown", "drop"]) addEventListener(name, () => setPointing(true), true);
  addEventListener("keydown", ({ key }) => key === "Tab" && setPointing(false), true);
};
