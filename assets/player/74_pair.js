// Target against drafter at the pinned node: the counterpart of pair_detail in viz/pair.py, from the detail line.
{
  const S = (globalThis.Specscope ??= {});
  const { ACCEPTED, REJECTED, MATCHED, EXPLORED } = S.FATE;
  const JUDGED = { [ACCEPTED]: "accepted", [REJECTED]: "rejected", [MATCHED]: "right, but not the one used" };

  const known = (values, node) => values && node > 0 && !Number.isNaN(values[node]);

  // What the target took behind a node: what was written there, or what is likeliest.
  const taken = (step, nodes, parent) => {
    const at = nodes.path.findIndex((node) => nodes.place[node] === nodes.place[parent]);
    if (at >= 0 && at < step.emitted.length) return step.emitted[at];
    return nodes.choice ? nodes.choice[parent] : -1;
  };

  // Tokens and the target's shares of them: its best ones and the guesses, the likeliest first.
  const ranked = (nodes, top, node, rivals, most) => {
    const shares = new Map(top);
    for (const guess of [node, ...rivals]) {
      if (known(nodes.p, guess) && !shares.has(nodes.token[guess])) shares.set(nodes.token[guess], nodes.p[guess]);
    }
    const all = [...shares].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const kept = all.slice(0, most);
    const own = all.find(([token]) => token === nodes.token[node]);
    if (node > 0 && own && !kept.includes(own)) kept[kept.length - 1] = own;
    return kept;
  };

  // Why the target never came to a guess: the run was cut before it, or it hangs off a rejected one.
  const never = (step, nodes, node) => {
    const way = nodes.path.map((at) => nodes.place[at]);
    const above = S.seenNodes(nodes, nodes.parent[node]).map((at) => nodes.place[at]);
    if (step.emitted.length === step.accepted && above.includes(way.at(-1))) return "cut";
    return way.includes(above.at(-1)) ? "" : "untried";
  };

  const sentence = (words, header, step, nodes, node, best) => {
    if (!known(nodes.p, node)) return words.none;
    const [p, q, fate] = [nodes.p[node], known(nodes.q, node) ? nodes.q[node] : 0, nodes.fate[node]];
    const why = never(step, nodes, node);
    let kind = q ? (fate === REJECTED ? "residual" : "sampled") : "copied";
    if (fate === EXPLORED) kind = "explored";
    else if (!header.sampling?.temperature) kind = "greedy";
    else if (why && (header.lossless || why === "cut")) kind = why;
    else if (!header.lossless) kind = "typical";
    const keep = q ? Math.min(1, p / q) : p;
    return S.fill(words[kind], {
      fate: JUDGED[fate] ?? "", p: p.toFixed(3), best: Math.max(best, p).toFixed(3), keep: keep.toFixed(3),
    });
  };

  const rank = (words, nodes, rivals, said) => {
    if (!rivals.length) return "";
    const at = rivals.findIndex((guess) => nodes.token[guess] === said);
    return S.fill(words[at >= 0 ? "rank" : "missed"], { rank: at + 1, count: rivals.length });
  };

  // The patch of a pinned node, plain values; null where the alternatives are not known.
  S.pairPatch = (record, detail, k, node) => {
    const nodes = record.nodes(k);
    const top = record.details.get(k);
    if (!nodes || !top?.length || node >= nodes.count) return null;
    const step = record.steps[k];
    const parent = Math.max(0, nodes.parent[node]);
    const rivals = S.siblings(nodes, parent);
    const rows = ranked(nodes, top[parent], node, rivals, detail.rows);
    const said = taken(step, nodes, parent);
    const place = (token) => rivals.find((guess) => nodes.token[guess] === token) ?? -1;
    const row = (token) => rows.findIndex(([each]) => each === token);
    const drawn = rows.map(([token], i) => [i, place(token)])
      .filter(([, guess]) => guess >= 0 && known(nodes.q, guess) && nodes.q[guess] > 0);
    const signs = row(said) >= 0 ? [[1.17, row(said), "diamond"]] : [];
    if (node) signs.push([1.1, row(nodes.token[node]), record.play.fates[nodes.fate[node]].symbol]);
    const best = Math.max(0, ...top[parent].map(([, p]) => p));
    const { words } = detail;
    const say = [sentence(words, record.play.header, step, nodes, node, best), rank(words, nodes, rivals, said)];
    const data = [];
    data[detail.target] = { x: rows.map(([, p]) => p), customdata: rows.map(([token]) => place(token)) };
    data[detail.draft] = {
      x: drawn.map(([, guess]) => nodes.q[guess]), y: drawn.map(([i]) => i + 0.2),
      customdata: drawn.map(([, guess]) => guess),
    };
    data[detail.names] = {
      y: rows.map((_, i) => i), text: rows.map(([token]) => S.escape(S.cut(record.visible(token), 14))),
    };
    data[detail.marks] = {
      x: signs.map(([x]) => x), y: signs.map(([, y]) => y), marker: { symbol: signs.map(([, , symbol]) => symbol) },
    };
    data[detail.say] = { text: say.map(S.escape) };
    return { data };
  };
}
