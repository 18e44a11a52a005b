// What a race came to: the table, whether the outputs agree, and all of them under one another token by token.
{
  const S = (globalThis.Specscope ??= {});
  const MOST_ALIGNED = 1024;

  const greedy = (lane) => !lane.record.play.header.sampling?.temperature;

  S.raceResults = (race) => {
    const lanes = race.running;
    race.results.replaceChildren();
    race.together.replaceChildren();
    S.show(race.verdict, race.ready);
    if (!race.ready) return;
    const outcome = S.compareLanes(lanes);
    S.write(race.verdict, outcome.say);
    race.verdict.dataset.tone = outcome.tone;
    race.results.append(table(lanes));
    const words = "A column is an output token; a line in front of it begins a step.";
    race.together.append(S.el("p", { class: "ss-quiet" }, words), aligned(lanes));
  };

  // Lossless greedy runs must write the same tokens; where they do not, the page says so, and where they part.
  S.compareLanes = (lanes) => {
    const bound = lanes.filter((lane) => lane.record.play.header.lossless && greedy(lane) && !lane.record.fault);
    if (lanes.some((lane) => !greedy(lane))) {
      return { tone: "grey", say: "Sampled runs may differ; every lossless one follows the target's own law." };
    }
    if (bound.length < 2) return { tone: "grey", say: "Fewer than two lossless runs: nothing has to agree here." };
    const base = bound[0];
    for (const lane of bound.slice(1)) {
      const at = firstDifference(base, lane);
      if (at >= 0) return parted(base, lane, at);
    }
    const rest = lanes.length - bound.length;
    const free = rest ? ` ${S.plural(rest, "other run")} need not agree: not lossless by design, or failed.` : "";
    return { tone: "exact", say: `All ${bound.length} lossless runs wrote the same ${base.ids.length} tokens.${free}` };
  };

  // A run that was stopped early wrote a beginning of the same text.
  const firstDifference = (one, other) => {
    const [a, b] = [one.ids, other.ids];
    const shared = Math.min(a.length, b.length);
    for (let i = 0; i < shared; i += 1) if (a[i] !== b[i]) return i;
    const cut = [one, other].some((lane) => ["cancelled", "time", "torn"].includes(lane.record.end?.finish));
    return a.length === b.length || cut ? -1 : shared;
  };

  const parted = (one, other, at) => {
    const token = (lane) => (at < lane.ids.length ? `“${lane.record.visible(lane.ids[at])}”` : "nothing");
    const ties = [one, other].flatMap((lane) => lane.record.check?.violations ? [] : (lane.record.check?.places ?? []));
    const tie = ties.find((place) => place.position === at);
    const where = `Outputs differ: ${one.label} and ${other.label} part at token ${at}, `
      + `${token(one)} against ${token(other)}.`;
    if (tie) {
      const margin = tie.margin.toPrecision(2);
      return { tone: "near", say: `${where} It is a near-tie of the target (margin ${margin}): rounding decides.` };
    }
    return { tone: "broken", say: `${where} Lossless greedy runs must agree, so one of them is wrong.` };
  };

  const HEADINGS = [
    "Place", "Method", "Time", "Tokens", "Tokens/s", "Tokens per step", "Time per step", "Rows per token", "Speedup",
  ];

  const table = (lanes) => {
    const base = lanes.find((lane) => lane.record.play.header.method === "autoregressive");
    const rate = (lane) => lane.record.end?.summary?.tokens_per_second ?? null;
    const number = (value, digits, unit = "") => (typeof value === "number" ? value.toFixed(digits) + unit : "–");
    const rows = [...lanes].sort((a, b) => Boolean(a.record.fault) - Boolean(b.record.fault) || a.total - b.total)
      .map((lane, place) => {
        const summary = lane.record.end?.summary ?? {};
        const later = summary.steps > 1 ? (summary.decode_seconds * 1000) / (summary.steps - 1) : null;
        const gain = base && rate(lane) && rate(base) ? rate(lane) / rate(base) : null;
        return [lane.record.fault ? "–" : `${place + 1}.`, lane.label, `${(lane.total / 1000).toFixed(2)} s`,
          String(lane.tokens.length), number(rate(lane), 1), number(summary.mean_acceptance_length, 2),
          number(later, 2, " ms"), number(summary.fed_per_token, 1), number(gain, 2, "×")];
      });
    return S.el("table", { class: "ss-table" },
      S.el("thead", {}, S.el("tr", {}, ...HEADINGS.map((heading) => S.el("th", { scope: "col" }, heading)))),
      S.el("tbody", {}, ...rows.map((row) => S.el("tr", {}, ...row.map((text) => S.el("td", {}, text))))));
  };

  const aligned = (lanes) => {
    const count = Math.min(MOST_ALIGNED, Math.max(0, ...lanes.map((lane) => lane.tokens.length)));
    const differs = Array.from({ length: count }, (_, i) =>
      new Set(lanes.filter((lane) => i < lane.ids.length).map((lane) => lane.ids[i])).size > 1);
    const head = S.el("tr", {}, S.el("th", { scope: "col" }, "Token"),
      ...differs.map((differ, i) => S.el("th", { scope: "col" }, differ ? `${i} ≠` : String(i))));
    const rows = lanes.map((lane) => S.el("tr", {}, S.el("th", { scope: "row" }, lane.label),
      ...differs.map((differ, i) => cell(lane, i, differ))));
    return S.el("table", { class: "ss-table" }, S.el("thead", {}, head), S.el("tbody", {}, ...rows));
  };

  const cell = (lane, i, differ) => {
    const token = lane.tokens[i];
    if (!token) return S.el("td", { class: "ss-none" });
    const begins = i === 0 || lane.tokens[i - 1].step !== token.step;
    const span = S.el("span", { class: `ss-token ss-fate-${token.fate}` }, lane.record.visible(token.id));
    const marks = [begins ? "ss-begins" : "", differ ? "ss-differs" : ""].join(" ").trim();
    return S.el("td", { class: marks || null }, span);
  };
}
