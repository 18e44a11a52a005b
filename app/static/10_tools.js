// What the page around the player is made of: elements, addresses, lines that grow, files.
"use strict";
{
  const App = (globalThis.SpecscopeApp ??= {});
  const PLACE = ["step", "phase", "view", "node"];
  const { landing, plotly } = document.currentScript?.dataset ?? {};
  const landed = landing ? fetch(landing).then((answer) => (answer.ok ? answer.text() : "")).catch(() => "") : null;
  // The charts' library takes longest to start: it waits until the text of the first run has been painted.
  let charts = false;
  const drawCharts = () => {
    if (charts || !plotly) return;
    charts = true;
    const script = el("script", { src: plotly, onerror: () => { Specscope.noCharts = true; } });
    requestAnimationFrame(() => setTimeout(() => document.head.append(script), 0));
  };
  const QUIET_MS = 4000, LATE_MS = 10_000;
  const HEARD = 300; // of a text's beginning: its first line holds an id of its own

  const el = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };

  // Lines for this page are taken out of a stream; the rest goes to the player as it is.
  const split = (text) => {
    const told = {};
    const rest = text.replace(/^\{"kind":"host",.*\n/gm, (line) => {
      Object.assign(told, JSON.parse(line));
      return "";
    });
    return [told, rest];
  };

  // A text that only grows, or another one: calls back with what is new, and whether all before it is void.
  const growing = (take) => {
    let heard = "";
    return (whole) => {
      const text = String(whole ?? "");
      const grown = heard && text.length >= heard.length && text.startsWith(heard.slice(0, HEARD));
      if (grown && text.length === heard.length) return;
      const tail = grown ? text.slice(heard.length) : text;
      heard = text;
      take(tail, !grown);
    };
  };

  // A stream that breaks says nothing: where lines stay away, the server is asked twice whether more will come.
  const pulse = (lives, lost) => {
    let timer = 0;
    const late = () => new Promise((_, fail) => setTimeout(fail, LATE_MS));
    const wait = (missed) => {
      const mine = (timer = setTimeout(async () => {
        const more = await Promise.race([lives(), late()]).then((answer) => answer?.lives === true, () => false);
        if (mine !== timer) return; // lines came, or none are waited for any more
        if (more || !missed) wait(!more);
        else lost("The connection was lost: this is what came before. Reload the page to start again.");
      }, QUIET_MS));
    };
    return (waits) => {
      clearTimeout(timer);
      timer = 0;
      if (waits) wait(false);
    };
  };

  const asked = () => new URLSearchParams(location.search);

  // Where an address wants to be; the player checks it against the run.
  const placeIn = (query) => {
    const number = (name) => (/^\d{1,6}$/.test(query.get(name) ?? "") ? Number(query.get(name)) : undefined);
    return { step: number("step"), phase: query.get("phase") ?? undefined, view: query.get("view") ?? undefined, node: number("node") };
  };

  const addressOf = (base, place) => {
    const query = new URLSearchParams(base);
    for (const name of PLACE) {
      const value = place?.[name];
      if (value !== null && value !== undefined && value !== -1) query.set(name, String(value));
    }
    const theme = asked().get("__theme");
    if (theme === "dark" || theme === "light") query.set("__theme", theme);
    return `${location.origin}${location.pathname}?${query}`;
  };

  // The address tells of the screen that is seen: what goes on behind it writes nothing.
  const note = (root, base, place) => {
    if (root.offsetParent) history.replaceState(history.state, "", addressOf(base, place));
  };

  // A button that starts something does nothing while that goes on. It keeps the focus, which a disabled one would lose.
  const busy = (name, going) => document.getElementById(name)?.setAttribute("aria-disabled", String(Boolean(going)));

  const base64 = async (blob) => {
    const url = await new Promise((resolve, reject) => {
      const reader = new FileReader();
      reader.addEventListener("load", () => resolve(String(reader.result)));
      reader.addEventListener("error", () => reject(reader.error));
      reader.readAsDataURL(blob);
    });
    return url.slice(url.indexOf(",") + 1);
  };

  const save = ({ name, type, text, bytes }) => {
    const content = bytes === undefined ? text : Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([content], { type }));
    const link = el("a", { href: url, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };

  const FORMS = [
    ["trace", "Trace (JSONL, packed)"], ["html", "Replay as one HTML file"], ["perfetto", "Timeline for Perfetto"],
    ["csv", "Steps as CSV"], ["vllm", "Metrics as vLLM reports them"],
  ];

  Object.assign(App, { el, split, growing, pulse, asked, placeIn, addressOf, note, busy, base64, save, drawCharts, landed, FORMS });
}
