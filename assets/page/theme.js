// Light or dark: by the address, or else the visitor's last choice.
import { asked } from "./address.js";

const THEME = "specscope-theme";

export const applyTheme = () => {
  try {
    const stored = localStorage.getItem(THEME);
    if (stored && !asked().has("__theme")) document.body.classList.toggle("dark", stored === "dark");
  } catch { /* a browser that keeps nothing */ }
};

export const toggleTheme = () => {
  const dark = document.body.classList.toggle("dark");
  try {
    localStorage.setItem(THEME, dark ? "dark" : "light");
  } catch { /* a browser that keeps nothing */ }
};
