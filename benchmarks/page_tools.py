"""Opens the page, and drives it from inside the browser while it is measured."""

from __future__ import annotations

from typing import Any

from tools.browser import PLAYER
from tools.page import Page

STAGE = "document.querySelector('.ss-stage .ss-piece')?.offsetParent"  # drawn, and seen
SHOWN = "globalThis.SpecscopeApp?.shown.viewer?.player.root.dataset.at && document.querySelector('.ss-token')"
OPENED = "document.querySelector('.ss-opening .ss-token')"
TOOLS = f"""() => {{
  const player = {PLAYER};
  const frame = () => new Promise(requestAnimationFrame);
  const moment = (ms) => new Promise((done) => setTimeout(done, ms)); // no frame, which would be drawn for nothing
  const painted = async () => {{ await frame(); await new Promise((done) => setTimeout(done, 0)); }};
  const settled = async () => {{ do await painted(); while (player.cards.waiting); }};
  globalThis.bench = {{
    settled,
    seek: async (step) => {{
      const begin = performance.now();
      player.seek(step);
      await painted();
      return performance.now() - begin;
    }},
    scrub: async (steps) => {{
      const took = [];
      for (const step of steps) took.push(await bench.seek(step));
      return took;
    }},
    play: async (seconds) => {{
      player.seek(0);
      await settled();
      const seen = new Set();
      player.change({{ speed: "8", substeps: false, playing: true }});
      const begin = performance.now();
      while (performance.now() - begin < 1000 * seconds && player.state.playing) {{
        await frame();
        seen.add(player.root.dataset.at);
      }}
      player.change({{ playing: false }});
      return (seen.size - 1) / ((performance.now() - begin) / 1000);
    }},
    frames: async (seconds) => {{
      player.seek(0);
      player.change({{ speed: "1", substeps: true, playing: true }});
      const begin = performance.now();
      let drawn = 0, before = begin, longest = 0;
      while (performance.now() - begin < 1000 * seconds && player.state.playing) {{
        await frame();
        const now = performance.now();
        [drawn, longest, before] = [drawn + 1, Math.max(longest, now - before), now];
      }}
      player.change({{ playing: false }});
      return [drawn / ((performance.now() - begin) / 1000), longest];
    }},
    live: async () => {{
      const before = player.record.version;
      const begin = performance.now();
      document.querySelector("#run-go").click();
      const waiting = () => player.record.version === before || player.root.dataset.at.startsWith("-");
      while (waiting() || player.record.last < 0) await moment(5);
      const first = performance.now() - begin;
      const runs = () => SpecscopeApp.shown.viewer.facts.title || !player.record.check;
      while (runs()) await moment(100); // in here: a question from outside would wake processes while the run goes on
      return [first, player.record.end.summary.tokens_per_second];
    }},
  }};
}}"""


def open_page(chromium: Any, server: Page, *, height: int) -> Any:
    """Open the page with an empty cache."""
    page = chromium.new_context(viewport={"width": 1280, "height": height}).new_page()
    page.set_default_timeout(120_000)
    page.goto(server.address, wait_until="commit")
    return page
