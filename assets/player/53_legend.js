// What every colour and sign means: of tokens in the legend, which stays in sight, of all else in a key of its view.
{
  const S = (globalThis.Specscope ??= {});

  S.legendItems = (fates, used) => fates.filter(({ code }) => used.has(code)).map((fate) =>
    S.el("li", { title: fate.words }, S.symbol(fate.symbol, `var(--ss-${fate.colour.slice(1)})`),
      S.el("span", { class: `ss-token ss-fate-${fate.code}` }, fate.label)));

  // As much as the run has shown, and what the open views draw beyond it.
  S.Legend = class {
    constructor(player) {
      this.player = player;
      this.node = S.el("ul", { class: "ss-legend", "aria-label": "Legend" });
      this.known = "";
    }

    update(changed) {
      if (!["record", "theme", "open", "view", "narrow"].some((name) => changed.has(name))) return;
      const { record, theme, cards } = this.player;
      if (!record.play) return;
      const used = new Set([...this.used(), ...cards.shown().flatMap((view) => view.base.draws ?? [])]);
      const known = `${record.version}/${theme}/${[...used]}`;
      if (this.known === known) return;
      this.known = known;
      this.node.replaceChildren(...S.legendItems(record.play.fates, used));
    }

    used() {
      const { record, state } = this.player;
      if (this.counted?.version !== record.version) {
        this.counted = { version: record.version, upto: 0, used: new Set([S.FATE.PROMPT, S.FATE.ROOT]) };
      }
      const { used } = this.counted;
      const count = (step) => {
        if (step?.nodes) for (const fate of S.unpack(step.nodes.fate.fates)) used.add(fate);
        if (step?.nodes?.inspired || step?.inspired?.length) used.add(S.FATE.INSPIRED);
      };
      for (; this.counted.upto <= record.last; this.counted.upto += 1) {
        const step = record.steps[this.counted.upto];
        for (const fate of step.emitted_fates) used.add(fate);
        if (step.drafted) used.add(S.FATE.PROPOSED);
        count(step);
      }
      count(record.steps[state.step]); // a thin one may have been filled since
      return used;
    }
  };

  const HATCHES = { "-": "lines", x: "cross" };

  const colour = (name) => `var(--ss-${name.slice(1)})`;

  // A bar as the view draws it: filled, hatched or, where it is thin, a stroke.
  const bar = ({ colour: fill, hatch, ink, thin }) => {
    const shape = hatch ? `ss-hatch-${HATCHES[hatch]}` : thin ? "ss-thin" : "";
    const mark = S.el("i", { class: `ss-swatch ${shape}`, "aria-hidden": "true" });
    mark.style.setProperty("--fill", colour(fill));
    mark.style.setProperty("--ink", colour(ink ?? fill));
    return mark;
  };

  const sign = (item) => {
    if (item.symbol) return S.symbol(item.symbol, colour(item.colour));
    return item.sample ? S.el("i", { class: "ss-sample", "aria-hidden": "true" }, item.sample) : bar(item);
  };

  // What a view draws that is no token's fate.
  S.viewKey = (view) => {
    const items = (view.base.key ?? []).map((item) => S.el("li", {}, sign(item), S.el("span", {}, item.words)));
    return items.length ? S.el("ul", { class: "ss-key", "aria-label": `Key of ${view.label}` }, ...items) : null;
  };
}
