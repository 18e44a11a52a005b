"""The loss of a training as a picture that any browser shows: an SVG, with nothing to install."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 360, 56, 44, 24
_COLOURS = ("#2563eb", "#d97706", "#059669")
_POINTS = 300  # per curve: each is a mean over its stretch of the log


def loss_plot(logs: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """Loss against tokens read, a curve for every log, on common axes."""
    curves = {name: _curve(log) for name, log in logs.items() if log}
    most_tokens = max((x for curve in curves.values() for x, _ in curve), default=1.0)
    most_loss = ceil(max((y for curve in curves.values() for _, y in curve), default=1.0))
    parts = [_frame(most_tokens, most_loss)]
    for index, (name, curve) in enumerate(curves.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        points = " ".join(f"{_x(x / most_tokens):.1f},{_y(y / most_loss):.1f}" for x, y in curve)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        place = f'x="{_WIDTH - 12}" y="{_TOP + 16 + 18 * index}" text-anchor="end" fill="{colour}"'
        parts.append(f"<text {place}>{escape(name)}: {curve[-1][1]:.2f} at the end</text>")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>\n'
        + "\n".join((*parts, "</svg>\n"))
    )


def _curve(log: Sequence[Mapping[str, float]]) -> list[tuple[float, float]]:
    """Mean loss over each stretch, against the tokens at its end."""
    width = ceil(len(log) / _POINTS)
    stretches = [log[begin : begin + width] for begin in range(0, len(log), width)]
    return [(part[-1]["tokens"], sum(entry["loss"] for entry in part) / len(part)) for part in stretches]


def _frame(most_tokens: float, most_loss: int) -> str:
    """Axes, their numbers and their names."""
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = _x(share), _y(share)
        lines.append(f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - 12}" stroke="#d1d5db" stroke-width="0.7"/>')
        place = f'x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end"'
        lines.append(f'<text {place} fill="#374151">{share * most_loss:g}</text>')
        tokens = f"{share * most_tokens / 1e6:.3g} M"
        lines.append(f'<text x="{x:.1f}" y="{_HEIGHT - 26}" text-anchor="middle" fill="#374151">{tokens}</text>')
    lines.append(f'<text x="{_LEFT}" y="14" fill="#374151">loss, nats per answer token</text>')
    lines.append(f'<text x="{_WIDTH - 12}" y="{_HEIGHT - 8}" text-anchor="end" fill="#374151">tokens read</text>')
    return "\n".join(lines)


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - 12)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)
