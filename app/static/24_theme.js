// Light or dark: the visitor's last choice, where the address makes none.
{
  const App = globalThis.SpecscopeApp;
  const THEME = "specscope-theme";
  App.dress = () => {
    try {
      const kept = localStorage.getItem(THEME);
      if (kept && !App.asked().has("__theme")) document.body.classList.toggle("dark", kept === "dark");
    } catch { /* a browser that keeps nothing */ }
  };

  App.theme = () => {
    const dark = document.body.classList.toggle("dark");
    try {
      localStorage.setItem(THEME, dark ? "dark" : "light");
    } catch { /* a browser that keeps nothing */ }
  };
}
