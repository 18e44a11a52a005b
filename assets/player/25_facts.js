// What the transport asks of a run: where guesses were rejected, where many were accepted, where a step branched.
{
  const S = (globalThis.Specscope ??= {});

  S.isRejection = (step) => step.emitted_fates.includes(S.FATE.CORRECTION);
  S.isHit = (step) => step.accepted > 0;
  S.isBranch = (step) => step.branch;

  // "Big" is measured by the run itself: three quarters of its best step, and at least two guesses.
  S.bigAcceptance = (record) => {
    const best = Math.max(0, ...record.steps.map((step) => step.accepted));
    return Math.max(2, Math.ceil(best * 0.75));
  };

  // Every step's line tells what these ask for, a thin one too.
  S.JUMPS = {
    rejection: { label: "rejection", test: S.isRejection },
    hit: { label: "hit", test: S.isHit },
    branch: { label: "branch", test: S.isBranch },
  };

  // The nearest step on that side for which the jump's test holds, or -1.
  S.findStep = (record, from, direction, jump) => {
    for (let k = from + direction; k >= 0 && k <= record.last; k += direction) {
      if (S.JUMPS[jump].test(record.steps[k])) return k;
    }
    return -1;
  };

  // How many nodes of each fate a step has.
  S.fateCounts = (nodes, judged) => {
    const counts = new Map();
    for (const code of nodes.fate) {
      const fate = S.seenFate(code, judged);
      counts.set(fate, (counts.get(fate) ?? 0) + 1);
    }
    return counts;
  };

  const units = [["B", 1e9], ["M", 1e6], ["k", 1e3]];
  S.compact = (number) => {
    for (const [unit, size] of units) if (number >= size) return `${+(number / size).toPrecision(3)} ${unit}`;
    return String(number);
  };

  S.probability = (p) => (p >= 0.001 || p === 0 ? p.toFixed(3) : p.toExponential(1));

  S.plural = (count, word, many = `${word}s`) => `${count} ${count === 1 ? word : many}`;

  S.milliseconds = (ms) => (ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`);

  const FINISHES = {
    length: "ended at its length", end_of_text: "ended with the end of the text", stop: "ended at a stop text",
    cancelled: "stopped by the visitor", time: "stopped at its time limit", error: "failed",
    torn: "was torn off",
  };
  S.finishWords = (finish) => (Object.hasOwn(FINISHES, finish) ? FINISHES[finish] : String(finish ?? "ended"));

  // "{a} sees {b}" with the values put in; unknown places stay empty.
  S.fill = (template, values) =>
    String(template).replace(/\{(\w+)\}/g, (_, name) => (Object.hasOwn(values, name) ? String(values[name]) : ""));
}
