// Fetches the lines that were not sent at once: thin steps, the alternatives at a step's nodes, and its tables.

/** @import { Player } from "../player.js" */

/** @typedef {"step" | "detail" | "rows"} Asked */

const AGAIN_MS = 4000; // a failed request is not repeated at once
const MOST_DOUBLED = 8; // times that the wait for it doubles

export class Fetcher {
  /** @param {Player} player */
  constructor(player) {
    this.player = player;
    /** @type {Map<string, Promise<void>>} */
    this.asked = new Map();
    /** @type {Map<string, number>} how often what was asked for did not come */
    this.failed = new Map();
  }

  /**
   * Request lines once. A failed request is repeated while its view is shown.
   * @param {Asked} kind
   * @param {number} k
   */
  async ask(kind, k) {
    const { record, source } = this.player;
    const key = `${record.version}/${kind}/${k}`;
    const fetch = source[kind];
    if (!fetch || !(record.live || record.end)) return;
    const asked = this.asked.get(key) ?? this.fetch(key, kind, k, fetch);
    this.asked.set(key, asked);
    await asked;
  }

  /**
   * @param {string} key
   * @param {Asked} kind
   * @param {number} k
   * @param {(k: number) => Promise<string>} fetch
   */
  async fetch(key, kind, k, fetch) {
    const { record } = this.player;
    const { version } = record;
    const gone = () => this.player.destroyed || version !== record.version;
    try {
      const lines = await fetch(k);
      if (gone() || !lines) return;
      record.feed(lines.endsWith("\n") ? lines : `${lines}\n`);
      this.player.change({ [kind === "step" ? "record" : "detail"]: k });
      this.asked.delete(key);
      this.failed.delete(key);
    } catch {
      this.fail(key, k, gone);
    }
  }

  /**
   * @param {string} key
   * @param {number} k
   * @param {() => boolean} gone
   */
  fail(key, k, gone) {
    const { player } = this;
    const before = this.failed.get(key) ?? 0;
    this.failed.set(key, before + 1);
    const again = () => {
      this.asked.delete(key);
      if (!gone()) player.change({ detail: k });
    };
    setTimeout(again, AGAIN_MS * 2 ** Math.min(before, MOST_DOUBLED));
    if (gone()) return;
    player.change({ detail: k }); // the cards say so
    if (!before) player.announce(`Step ${k} could not be fetched: the server may no longer keep this run.`);
  }

  thin() {
    const { record, state } = this.player;
    if (record.steps[state.step]?.thin && !this.passing) this.ask("step", state.step);
  }

  // Whether steps go by as the run takes them: what each lacks would come too late.
  get passing() {
    const { record, state } = this.player;
    return record.live && state.follow;
  }

  // Why the pictures of the thin step on the screen are not there.
  get missing() {
    const { record, state } = this.player;
    if (this.passing) return "The charts of this run's later steps are shown when you choose a step, or when it has ended.";
    if (!record.live && !record.end) return "This step's charts are lost: the run was interrupted before they were stored.";
    if (this.failed.has(`${record.version}/step/${state.step}`)) {
      return "This step could not be fetched. It will be asked for again.";
    }
    return "Fetching this step …";
  }

  /**
   * Return why a table of a step is not there.
   * @param {"detail" | "rows"} kind
   * @param {number} k
   */
  missingTable(kind, k) {
    const { record } = this.player;
    if (!record.live && !record.end) return "This table is lost: the run was interrupted before it was stored.";
    return this.failed.has(`${record.version}/${kind}/${k}`)
      ? "This table could not be fetched. Open it again in a moment." : "Fetching this table …";
  }
}
