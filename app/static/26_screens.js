// The page's tabs: an address names the one that is seen.
{
  const App = globalThis.SpecscopeApp;
  const TAB = "#app-tabs [role=tab]";

  const address = {
    run: () => App.addressOf(App.viewers.player.record.play ? App.viewers.told.address ?? "" : "", App.viewers.player.place()),
    race: () => App.addressOf(App.races?.address ?? "screen=race", {}),
  };

  document.addEventListener("click", ({ target, pointerType }) => {
    const tab = target.closest?.(TAB), screen = tab?.getAttribute("aria-controls");
    if (pointerType === "mouse") tab?.blur(); // the keys are for what it shows
    if (address[screen]) history.replaceState(history.state, "", address[screen]());
  });

  App.turn = (screen) => {
    const tab = document.querySelector(`${TAB}[aria-controls="${screen}"]`);
    if (tab?.getAttribute("aria-selected") === "false") tab.click();
  };
}
