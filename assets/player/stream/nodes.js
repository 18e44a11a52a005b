// The nodes of a step as columns.
import { resolve } from "./decode.js";
import { FATE } from "./fates.js";

// The nodes of a step as columns, with what follows from their parents.
export const nodeColumns = (step, record) => {
  const part = (name) => (step.nodes[name] ? resolve(step.nodes[name], RAW) : null);
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
    if (found.fate[node] === FATE.ACCEPTED) found.path.push(node);
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
