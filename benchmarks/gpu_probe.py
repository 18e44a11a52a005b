"""Profile a replayed pass: the number of its kernels, and the slowest ones."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch

from decoding.model.decoder import Decoder

from .measure import table

_REPLAYS, _LONGEST = 3, 15


def probe(
    decoder: Decoder, context: int, device: str, rows: tuple[int, ...] = (1, 8, 64)
) -> tuple[str, dict[str, Any]]:
    """Profile replays of passes over each of `rows` after `context` tokens."""
    kind = torch.profiler.ProfilerActivity.CUDA if device == "cuda" else torch.profiler.ProfilerActivity.CPU
    texts, figures = [], {}
    session = decoder.open(context + 256, 512)
    session.reset(1)
    for start in range(0, context, 512):
        count = min(512, context - start)
        session.read([3] * count, tuple(range(-1, count - 1)), skip=count)
        session.commit(range(count))
    for count in rows:
        tokens, parents = [5] * count, tuple(range(-1, count - 1))
        for _ in range(3):  # as usual, captured, replayed
            session.read(tokens, parents)
        with torch.profiler.profile(activities=[kind]) as profile:
            for _ in range(_REPLAYS):
                session.read(tokens, parents)
            if device == "cuda":
                torch.cuda.synchronize()
        times = defaultdict[str, list[float]](list)
        for event in profile.events():
            if event.device_type.name == kind.name:
                times[event.name].append(event.device_time if device == "cuda" else event.cpu_time)
        kernels = sum(map(len, times.values())) / _REPLAYS
        total = sum(map(sum, times.values())) / _REPLAYS
        lines = [["kernel", "times a pass", "us each", "us a pass"]]
        for name, each in sorted(times.items(), key=lambda item: -sum(item[1]))[:_LONGEST]:
            lines.append(
                [
                    name.replace("|", "/")[:90],
                    f"{len(each) / _REPLAYS:.0f}",
                    f"{sum(each) / len(each):.2f}",
                    f"{sum(each) / _REPLAYS:.0f}",
                ]
            )
        texts.append(f"{count} rows: {kernels:.0f} kernels a pass, {total:.0f} us in them\n\n{table(lines)}")
        figures[str(count)] = {"kernels": kernels, "microseconds": total}
    return "\n\n".join(texts), {"passes": figures}
