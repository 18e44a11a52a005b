import assert from "node:assert/strict";
import test from "node:test";

import { JobStream } from "../../assets/page/streams.js";

globalThis.document = /** @type {any} */ ({ getElementById: () => ({}), querySelectorAll: () => [] }); // buttons

// A stream whose value a test sets, and what its shower got.
const stream = () => {
  /** @type {any} */
  const io = { props: {}, server: { run_lives: async () => ({ lives: true }) }, watch: (_, changed) => { io.changed = changed; } };
  const got = [];
  const made = new JobStream(io, {
    name: "run", starts: "#go", stop: "stop",
    take: (lines, anew) => got.push([anew, ...lines.map(({ kind }) => kind)]),
    refused: (sentence) => got.push(sentence),
    lost: (sentence) => got.push(sentence),
  });
  const send = (text) => {
    io.props.value = text;
    io.changed();
    clearTimeout(made.timer);
    return got.splice(0);
  };
  return { made, send };
};
const lines = (...given) => given.map((line) => `${JSON.stringify(line)}\n`).join("");
const HOST = { kind: "host", run: "a" }, STEP = { kind: "step", k: 0 }, END = { kind: "end" }, CHECK = { kind: "check" };

test("each line of a growing text is handed on once", () => {
  const { made, send } = stream();
  assert.deepEqual(send(lines(HOST)), [[true, "host"]]);
  assert.deepEqual(send(lines(HOST)), []);
  assert.deepEqual(send(lines(HOST, STEP)), [[false, "step"]]);
  assert.deepEqual([made.id, made.over], ["a", false]);
  assert.deepEqual(send(lines(HOST, STEP, END)), [[false, "end"]]);
  assert.deepEqual(send(lines(HOST, STEP, END, CHECK)), [[false, "check"]]);
  assert.equal(made.over, true);
});

test("a job whose check follows its end is over once that is there", () => {
  const { made, send } = stream();
  const checks = { kind: "host", follows: "Checking." }, all = [HOST, STEP, checks, END];
  send(lines(...all));
  assert.equal(made.over, false);
  send(lines(...all, CHECK, { kind: "host", follows: "Measuring." }));
  assert.equal(made.over, false);
  send(lines(...all, CHECK, { kind: "host", follows: "" }));
  assert.equal(made.over, true);
  send(lines({ ...HOST, run: "b" }, STEP, END));
  assert.equal(made.over, true, "what followed another job does not follow this one");
  send(lines({ ...HOST, run: "c" }, checks, END, { kind: "fault" }));
  assert.equal(made.over, true);
});

test("another job begins anew, and a refusal leaves the one before", () => {
  const { made, send } = stream();
  send(lines(HOST, STEP));
  assert.deepEqual(send(lines({ kind: "refused", sentence: "No." })), ["No."]);
  assert.deepEqual(send(lines(HOST, STEP, STEP)), [[false, "step"]]);
  assert.deepEqual(send(lines({ ...HOST, run: "b" }, STEP)), [[true, "host", "step"]]);
  assert.equal(made.id, "b");
});

test("the end of one lane is not the end of a race", () => {
  const { made, send } = stream();
  send(lines(HOST, { ...END, lane: 0 }));
  assert.equal(made.over, false);
  send(lines(HOST, { ...END, lane: 0 }, { kind: "done" }));
  assert.equal(made.over, true);
});

test("lines that come after the connection was lost are read from the beginning", () => {
  const { made, send } = stream();
  send(lines(HOST, STEP));
  made.lose("Lost.");
  assert.equal(made.over, true);
  assert.deepEqual(send(lines(HOST, STEP, STEP)), ["Lost.", [true, "host", "step", "step"]]);
});
