// A view as a table, as a picture, on the full screen; and the address of what is on the screen.
{
  const S = (globalThis.Specscope ??= {});
  const MOST_ROWS = 600;

  // One column of a view's table: "nodes.token" of the step, or "data.0.x" of the figure.
  const column = (player, view, where) => {
    const { record, state } = player;
    const [from, ...way] = where.split(".");
    const judged = S.judged(state);
    if (from === "nodes") return nodeColumn(player, record.nodes(state.step), way[0], judged);
    const figure = player.frames.figure(view, state.step, state.phase, player.theme, state.pin);
    const values = way.reduce((value, name) => value?.[name], figure.data);
    return Array.from(values ?? [], (value) => (typeof value === "string" ? S.unescape(value) : value));
  };

  const nodeColumn = (player, nodes, name, judged) => {
    const { record } = player;
    if (!nodes) return [];
    if (name === "number") return Array.from(nodes.token, (_, node) => node);
    const values = Array.from(nodes[name] ?? []);
    if (name === "token" || name === "choice") return values.map((id) => record.visible(id));
    if (name === "fate") return values.map((code) => player.fate(S.seenFate(code, judged)).label);
    if (name === "source") return values.map((source) => S.sourceWords(record, source));
    return values;
  };

  const cell = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (typeof value === "number") return String(Math.round(value * 1e4) / 1e4);
    return typeof value === "object" ? Array.from(value).join(" ") : String(value);
  };

  S.tableOf = (player, { view, content }) => {
    if (view.kind === "numbers") return content.table();
    const columns = view.columns.map(([, where]) => column(player, view, where));
    const count = Math.max(0, ...columns.map((values) => values.length));
    const rows = Array.from({ length: Math.min(MOST_ROWS, count) }, (_, i) => columns.map((values) => cell(values[i])));
    const pins = view.columns.length && view.columns.every(([, where]) => where.startsWith("nodes."));
    return { headings: view.columns.map(([heading]) => heading), rows, pins, count };
  };

  S.showTable = (player, card) => {
    const { headings, rows, pins, count } = S.tableOf(player, card);
    const body = rows.map((row, i) => S.el("tr", {}, ...row.map((text, j) => {
      if (j > 0 || !pins) return S.el("td", {}, text);
      const pin = () => {
        box.close();
        player.pin(player.state.step, i);
      };
      return S.el("td", {}, S.el("button", {
        type: "button", class: "ss-button ss-worded", title: "Pin this token", onclick: pin,
      }, text));
    })));
    const title = `${card.view.label}, step ${player.state.step}`;
    const box = S.dialog(title, S.el("div", { class: "ss-scroll", tabindex: 0, role: "region", "aria-label": title },
      S.el("table", { class: "ss-table" },
        S.el("thead", {}, S.el("tr", {}, ...headings.map((heading) => S.el("th", { scope: "col" }, heading)))),
        S.el("tbody", {}, ...body))));
    const { thin } = player.record.steps[player.state.step] ?? {};
    const none = thin ? "This step is not loaded yet." : "This step has nothing here.";
    if (!rows.length) box.append(S.el("p", { class: "ss-quiet" }, none));
    if (count > rows.length) box.append(S.el("p", { class: "ss-quiet" }, `The first ${rows.length} of ${count} rows.`));
    box.addEventListener("close", () => box.remove());
    player.root.append(box);
    box.showModal();
  };

  S.saveImage = async (player, plot, format) => {
    if (plot.drawn === null || plot.box.classList.contains("ss-past")) return;
    const address = await plot.image(format);
    const name = `${player.record.play.header.method}-${plot.view.name}-step-${player.state.step}.${format}`;
    S.el("a", { href: address, download: name }).click();
  };

  // Where a browser has no full screen for elements, the card fills the window instead.
  S.fullScreen = (node) => {
    const filled = node.classList.contains("ss-filled");
    if (document.fullscreenElement) return document.exitFullscreen();
    if (filled || !node.requestFullscreen) return node.classList.toggle("ss-filled", !filled);
    const left = () => {
      if (document.fullscreenElement === node) return;
      node.classList.remove("ss-filled");
      document.removeEventListener("fullscreenchange", left);
    };
    node.classList.add("ss-filled");
    document.addEventListener("fullscreenchange", left);
    return node.requestFullscreen().catch(() => document.removeEventListener("fullscreenchange", left));
  };

  // The address goes to the clipboard, or where that is closed into a field to copy from.
  S.copyLink = async (player) => {
    const address = String(await player.on.link(player.place()));
    try {
      await navigator.clipboard.writeText(address);
      player.tell("The link is copied.");
    } catch {
      const field = S.el("input", { class: "ss-select", readonly: true, value: address, "aria-label": "Link" });
      const box = S.dialog("Copy this link", field);
      box.addEventListener("close", () => box.remove());
      player.root.append(box);
      box.showModal();
      field.select();
    }
  };
}
