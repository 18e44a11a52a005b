// The arithmetic of the Cost page. Expected numbers come from elsewhere: outcomes of a draft enumerated in exact fractions, a
// break-even found by scanning, and rooflines worked out from published configurations, all in Python.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { SPANS, choicesIn, queryOf } from "../../assets/page/cost/choices.js";
import { cheapUpTo, curveSentence, passCost } from "../../assets/page/cost/curves.js";
import { bestDraft, breakEven, expectedTokens, speedUp, verdict } from "../../assets/page/cost/drafting.js";
import { bestWindow, fitted, recordedTokens, tokensPerStep, windowSpeedUp, windowVerdict, worstError } from "../../assets/page/cost/lookahead.js";
import { lacking, replay, stepsOf, typicalError } from "../../assets/page/cost/replay.js";
import { DEVICES, SHAPES, fits, losesFrom, parameters, passSeconds, rooflineCost, rooflineSentences, tokenBytes } from "../../assets/page/cost/roofline.js";
import { roundTicks } from "../../assets/page/cost/chart.js";
import { headSentences, headTrees } from "../../assets/page/cost/heads_card.js";
import { cellsOf, curveWithTrees, treeSentences } from "../../assets/page/cost/trees_card.js";

const near = (actual, expected, within = 1e-9) => assert.ok(Math.abs(actual - expected) <= within, `${actual} is not ${expected}`);

const fileOf = (file) => JSON.parse(readFileSync(join(process.argv[1], "../../../assets/costs", `${file}.json`), "utf8"));

/** A curve as app/store/pass_costs.py gives it, of a file of assets/costs/. */
const curve = (file, shape, context) => {
  const { shapes, ...machine } = fileOf(file);
  const found = shapes.find((each) => each.shape === shape && each.context === context);
  return { threads: null, here: false, noisy: [], ...machine, ...found, id: `${file}:${shape}:${context}`, model: shape };
};
const CPU = curve("cpu-2-cores", "smollm2", 128), H200 = curve("nvidia-h200", "7B", 1024);
const steep = { ...CPU, rows: [1, 2, 4, 8], milliseconds: [10, 21, 43, 90] }; // reading two tokens costs more than reading them one by one

test("a pass costs what was measured, and between two measurements what the straight line says", () => {
  near(passCost(CPU)(4), 8.8909 / 8.1016);
  near(passCost(CPU)(5), 1.1226547842401502); // half-way between 4 and 6
  near(passCost(H200)(5), 1.0026177470885294);
  assert.ok(Number.isNaN(passCost(CPU)(65)) && Number.isNaN(passCost(H200)(129)));
});

test("the sentence on a curve says up to where passes are cheap", () => {
  assert.equal(cheapUpTo(CPU), 6); // c(6) is 1.15 and c(8) 1.33
  assert.equal(cheapUpTo(H200), 32); // c(32) is 1.13 and c(64) 1.22
  assert.match(curveSentence(CPU), /AMD EPYC, 2 threads .*: up to 6 tokens, a pass costs at most 1.2 times .* over 64 tokens it is 6.28 times/);
  assert.match(curveSentence(steep), /over 2 tokens costs 2.10 times .*, over 8 9.00 times/);
  assert.match(curveSentence({ ...CPU, milliseconds: CPU.rows.map(() => 5) }), /even a pass over 64 tokens costs only 1.00/);
});

test("a step writes what all outcomes of its guesses come to on average", () => {
  near(expectedTokens({ draft: 4, accept: 0.7, keep: 1 }), 2.7731);
  near(expectedTokens({ draft: 3, accept: 0.8, keep: 0.5 }), 2.184);
  assert.equal(expectedTokens({ draft: 5, accept: 0, keep: 1 }), 1);
  assert.equal(expectedTokens({ draft: 5, accept: 1, keep: 1 }), 6);
});

test("the speed-up and the best draft length follow the machine's own passes", () => {
  near(speedUp(passCost(CPU), { draft: 4, share: 0.05, accept: 0.7, keep: 1 }), 2.0966166176105534);
  near(speedUp(passCost(H200), { draft: 4, share: 0.05, accept: 0.7, keep: 1 }), 2.3058864769903162);
  const best = bestDraft(passCost(CPU), { share: 0.05, accept: 0.7, keep: 1 });
  assert.equal(best.draft, 5); // the highest mark of the chart: with 4 it is 2.097
  near(best.speedup, speedUp(passCost(CPU), { draft: 5, share: 0.05, accept: 0.7, keep: 1 }));
  assert.equal(bestDraft(passCost(CPU), { share: 0, accept: 0.9, keep: 1 }).draft, 8);
  assert.equal(bestDraft(() => 1.249, { share: 0, accept: 0.25, keep: 0 }).draft, 0); // 1.001, which is 1.00
  assert.deepEqual(bestDraft(passCost(CPU), { share: 0.4, accept: 0.3, keep: 1 }), { draft: 0, speedup: 1 });
});

test("the acceptance to break even is where a step writes as many tokens as it costs passes", () => {
  near(breakEven(passCost(CPU), { draft: 4, share: 0.05, keep: 1 }), 0.244606, 1e-6);
  near(breakEven(passCost(H200), { draft: 4, share: 0.05, keep: 1 }), 0.168594, 1e-6);
  assert.equal(breakEven(passCost(H200), { draft: 3, share: 0, keep: 1 }), 0); // its passes over 4 tokens were no slower than over one
  assert.equal(breakEven(passCost(steep), { draft: 3, share: 0, keep: 1 }), null); // c(4) is 4.3, for 4 tokens at most
  assert.equal(breakEven(passCost(CPU), { draft: 4, share: 1, keep: 1 }), null);
});

test("Lookahead's step writes what all outcomes of its n-grams come to, if one step in some guesses well", () => {
  near(tokensPerStep({ alpha: 1 / 2, every: 1, n: 3 }, 2), 35 / 16);
  near(tokensPerStep({ alpha: 1 / 4, every: 1, n: 4 }, 4), 33087487 / 16777216);
  near(tokensPerStep({ alpha: 1 / 4, every: 5, n: 4 }, 4), (4 + 33087487 / 16777216) / 5);
});

test("a window is as fast as its tokens over its pass, which reads window and n-grams", () => {
  near(windowSpeedUp(passCost(steep), { alpha: 1 / 2, every: 1, n: 3 }, 2), 35 / 16 / 9);
  assert.deepEqual(bestWindow(passCost(steep), { alpha: 0.9, every: 1, n: 3 }), { window: 0, speedup: 1 }); // never look ahead there
  assert.ok(Number.isNaN(windowSpeedUp(passCost(CPU), { alpha: 0.9, every: 1, n: 5 }, 32)), "a pass over 256 tokens was not measured");
  assert.ok(bestWindow(passCost(H200), { alpha: 0.9, every: 1, n: 5 }).speedup > 1.5);
});

test("the sentence on windows says of which n-grams it holds, and looks at others where none pays", () => {
  const paper = { alpha: 0.43, every: 3.1, n: 5 };
  assert.match(windowVerdict(passCost(CPU), paper, SPANS), /n-grams of 5 tokens, no window .* With n-grams of 2, W = 1 is 1.13 times as fast\.$/);
  assert.match(windowVerdict(passCost(CPU), { ...paper, n: 2 }, SPANS), /^W = 1 is fastest: 1.13 times/);
  assert.match(windowVerdict(passCost({ ...CPU, rows: [1, 2], milliseconds: [1, 9] }), paper, SPANS), /no window .* Nor is any with n-grams of 2 to 8 tokens\.$/);
});

test("the fit finds the numbers that made the runs, and the error is that of the worst of them", () => {
  const planted = { alpha: 0.61, every: 2.7, n: 5 };
  const runs = [1, 4, 16].map((window) => ({ id: `w${window}`, model: "m", window, n: 5, wrote: [tokensPerStep(planted, window)] }));
  assert.deepEqual(fitted(runs, SPANS), { alpha: 0.61, every: 2.7 });
  near(worstError(planted, runs), 0);
  near(recordedTokens({ ...runs[0], wrote: [1, 4, 2, 1] }), 2);
  near(worstError(planted, [...runs, { ...runs[0], wrote: [2 * tokensPerStep(planted, 1)] }]), 0.5);
});

test("the verdict says not to speculate where no draft is faster", () => {
  const draft = { draft: 4, share: 0.4, accept: 0.3, keep: 1 };
  assert.match(verdict(passCost(CPU), draft), /^Do not speculate here: .* accepted 70% of the time\.$/); // at 0.69 they write 2.721 tokens, and cost 1.123 + 1.6
  assert.match(verdict(passCost(steep), { ...draft, draft: 3, accept: 1, share: 0 }), /^Do not speculate here: .* not even certain guesses would pay\.$/);
  assert.match(verdict(passCost(steep), { ...draft, draft: 9 }), /^Do not speculate here: .* over 10 tokens were not measured\.$/);
  assert.match(verdict(passCost(CPU), { ...draft, share: 0.05, accept: 0.7 }), /^Speculation pays here: 4 guesses a step are 2.10 times .*, and 5 would do as well/);
  assert.match(verdict(passCost(CPU), { ...draft, share: 0.05, accept: 0.7, draft: 5 }), /^Speculation pays here: 5 guesses a step are best: 2.10 times/);
  assert.match(verdict(passCost(CPU), { ...draft, share: 0.05, accept: 0.7, draft: 1 }), /: 1 guess a step is 1.61 times .*, and 5 would be best: 2.10 times/);
  assert.match(verdict(passCost(CPU), { draft: 16, share: 0.1, accept: 0.5, keep: 1 }), /^Speculation pays here, but not with 16 guesses/);
});

test("a run's own steps are replayed, each with its pass and its drafting", () => {
  const run = { fed: [4, 8, 1], wrote: [3, 4, 1], drafting: [0.5, 0.25, 0] };
  const { speedup, costs, between, beyond } = replay(run, { ...steep, milliseconds: [10, 11, 12, 15] }, true);
  assert.deepEqual(costs.map((each) => Number(each.toFixed(6))), [1.7, 1.75, 1]);
  near(speedup, 8 / 4.45);
  assert.deepEqual([between, beyond], [0, 0]);
  near(replay(run, { ...steep, milliseconds: [10, 11, 12, 15] }, false).speedup, 8 / 3.7);
  near(replay({ fed: [6], wrote: [1], drafting: null }, steep, false).speedup, 1 / 6.65); // between 4.3 and 9, and slower than one token a pass
  assert.equal(replay({ fed: [6], wrote: [1], drafting: null }, steep, false).between, 1);
});

test("what was not measured is not projected, with the reason", () => {
  const run = { fed: [4, 9], wrote: [1, 1], drafting: null };
  assert.ok(Number.isNaN(replay(run, steep, false).speedup));
  assert.match(lacking(run, steep, false), /1 of 2 steps read more than the 8 tokens/);
  assert.match(lacking({ ...run, fed: [4, 8] }, steep, true), /drafting costs is unknown/);
  assert.equal(lacking({ ...run, fed: [4, 8] }, steep, false), "");
  assert.match(lacking({ fed: [], wrote: [], drafting: [] }, steep, true), /single step/);
});

test("the steps of the run in the player leave its first one out", () => {
  const steps = [[20, [5, 6], 9], [5, [7], 4], [3, [8, 9], 1]].map(([fed, emitted, draft]) => ({ fed, emitted, ms: [draft, 1, 1, 1, 12] }));
  assert.deepEqual(stepsOf(steps, { model: "", recorded: "", milliseconds: 8 }), { fed: [5, 3], wrote: [1, 2], drafting: [0.5, 0.125] });
  assert.equal(stepsOf(steps, undefined).drafting, null);
});

test("the typical error is the median of what projections are off by", () => {
  const pairs = [[2, 1], [1.1, 1], [0.9, 1], [5, null], [NaN, 1]].map(([projected, measured]) => ({ projected, measured }));
  near(typicalError(pairs), 0.1, 1e-9);
  near(typicalError(pairs.slice(0, 2)), 0.55, 1e-9);
  assert.equal(typicalError(pairs.slice(3)), null);
});

const shape = (id) => SHAPES.find((each) => each.id === id), device = (id) => DEVICES.find((each) => each.id === id);
const LOAD = { bits: 16, context: 1024, batch: 1 };

test("shapes have the weights and caches of the models that were measured", () => {
  for (const { shape: id, parameters: counted } of fileOf("nvidia-h200").shapes) {
    const { layers, width } = shape(id);
    assert.equal(parameters(shape(id)) - (2 * layers + 1) * width, counted); // the file counts no norms
  }
  assert.equal(tokenBytes(shape("135M")), 23040); // as records of SmolLM2 have it
  assert.equal(Math.round(parameters(shape("70B")) / 1e8), 695);
});

test("a pass takes the longer of reading and computing", () => {
  near(passSeconds(device("h200"), shape("7B"), LOAD, 1), 0.0029907643733333334, 1e-15); // reads 14.4 GB
  near(passSeconds(device("h200"), shape("7B"), { ...LOAD, batch: 256 }, 5), 0.019103983878988876, 1e-15); // computes
  near(rooflineCost(device("h200"), shape("7B"), { ...LOAD, context: 0 })(512), 2.5318154812303506);
  near(passSeconds(device("h200"), shape("7B"), { ...LOAD, bits: 4, context: 0 }, 1), (7110660096 / 2 + 131072) / 4.8e12, 1e-15);
});

test("the batch from which on a draft loses is found, where there is one", () => {
  const weak = { draft: 2, share: 0.1, accept: 0.3, keep: 1 }, strong = { draft: 4, share: 0.05, accept: 0.7, keep: 1 };
  assert.equal(losesFrom(device("h200"), shape("7B"), { ...LOAD, context: 0 }, weak), 128);
  assert.equal(losesFrom(device("h200"), shape("7B"), LOAD, strong), null);
  assert.equal(losesFrom(device("h200"), shape("7B"), LOAD, { ...weak, accept: 0 }), 1);
  const said = (batch, drafting) => rooflineSentences(device("h200"), shape("7B"), { ...LOAD, context: 0, batch }, drafting).join(" ");
  assert.match(said(128, weak), /computing limits it. Do not speculate here: .* 0.67 times as fast. This draft loses from a batch of 128 on/);
  assert.match(said(1, { draft: 3, share: 0.2, accept: 0.3, keep: 1 }), /decoding 0.89 times as fast; 1 guess a step would be best: 1.08 times/); // 1.417 / 1.6 and 1.3 / 1.2
  assert.match(said(1, strong), /memory limits it. The draft above makes decoding 2.31 times as fast/);
});

test("a model that does not fit is named with what it takes", () => {
  assert.ok(!fits(device("l4"), shape("70B"), LOAD) && fits(device("h200"), shape("70B"), LOAD));
  assert.match(rooflineSentences(device("l4"), shape("70B"), LOAD, { draft: 4, share: 0, accept: 0.7, keep: 1 }).at(-1), /139 GB, more than the 24 GB/);
});

const KNOWN = [[CPU, H200], ["smollm2-prime-autoregressive", "lookahead"].map((id) => ({ id, family: "", name: id }))];
const asked = (query) => choicesIn(new URLSearchParams(query), ...KNOWN);

test("choices become an address and are found again in it", () => {
  const { choices, problems } = asked(`curve=${H200.id}&draft=7&share=0.25&accept=0.9&keep=0.5&runs=lookahead&drafting=none&gpu=l4&model=13B&bits=8&context=4096&batch=32&with=`);
  assert.deepEqual(problems, []);
  assert.deepEqual([choices.curve, choices.draft, choices.share, choices.bits, choices.batch, choices.with], [H200.id, 7, 0.25, 8, 32, []]);
  assert.deepEqual(asked(queryOf(choices, ...KNOWN)).choices, choices);
  assert.equal(queryOf(asked("").choices, ...KNOWN), "screen=cost");
  assert.deepEqual(asked("").choices.with, [H200.id]); // a machine unlike the first
});

test("what was measured here comes first", () => {
  assert.equal(choicesIn(new URLSearchParams(), [CPU, { ...H200, here: true }], []).choices.curve, H200.id);
});

test("a hostile address gets sentences and the page's own values", () => {
  const hostile = "curve=../../etc&with=x,y&draft=1e9&share=-1&accept=0x10&keep=NaN&runs=<script>&drafting=all&gpu=h900&model=__proto__&bits=3&context=1&batch=constructor";
  const { choices, problems } = asked(hostile);
  assert.deepEqual(choices, { ...asked("").choices, with: [] });
  assert.equal(problems.length, 13);
  for (const sentence of problems) assert.match(sentence, /^'[^<>]* in the address (was|were) left out: [^<>]*\.$/);
  assert.deepEqual(asked("screen=cost&__theme=dark&utm_source=x&foo=1&draft=2&bar=").problems,
    ["'foo', 'bar' in the address were left out: this page has no such settings."]);
  assert.equal(asked("draft=999").choices.draft, 4);
  assert.equal(asked("draft=17").problems.length, 1);
  assert.equal(asked("accept=1.00").choices.accept, 1);
});

test("ticks are round and few", () => {
  assert.deepEqual(roundTicks(0, 6.28).map(([, text]) => text), ["0", "2", "4", "6"]);
  assert.deepEqual(roundTicks(0, 1.5).map(([, text]) => text), ["0.0", "0.5", "1.0", "1.5"]);
});

const TREES = { k: [1, 2], w: [1, 4], costs: [[1.1, 1.5], [1.25, 3]], noisy: [[2, 4]] };
const WRITTEN = { k: [1, 2, 4], w: [1, 2, 4], tokens_per_step: [[1.2, 1.3, 1.5], [1.5, 1.6, 1.8], [1.6, 1.7, 1.9]] };

test("a tree's speed-up is what its steps write for what their pass costs", () => {
  const [[first, long], [wide, large]] = cellsOf(TREES, WRITTEN);
  near(first.speed, 1.2 / 1.1);
  near(long.speed, 1); // w of 4 is the third of what was counted
  near(wide.speed, 1.2);
  near(large.speed, 0.6);
  assert.deepEqual([first, long, wide, large].map(({ noisy }) => noisy), [false, false, false, true]);
});

test("where no trees were measured for the chosen passes, those of others are shown", () => {
  const [none, small, large] = [{ trees: null }, { trees: TREES }, { trees: TREES }];
  assert.equal(curveWithTrees([large], [none, small, large]), large);
  assert.equal(curveWithTrees([none, large], [none, small, large]), large); // one that is compared
  assert.equal(curveWithTrees([none], [none, small, large]), small);
  assert.equal(curveWithTrees([none], [none]), undefined);
});

test("the sentences on trees name the best, or say that none pays", () => {
  const [best, largest] = treeSentences(cellsOf(TREES, WRITTEN), CPU);
  assert.match(best, /: k 2, w 1 pays most: 1.50 tokens per step at 1.25 times the cost, 1.20× autoregressive/);
  assert.match(largest, /largest tree, k 2, w 4: 1.80 tokens per step at 3.00 times the cost, 0.60×/);
  const dear = { ...TREES, costs: [[2, 3], [4, 5]] };
  assert.match(treeSentences(cellsOf(dear, WRITTEN), CPU)[0], /no tree pays here. The best, k 1, w 1: .* 0.60×/);
  assert.match(treeSentences(cellsOf(TREES, undefined), CPU)[0], /k 2, w 4, costs 3.00 passes .* was not counted/);
});

const SIZES = { sizes: [1, 4, 8, 64], tokens_per_step: [1.5, 2, 2.2, 3], expected: [1.6, 2.1, 2.4, 3.2] };

test("a tree of heads pays by what its pass and the heads cost", () => {
  const flat = { ...CPU, rows: [1, 2, 8, 32], milliseconds: [10, 10, 16, 40], heads: 0.1 };
  const trees = headTrees(flat, SIZES);
  assert.deepEqual(trees.map(({ size, measured }) => [size, measured]), [[1, true], [4, false], [8, false]]); // 65 tokens were not timed
  near(trees[0].speed, 1.5 / 1.1);
  near(trees[1].cost, 1.3 + 0.1); // 5 tokens: half-way between 2 and 8
  const [best, largest] = headSentences(trees, flat, "smollm2");
  assert.match(best, /: a tree of 4 guesses pays most: 2.00 tokens per step at 1.40 times the cost, 1.43×/);
  assert.match(largest, /largest tree counted, 8 guesses: 2.20 tokens per step at 1.80 times the cost, 1.22×/);
  near(headTrees({ ...flat, heads: null }, SIZES)[0].speed, 1.5);
  assert.match(headSentences(headTrees(steep, SIZES), steep, "smollm2")[0], /no tree pays here. The best, a tree of 1 guess: .* 0.71×/);
  assert.match(headSentences(trees, { ...flat, model: "7B" }, "smollm2")[0], /, if heads write what SmolLM2 135M's do: a tree of 4 guesses/);
});
