// Numbers and other values in words.


const units = [["B", 1e9], ["M", 1e6], ["k", 1e3]];

export const compact = (number) => {
  for (const [unit, size] of units) if (number >= size) return `${+(number / size).toPrecision(3)} ${unit}`;
  return String(number);
};

export const probability = (p) => (p >= 0.001 || p === 0 ? p.toFixed(3) : p.toExponential(1));

export const plural = (count, word, many = `${word}s`) => `${count} ${count === 1 ? word : many}`;

export const milliseconds = (ms) => (ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`);

const FINISHES = {
  length: "ended at its length", end_of_text: "ended with the end of the text", stop: "ended at a stop text",
  cancelled: "stopped by the visitor", time: "stopped at its time limit", error: "failed",
  torn: "was torn off",
};

export const finishWords = (finish) => (Object.hasOwn(FINISHES, finish) ? FINISHES[finish] : String(finish ?? "ended"));

// "{a} sees {b}" with the values put in; unknown places stay empty.
export const fillTemplate = (template, values) =>
  String(template).replace(/\{(\w+)\}/g, (_, name) => (Object.hasOwn(values, name) ? String(values[name]) : ""));

// "window:2,5" in words, by the templates that the stream brings.
export const sourceWords = (record, source) => {
  const [kind, ...rest] = source.split(":");
  const words = record.play.words?.sources ?? {};
  const template = Object.hasOwn(words, kind) ? words[kind] : null;
  const numbers = rest.length ? rest.join(":").split(",") : [];
  if (!template || (template.match(/\{/g) ?? []).length !== numbers.length) return source;
  return fillTemplate(template, numbers);
};
