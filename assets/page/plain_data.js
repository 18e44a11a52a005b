// Data of a page that is plain files. They are scripts, since a page that is opened as a file may not fetch anything: each
// hands over one text, packed, by its name.
import { el } from "../player/dom/elements.js";

/** @type {Map<string, (text: string) => void>} those who wait for a text, by its name */
const waiting = new Map();
/** @type {Map<string, Promise<any>>} */
const asked = new Map();

/** @param {string} packed gzip in base64 */
const unpacked = (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};

/**
 * @param {string} name
 * @param {string} packed
 */
globalThis.SpecscopeData = (name, packed) => waiting.get(name)?.(packed);

/**
 * Return the JSON of a file in the folder of data; rejects where there is none. Names are those of our own files.
 * @param {string} name
 * @returns {Promise<any>}
 */
export const dataOf = (name) => {
  if (!/^[a-z]+\/[a-z0-9_-]{1,64}$/.test(name)) return Promise.reject(new Error("there is no such file"));
  const before = asked.get(name);
  if (before) return before;
  /** @type {Promise<string>} */
  const text = new Promise((resolve, reject) => {
    waiting.set(name, resolve);
    const src = `data/${name}.js`;
    document.head.append(el("script", { src, onerror: () => reject(new Error("there is no such file")) }));
  });
  const data = text.then(unpacked);
  asked.set(name, data);
  data.catch(() => asked.delete(name)); // another try may find it
  return data;
};
