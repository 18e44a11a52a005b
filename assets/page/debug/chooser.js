// The menus of the run folder, of its method, and of the folder to compare with.
import { el, write } from "../../player/dom/elements.js";
import { count } from "./table.js";

/** @import { Facts, Opened } from "./types.d.ts" */

const EVERY = "*"; // all methods, as an address says it
const STATUS_MS = 3000;

/**
 * A labelled menu.
 * @param {string} label
 * @param {(value: string) => void} change
 */
const menu = (label, change) => {
  const select = el("select", { class: "ss-select", "aria-label": label });
  select.addEventListener("change", () => change(select.value));
  return { select, node: el("label", { class: "app-debug-field" }, el("span", {}, label), select) };
};

/**
 * @param {HTMLSelectElement} select
 * @param {[value: string, label: string][]} choices
 * @param {string} chosen
 */
const offer = (select, choices, chosen) => {
  const known = choices.some(([value]) => value === chosen) || !chosen ? choices : [...choices, [chosen, chosen]];
  select.replaceChildren(...known.map(([value, label]) => el("option", { value, selected: value === chosen }, label)));
};

/**
 * @param {Facts | undefined} facts
 * @param {string} method
 * @returns {[value: string, label: string][]}
 */
const settingsOf = (facts, method) => {
  const settings = new Set(method ? (facts?.methods[method] ?? []) : Object.values(facts?.methods ?? {}).flat());
  return [["", "All settings"], ...[...settings].map((name) => /** @type {[string, string]} */ ([name, name]))];
};

/** @param {Facts | undefined} facts @returns {[value: string, label: string][]} */
const methodsOf = (facts) => Object.keys(facts?.methods ?? {}).map((name) => [name, facts?.labels[name] ?? name]);

/**
 * Return the setting that is shown first: numbers of mixed settings belong to none of them.
 * @param {Facts | undefined} facts
 * @param {string} method
 */
const firstSetting = (facts, method) => facts?.methods[method]?.[0] ?? "";

export class Chooser {
  /**
   * @param {(fields: { [name: string]: string }) => void} go
   * @param {(files: File[]) => void} bring
   * @param {(form: string) => void} download
   * @param {() => void} copy
   */
  constructor(go, bring, download, copy) {
    this.folder = menu("Run folder", (folder) => go({ ...FRESH, folder }));
    this.method = menu("Method", (method) => go({ "f.method": method, "f.setting": firstSetting(this.facts, method), sql: "" }));
    this.setting = menu("Setting", (setting) => go({ "f.setting": setting, sql: "" }));
    this.against = menu("Compare with", (against) => go({ against, "b.method": "", "b.setting": "" }));
    this.otherMethod = menu("Its method", (method) => go({ "b.method": method, "b.setting": firstSetting(this.otherFacts, method) }));
    this.otherSetting = menu("Its setting", (setting) => go({ "b.setting": setting }));
    this.file = el("input", { type: "file", multiple: true, hidden: true, "aria-label": "Run folder or record files" });
    this.file.addEventListener("change", () => {
      bring([...(this.file.files ?? [])]);
      this.file.value = "";
    });
    this.words = el("p", { class: "ss-quiet app-debug-facts" });
    this.status = el("span", { class: "ss-quiet app-debug-status", role: "status" });
    /** @type {Facts | undefined} */
    this.facts = undefined;
    /** @type {Facts | undefined} of the folder that is compared with */
    this.otherFacts = undefined;
    const tool = (/** @type {string} */ words, /** @type {() => void} */ act) =>
      el("button", { type: "button", class: "app-button", onclick: act }, words);
    this.node = el("header", { class: "app-debug-head" },
      el("div", { class: "app-debug-fields" }, this.folder.node, this.method.node, this.setting.node,
        el("span", { class: "app-debug-gap" }), this.against.node, this.otherMethod.node, this.otherSetting.node),
      this.words, el("div", { class: "app-tools" }, this.status, tool("Open files", () => this.file.click()), tool("Copy link", copy),
        tool("Steps as CSV", () => download("csv")), tool("Steps as Parquet", () => download("parquet")), this.file));
  }

  /** @param {string} words on what was done, for a moment */
  announce(words) {
    write(this.status, words);
    setTimeout(() => write(this.status, ""), STATUS_MS);
  }

  /** @param {Opened} opened */
  show(opened) {
    const { folders, folder = "", facts, against = "", against_facts: other, filters = {}, edited } = opened;
    const named = (/** @type {string} */ id, /** @type {Facts | undefined} */ known) =>
      /** @type {[string, string][]} */ (folders.some((each) => each.id === id) || !id ? [] : [[id, known?.name ?? "Your files"]]);
    const listed = /** @type {[string, string][]} */ (folders.map(({ id, name }) => [id, name]));
    offer(this.folder.select, [...listed, ...named(folder, facts)], folder);
    offer(this.against.select, [["", "Nothing"], ...listed, ...named(folder, facts), ...named(against, other)], against);
    const method = String(filters.method ?? "");
    offer(this.method.select, [[EVERY, edited ? "As the query says" : "All methods"], ...methodsOf(facts)], method || EVERY);
    offer(this.setting.select, settingsOf(facts, method), String(filters.setting ?? ""));
    const otherMethod = opened.against_method === EVERY ? "" : (opened.against_method ?? "");
    offer(this.otherMethod.select, [[EVERY, "All methods"], ...methodsOf(other)], otherMethod || EVERY);
    offer(this.otherSetting.select, settingsOf(other, otherMethod), opened.against_setting ?? "");
    this.facts = facts;
    this.otherFacts = other;
    this.setting.node.hidden = Boolean(edited); // of what method?
    for (const { node } of [this.otherMethod, this.otherSetting]) node.hidden = !against || Boolean(edited);
    write(this.words, facts ? describe(facts) : "");
  }
}

/** The fields that are cleared for another folder. */
const FRESH = { "f.method": "", "f.setting": "", "f.category": "", "f.question": "", sql: "", chart: "" };

/** @param {Facts} facts */
const describe = ({ source, created, imported, finished, runs, steps, nodes, missing }) => {
  const lacking = Object.keys(missing).length;
  return [count(runs, "run"), count(steps, "step"), count(nodes, "node"), `recorded by ${source}`,
    `${imported ? "imported " : ""}${created.slice(0, 10)}`,
    finished ? "" : "not finished", lacking ? `${count(lacking, "column")} not known` : ""].filter(Boolean).join(" · ");
};
