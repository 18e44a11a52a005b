"""Plots curves over the tokens read, as an SVG that any browser shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from math import ceil, isfinite

_PAGE, _COLUMNS = 720, 2
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 26, 30
_LEGEND = 28
_COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#65a30d", "#be185d")
_POINTS = 300  # of a curve: each is a mean over its stretch

Curve = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One plot: curves by name over tokens read; shares have an axis from 0 to 1."""

    title: str
    curves: Mapping[str, Curve]
    share: bool = False


def plot(charts: Sequence[Chart]) -> str:
    """Draw all charts under one legend: two in a row, or a large one alone."""
    names = list(dict.fromkeys(name for chart in charts for name in chart.curves))
    colours = {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(names)}
    columns = max(1, min(_COLUMNS, len(charts)))
    width, height = _PAGE // columns, 220 if columns > 1 else 360
    page = _LEGEND + height * ceil(len(charts) / columns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_PAGE} {page}" font-family="sans-serif" '
        'font-size="11">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        _label(_PAGE - _RIGHT, 18, "end", "over tokens read"),
    ]
    for index, name in enumerate(names):
        parts.append(f'<text x="{_LEFT + 80 * index}" y="18" fill="{colours[name]}">{escape(name)}</text>')
    for index, chart in enumerate(charts):
        row, column = divmod(index, columns)
        parts.append(f'<g transform="translate({width * column} {_LEGEND + height * row})">')
        parts += [*_drawn(chart, colours, width, height), "</g>"]
    return "\n".join([*parts, "</svg>\n"])


def _drawn(chart: Chart, colours: Mapping[str, str], width: int, height: int) -> list[str]:
    """Draw a title, axes with their numbers, and curves."""
    curves = {name: _thinned([point for point in curve if isfinite(point[1])]) for name, curve in chart.curves.items()}
    points = list(chain.from_iterable(curves.values()))
    most_x = max((x for x, _ in points), default=1.0) or 1.0
    most_y = 1.0 if chart.share else max((y for _, y in points), default=1.0) or 1.0
    wide, high = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM
    parts = [f'<text x="{_LEFT}" y="16" fill="#111827">{escape(chart.title)}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _TOP + (1 - share) * high
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{width - _RIGHT}" stroke="#d1d5db" stroke-width="0.7"/>')
        parts.append(_label(_LEFT - 6, y + 4, "end", f"{share * most_y:.3g}"))
        parts.append(
            _label(_LEFT + share * wide, height - 12, "end" if share == 1 else "middle", _millions(share * most_x))
        )
    for name, curve in curves.items():
        places = " ".join(f"{_LEFT + x / most_x * wide:.1f},{_TOP + (1 - y / most_y) * high:.1f}" for x, y in curve)
        parts.append(f'<polyline fill="none" stroke="{colours[name]}" stroke-width="1.5" points="{places}"/>')
    return parts


def _millions(tokens: float) -> str:
    return f"{tokens / 1e6:.3g} M"


def _label(x: float, y: float, anchor: str, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#374151">{text}</text>'


def _thinned(curve: Curve) -> list[tuple[float, float]]:
    """Average over stretches, each at its end."""
    width = ceil(len(curve) / _POINTS) or 1
    stretches = [curve[begin : begin + width] for begin in range(0, len(curve), width)]
    return [(part[-1][0], sum(y for _, y in part) / len(part)) for part in stretches]
