// The few things last used, at most `size` of them.
export class LruCache {
  constructor(size) {
    this.size = size;
    this.entries = new Map();
  }

  get(key, make) {
    let value = this.entries.get(key);
    if (value === undefined) value = make();
    else this.entries.delete(key);
    this.entries.set(key, value);
    if (this.entries.size > this.size) this.entries.delete(this.entries.keys().next().value);
    return value;
  }

  clear() {
    this.entries.clear();
  }
}
