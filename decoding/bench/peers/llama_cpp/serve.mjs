// Runs a GGUF file with node-llama-cpp: a line of JSON in for every text, one out with its ids and times.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [library, file, threads, context] = process.argv.slice(2);
const say = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");

try {
  const { getLlama, LlamaLogLevel } = await import(pathToFileURL(library).href);
  const maxThreads = Number(threads);
  const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    maxThreads,
    logLevel: LlamaLogLevel.disabled,
  });
  const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 });
  const contextSize = Math.min(Number(context), model.trainContextSize);
  const sequence = (await model.createContext({ contextSize, threads: maxThreads })).getSequence();
  say({ ready: true });

  for await (const line of createInterface({ input: process.stdin })) {
    const { ids, budget, ends } = JSON.parse(line);
    const stop = new Set(ends);
    const answer = { ids: [], seconds: [] };
    await sequence.clearHistory();
    const begin = performance.now();
    for await (const token of sequence.evaluate(ids, { temperature: 0, yieldEogToken: true })) {
      answer.ids.push(token);
      answer.seconds.push((performance.now() - begin) / 1000);
      if (answer.ids.length >= budget || stop.has(token)) break;
    }
    say(answer);
  }
} catch (error) {
  say({ error: error.message });
  process.exit(1);
}
