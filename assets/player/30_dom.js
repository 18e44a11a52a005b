// Small makers of elements. Text reaches the page as text nodes only; no markup is ever parsed.
{
  const S = (globalThis.Specscope ??= {});
  const SVG = "http://www.w3.org/2000/svg";

  const build = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
    return node;
  };

  S.el = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
  S.svg = (tag, attributes = {}, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

  const ICONS = {
    first: "M4 4v12 M15 4L7 10l8 6z",
    back: "M13 4l-7 6 7 6z",
    play: "M6 3l11 7-11 7z",
    pause: "M6 4v12 M13 4v12",
    forward: "M7 4l7 6-7 6z",
    last: "M16 4v12 M5 4l8 6-8 6z",
    table: "M3 4h14v12H3z M3 8h14 M3 12h14 M9 8v8",
    full: "M3 8V3h5 M12 3h5v5 M17 12v5h-5 M8 17H3v-5",
    image: "M3 4h14v12H3z M3 14l4-4 3 3 3-4 4 5",
    vector: "M4 15C7 3 13 17 16 5 M2 15h4 M14 5h4",
    link: "M8 12l4-4 M9 6l2-2a3 3 0 0 1 4 4l-2 2 M11 14l-2 2a3 3 0 0 1-4-4l2-2",
    close: "M5 5l10 10 M15 5L5 15",
    more: "M4 10h.01 M10 10h.01 M16 10h.01",
    live: "M10 10m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
    restart: "M4 10a6 6 0 1 0 2-4.5 M4 3v4h4",
  };
  const SOLID = new Set(["first", "back", "play", "forward", "last", "live"]);

  S.icon = (name) =>
    S.svg("svg", {
      viewBox: "0 0 20 20", class: SOLID.has(name) ? "ss-icon ss-solid" : "ss-icon", "aria-hidden": "true",
    }, S.svg("path", { d: ICONS[name] }));

  // A button that shows an icon and says its words; `text` puts the words on it as well.
  S.button = (icon, label, onclick, { key, text, ...attributes } = {}) => {
    const words = key ? `${label} (${key})` : label;
    const content = [icon ? S.icon(icon) : null, text ? S.el("span", {}, text) : null];
    return S.el("button", {
      type: "button", class: "ss-button", "aria-label": words, title: words, onclick, ...attributes,
    }, ...content);
  };

  S.setIcon = (button, name, label) => {
    button.replaceChildren(S.icon(name));
    button.setAttribute("aria-label", label);
    button.title = label;
  };

  S.write = (node, text) => {
    if (node.textContent !== text) node.textContent = text;
  };

  S.show = (node, wanted) => {
    if (node.hidden === wanted) node.hidden = !wanted;
  };

  S.dialog = (title, ...children) => {
    const box = S.el("dialog", { class: "ss-dialog", "aria-label": title });
    const close = S.button("close", "Close", () => box.close(), { key: "Esc" });
    box.append(S.el("div", { class: "ss-dialog-head" }, S.el("h2", {}, title), close), ...children);
    box.addEventListener("click", (event) => event.target === box && box.close());
    box.addEventListener("keydown", (event) => event.stopPropagation());
    return box;
  };

  // A tooltip in words, for the pointer and for the keyboard.
  S.explained = (node, player, words) => {
    const say = (event) => player.tooltip.words(words(), event);
    node.addEventListener("mouseenter", say);
    node.addEventListener("focus", say);
    node.addEventListener("mouseleave", () => player.tooltip.hide());
    node.addEventListener("blur", () => player.tooltip.hide());
    return node;
  };

  const SYMBOLS = {
    "circle": "M6 6m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "square": "M2 2h8v8H2z", "diamond": "M6 1l5 5-5 5-5-5z",
    "x": "M2 2l8 8M10 2l-8 8", "hash": "M4 1v10M8 1v10M1 4h10M1 8h10",
    "star": "M6 .5l1.6 3.6 3.9.4-2.9 2.6.8 3.9L6 9l-3.4 2 .8-3.9L.5 4.500l3.900-.4z",
  };

  // A marker of a figure, for the legend.
  S.symbol = (name, colour) => {
    const shape = name.replace(/-open(-dot)?$/, "");
    const open = name.includes("-open") || shape === "x" || shape === "hash";
    const mark = S.svg("svg", { viewBox: "0 0 12 12", class: "ss-symbol", "aria-hidden": "true" },
      S.svg("path", { d: SYMBOLS[shape] ?? SYMBOLS.circle }),
      name.endsWith("-dot") ? S.svg("circle", { cx: 6, cy: 6, r: 1.2, class: "ss-dot" }) : null);
    mark.style.setProperty("--fate", colour);
    mark.classList.toggle("ss-open", open);
    return mark;
  };
}
