/**
 * The few things last used, at most `size` of them.
 * @template Key
 * @template Kept
 */
export class LruCache {
  /** @param {number} size */
  constructor(size) {
    this.size = size;
    /** @type {Map<Key, Kept>} */
    this.entries = new Map();
  }

  /**
   * @param {Key} key
   * @param {() => Kept} make
   * @returns {Kept}
   */
  get(key, make) {
    let value = this.entries.get(key);
    if (value === undefined) value = make();
    else this.entries.delete(key);
    this.entries.set(key, value);
    if (this.entries.size <= this.size) return value;
    const [oldest] = this.entries.keys();
    this.entries.delete(oldest);
    return value;
  }

  /** @param {Key} key */
  delete(key) {
    this.entries.delete(key);
  }

  clear() {
    this.entries.clear();
  }
}
