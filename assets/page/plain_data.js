// The data of a page of plain files. They are scripts, since a page that is opened as a file may not fetch anything: each
// passes one compressed text under its name.
import { el } from "../player/dom/elements.js";

/** @type {Map<string, (text: string) => void>} those who wait for a text, by its name */
const waiting = new Map();
/** @type {Map<string, Promise<any>>} */
const asked = new Map();

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"; // as Python's b85encode
const VALUES = new Uint8Array(128).map((_, code) => Math.max(0, DIGITS.indexOf(String.fromCharCode(code))));

/** @param {string} text base 85: five letters for four bytes, where base 64 takes five and a third */
const bytesIn = (text) => {
  const lacks = (5 - text.length % 5) % 5, whole = text + "~".repeat(lacks);
  const bytes = new DataView(new ArrayBuffer(whole.length / 5 * 4));
  for (let at = 0; at < whole.length; at += 5) {
    let word = 0;
    for (let digit = 0; digit < 5; digit += 1) word = word * 85 + VALUES[whole.charCodeAt(at + digit)];
    bytes.setUint32(at / 5 * 4, word);
  }
  return new Uint8Array(bytes.buffer, 0, bytes.byteLength - lacks);
};

/** @param {string} packed gzip in base 85 */
const unpacked = (packed) =>
  new Response(new Blob([bytesIn(packed)]).stream().pipeThrough(new DecompressionStream("gzip"))).json();

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
