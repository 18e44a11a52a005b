// The page around a race: lines are handed to it, and what it leaves can be opened.
{
  const App = globalThis.SpecscopeApp;
  const { el, split, growing, pulse, addressOf, note, busy } = App;

  App.race = (element, { props, server, watch }) => {
    App.races?.destroy();
    const stage = el("div", { class: "app-stage" }), after = el("p", { class: "app-after" });
    element.replaceChildren(stage, after);
    const race = (App.races = new Specscope.Race(stage));
    let known = {};
    const takes = () => growing((tail, anew) => {
      const [told, rest] = split(tail);
      if (anew) race.reset();
      known = anew ? told : { ...known, ...told };
      race.feed(rest);
      after.replaceChildren(...App.afterRace(known));
      race.address = known.address;
      if (told.address) note(stage, told.address, {});
      if (told.done) race.play();
    });
    let take = takes();
    const beat = pulse(() => server.run_lives(known.run), (sentence) => {
      race.lose(sentence);
      busy("race-go", false);
      take = takes(); // should lines come after all, they are heard from the beginning
    });
    const hear = () => {
      take(props.value);
      beat(!race.over);
      busy("race-go", !race.over);
    };
    hear();
    watch("value", hear);
  };

  // What a race leaves: its address, and every run of it to be looked at step by step.
  App.afterRace = ({ address, runs, notice }) => {
    const link = { on: { link: () => addressOf(address, {}) }, place: () => ({}), root: App.races.root,
      tell: (said) => { copy.textContent = said; } };
    const copy = el("button", { type: "button", class: "app-button", onclick: () => Specscope.copyLink(link) }, "Copy link");
    const open = (runs ?? []).map(([label, run]) =>
      el("a", { class: "app-button", href: addressOf(`run=${run}`, {}), target: "_blank" }, `Open ${label}`));
    return address ? [copy, ...open, ...(notice ? [el("span", { class: "app-shows" }, notice)] : [])] : [];
  };
}
