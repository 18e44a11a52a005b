// The tree of a step: its columns, who sees whom, and where each node stands in a picture of it.
{
  const S = (globalThis.Specscope ??= {});

  // The nodes of a step as columns, with what follows from their parents.
  S.nodeColumns = (step, record) => {
    const part = (name) => (step.nodes[name] ? S.resolve(step.nodes[name], RAW) : null);
    const found = {
      token: part("token"), parent: part("parent"), fate: part("fate"), choice: part("choice"), p: part("p"),
      q: part("q"), source: Array.from(part("source") ?? [], (number) => record.string(number)),
    };
    found.inspired = new Set(part("inspired") ?? []);
    found.count = found.token.length;
    found.depth = new Int16Array(found.count);
    found.children = Array.from({ length: found.count }, () => []);
    found.path = [0];
    for (let node = 1; node < found.count; node += 1) {
      found.depth[node] = found.depth[found.parent[node]] + 1;
      found.children[found.parent[node]].push(node);
      if (found.fate[node] === S.FATE.ACCEPTED) found.path.push(node);
    }
    found.path.sort((a, b) => found.depth[a] - found.depth[b]);
    found.place = places(found);
    return found;
  };
  const RAW = { text: String, string: String, colour: String, symbol: String, judged: true };

  // The place in the text that every node stands for: the first node with the same tokens from the root to it.
  const places = ({ token, parent }) => {
    const known = new Map();
    const found = [];
    for (let node = 0; node < token.length; node += 1) {
      const way = node ? `${found[parent[node]]},${token[node]}` : "";
      if (!known.has(way)) known.set(way, node);
      found.push(known.get(way));
    }
    return found;
  };

  // The guesses for the place behind a node, every token once: the counterpart of siblings in viz/story.py.
  S.siblings = (nodes, node) => {
    const found = new Map();
    for (let guess = 1; guess < nodes.count; guess += 1) {
      const here = nodes.place[nodes.parent[guess]] === nodes.place[node] && nodes.fate[guess] !== S.FATE.EXPLORED;
      const stands = !found.has(nodes.token[guess]) || nodes.fate[guess] === S.FATE.ACCEPTED;
      if (here && stands) found.set(nodes.token[guess], guess);
    }
    return [...found.values()];
  };

  // The nodes that a node sees in its step, root first: itself and its ancestors, as far back as a sliding window.
  S.seenNodes = (nodes, node, window) => {
    const seen = [];
    for (let at = node; at >= 0; at = nodes.parent[at]) {
      if (!window || nodes.depth[node] - nodes.depth[at] < window) seen.unshift(at);
    }
    return seen;
  };

  // The row of every node in a picture: a first child goes on in its parent's row, every other one begins a row, in the
  // order of the draft. Explored nodes, and what hangs off them, have none. The counterpart of viz/layout.py.
  S.treeRows = (nodes) => {
    if (nodes.row) return nodes.row;
    nodes.row = new Array(nodes.count).fill(null);
    const waiting = [[0, 0]];
    let last = 0;
    while (waiting.length) {
      const [node, row] = waiting.pop();
      nodes.row[node] = row === null ? (last += 1) : row;
      const [first, ...rest] = nodes.children[node].filter((child) => nodes.fate[child] !== S.FATE.EXPLORED);
      for (const child of rest.reverse()) waiting.push([child, null]);
      if (first !== undefined) waiting.push([first, nodes.row[node]]);
    }
    return nodes.row;
  };

  // Lines from parents to nodes, as plotly wants them: from, to, and a gap.
  S.treeEdges = ({ edges, from = 0, to }, nodes) => {
    const rows = S.treeRows(nodes);
    const places = edges === "depth" ? nodes.depth : rows;
    const drawn = [];
    for (let node = from; node < Math.min(to ?? nodes.count, nodes.count); node += 1) {
      const known = node > 0 && rows[node] !== null;
      drawn.push(...(known ? [places[nodes.parent[node]], places[node], null] : [null, null, null]));
    }
    return drawn;
  };
}
