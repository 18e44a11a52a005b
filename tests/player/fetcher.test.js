import assert from "node:assert/strict";
import test from "node:test";

import { Fetcher } from "../../assets/player/stream/fetcher.js";
import { run, stepLine } from "./runs.js";

const END = { kind: "end", finish: "length" };

/** As much of a player as fetching needs, and what it announced. */
const looker = (source, ...lines) => {
  const player = {
    record: run({}, ...lines), source, state: { step: 0 }, destroyed: false, changes: [], words: [],
    change: (values) => player.changes.push(values), announce: (words) => player.words.push(words),
  };
  return { player, fetch: new Fetcher(player) };
};

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a thin step is asked for once, and filled", async () => {
  const asked = [];
  const step = async (k) => asked.push(k) && JSON.stringify(stepLine({ k, say: "Filled." }));
  const { player, fetch } = looker({ step }, stepLine({ thin: true }), END);
  fetch.thin();
  fetch.thin();
  await settled();
  assert.deepEqual(asked, [0]);
  assert.equal(player.record.steps[0].say, "Filled.");
  assert.deepEqual(player.changes, [{ record: 0 }]);
  fetch.thin();
  assert.deepEqual(asked, [0], "a filled step is not thin");
});

test("nothing is asked for while a run is followed, of one that broke off, or of a host that has nothing", async () => {
  const step = () => assert.fail("asked");
  const followed = looker({ step }, stepLine({ thin: true }));
  followed.player.state.follow = true;
  followed.fetch.thin();
  looker({ step }, stepLine({ thin: true }), { kind: "fault", sentence: "It broke." }).fetch.thin();
  const { fetch, player } = looker({}, stepLine({ thin: true }), END);
  fetch.thin();
  await settled();
  assert.deepEqual(player.changes, []);
});

test("a step of a run that goes on is asked for once somebody stays at it", async () => {
  const { fetch, player } = looker({ step: async () => JSON.stringify(stepLine()) }, stepLine({ thin: true }));
  player.state.follow = false;
  fetch.thin();
  await settled();
  assert.deepEqual([player.record.live, player.record.partial], [true, false]);
});

test("what fails is announced once and asked for again, each time later", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let asked = 0;
  const step = () => { asked += 1; return Promise.reject(new Error("gone")); };
  const { player, fetch } = looker({ step }, stepLine({ thin: true }), END);
  assert.match(fetch.missing, /Fetching/);
  for (const wait of [4000, 8000, 16_000]) {
    fetch.thin();
    await settled();
    fetch.thin();
    t.mock.timers.tick(wait - 1);
    fetch.thin();
    await settled();
    const before = asked;
    t.mock.timers.tick(1);
    fetch.thin();
    await settled();
    assert.equal(asked, before + 1);
  }
  assert.match(fetch.missing, /asked for again/);
  assert.equal(player.words.length, 1);
});

test("an answer for a run that is shown no more is dropped", async () => {
  let answer;
  const step = () => new Promise((resolve) => { answer = resolve; });
  const { player, fetch } = looker({ step }, stepLine({ thin: true }), END);
  fetch.thin();
  player.record.reset();
  answer(JSON.stringify(stepLine()));
  await settled();
  assert.equal(player.record.last, -1);
  assert.deepEqual(player.changes, []);
});
