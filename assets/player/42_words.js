// The words in a chart's cells. Plotly styles every text twice at every drawing, which took an eighth of a step's time;
// these are moved and rewritten in place. Pictures that are saved, and figures elsewhere, have plotly's own.
{
  const S = (globalThis.Specscope ??= {});

  S.Words = class {
    constructor(plot) {
      this.plot = plot;
      this.svg = S.svg("svg", { class: "ss-in-cells", "aria-hidden": "true" });
      this.taken = [];
    }

    // The traces without the words that are drawn here.
    take(data) {
      this.taken = data.filter(inCells);
      return data.map((trace) => (inCells(trace) ? { ...trace, mode: "markers", text: null } : trace));
    }

    draw() {
      let used = 0;
      for (const trace of this.taken) used = this.drawTrace(trace, used);
      while (this.svg.children.length > used) this.svg.lastChild.remove();
    }

    drawTrace(trace, used) {
      const [x, y] = ["x", "y"].map((side) => this.plot.gd._fullLayout[S.axisName(trace[`${side}axis`] ?? side)]);
      const { color, size } = trace.textfont;
      for (let i = 0; i < trace.text.length; i += 1) {
        const left = x._offset + x.d2p(trace.x[i]);
        const middle = y._offset + y.d2p(trace.y[i]);
        if (!trace.text[i] || !Number.isFinite(left) || !Number.isFinite(middle)) continue;
        const node = this.svg.children[used] ?? this.svg.appendChild(S.svg("text", { dy: ".35em" }));
        used += 1;
        set(node, "x", left.toFixed(1));
        set(node, "y", middle.toFixed(1));
        set(node, "fill", color);
        set(node, "font-size", String(size));
        S.write(node, S.unescape(trace.text[i]));
      }
      return used;
    }

    clear() {
      this.taken = [];
      this.svg.replaceChildren();
    }
  };

  // Words in the middle of their markers, all alike: others are left to plotly, which knows where they go.
  const inCells = (trace) =>
    trace.mode === "markers+text" && trace.visible !== false && Array.isArray(trace.text) && !trace.texttemplate &&
    trace.textposition === "middle center" && typeof trace.textfont?.color === "string" && !trace.textfont.style;

  const set = (node, name, value) => {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  };
}
