// Closes a menu of the form that is left by Tab.

const LEAVES = ["Tab", "Shift"];

/** Gradio opens a menu at every key, also at those that leave it: the list stayed open over the fields below it. */
export const closeLeftMenus = () => addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (LEAVES.includes(key) && target instanceof Element && target.matches("[role=combobox]")) event.stopPropagation();
}, true);
