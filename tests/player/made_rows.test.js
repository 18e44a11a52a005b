import assert from "node:assert/strict";
import test from "node:test";

import { cellAt, madeRows } from "../../assets/player/tables/made_rows.js";
import { PHASES } from "../../assets/player/stream/fates.js";

test("a cell says what is known at a phase, and nothing before", () => {
  assert.deepEqual(PHASES.map((phase) => cellAt("x", phase)), ["x", "x", "x", "x", "x"]);
  assert.deepEqual(PHASES.map((phase) => cellAt(null, phase)), [null, null, null, null, null]);
  const judged = { propose: "Proposed", accept: "Rejected" };
  assert.deepEqual(PHASES.map((phase) => cellAt(judged, phase)), ["Proposed", "Proposed", "Proposed", "Rejected", "Rejected"]);
  assert.deepEqual(PHASES.map((phase) => cellAt({ commit: 3 }, phase)), [undefined, undefined, undefined, undefined, 3]);
});

test("rows come and go with the phases", () => {
  const rows = [{ cells: ["read"], until: "verify" }, { cells: ["written"], since: "verify", until: "commit" },
    { cells: ["kept", { commit: 2 }], node: 4, since: "commit" }];
  const table = { headings: ["What"], rows, say: ["always", { commit: "at last" }] };
  const at = (phase) => madeRows(table, phase);
  assert.deepEqual(PHASES.map((phase) => at(phase).rows.map(({ cells }) => cells[0])),
    [["read"], ["written"], ["written"], ["written"], ["kept"]]);
  assert.deepEqual(at("commit").rows, [{ node: 4, cells: ["kept", 2] }]);
  assert.deepEqual([at("accept").say, at("commit").say], [["always"], ["always", "at last"]]);
  assert.deepEqual([at("commit").count, madeRows({ ...table, count: 9 }, "commit").count], [1, 9]);
});
