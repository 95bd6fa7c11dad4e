"""Line plots as SVG elements, without scripts or external resources."""

from __future__ import annotations

from html import escape
from math import floor, log10
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

WIDTH, HEIGHT = 720, 280
LEFT, RIGHT, TOP, BOTTOM = 64, 28, 24, 40
_TICKS = 6
_LETTER = 6.0


@frozen
class Axis:
    """The range of an axis, its label and its ticks."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]

    def share(self, value: float) -> float:
        """The position of a value, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)


@frozen
class Series:
    """A line in the units of the axes."""

    name: str
    points: Sequence[tuple[float, float]]
    bounds: Sequence[tuple[float, float]] = ()
    """Points of targets: the line should pass below them."""


def linear_axis(label: str, values: Iterable[float]) -> Axis:
    """From 0 to the next round number above all values."""
    highest = max([*values, 0.0]) or 1.0
    step = _round_step(highest / _TICKS)
    number = -(-highest // step)
    return Axis(label, 0.0, step * number, [(step * each, f"{step * each:,.10g}") for each in range(int(number) + 1)])


def whole_axis(label: str, values: Iterable[float]) -> Axis:
    """From 0 to the highest value, so that the lines use the whole width."""
    highest = max([*values, 0.0]) or 1.0
    ticks = [tick for tick in linear_axis(label, [highest]).ticks if tick[0] <= highest]
    return Axis(label, 0.0, highest, ticks)


def log_axis(label: str, values: Iterable[float]) -> Axis:
    """For values that are logarithms to base 10, from one power of ten to another."""
    known = list(values) or [0.0]
    low, high = floor(min(known)), floor(max(known)) + 1
    return Axis(label, low, high, [(each, f"{10.0**each:,.10g}") for each in range(low, high + 1)])


def line_plot(title: str, x: Axis, y: Axis, series: Sequence[Series], *, warm_up: float = 0.0) -> str:
    """The part of the x axis before `warm_up` is shaded."""
    shown = [each for each in series if each.points]
    parts = [_shade(x, warm_up) if warm_up else "", _axes(x, y)]
    for place, each in enumerate(shown):
        path = " ".join(f"{_across(x, px):.1f},{_down(y, py):.1f}" for px, py in each.points)
        parts.append(f'<polyline class="line c{place}" points="{path}"><title>{escape(each.name)}</title></polyline>')
        parts += [_bound(_across(x, px), _down(y, py), place, each.name) for px, py in each.bounds]
    parts.append(legend({f"c{place}": each.name for place, each in enumerate(shown)}))
    return figure(title, "".join(parts), HEIGHT)


def _shade(x: Axis, until: float) -> str:
    width = _across(x, until) - LEFT
    return (
        f'<rect class="shade" x="{LEFT}" y="{TOP}" width="{width:.1f}" height="{HEIGHT - TOP - BOTTOM}"/>'
        f'<text x="{LEFT + 5}" y="{TOP + 14}">warm-up</text>'
    )


def _bound(across: float, down: float, place: int, name: str) -> str:
    """A bracket that marks a target."""
    return (
        f'<path class="line c{place}" d="M{across - 9:.1f} {down + 6:.1f} V{down:.1f} H{across + 9:.1f} v6">'
        f"<title>{escape(name)}: its target</title></path>"
    )


def figure(title: str, inside: str, height: float) -> str:
    return (
        f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
        f"<title>{escape(title)}</title>{inside}</svg></figure>"
    )


def ticks_below(x: Axis, bottom: float) -> str:
    """The x axis with its grid lines."""
    parts = [
        f'<line class="grid" x1="{_across(x, value):.1f}" x2="{_across(x, value):.1f}" y1="{TOP}" y2="{bottom:.1f}"/>'
        f'<text x="{_across(x, value):.1f}" y="{bottom + 14:.1f}" text-anchor="middle">{escape(label)}</text>'
        for value, label in x.ticks
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="label" x="{middle:.0f}" y="{bottom + 32:.1f}" text-anchor="middle">{escape(x.label)}</text>'
    )
    return "".join(parts)


def _axes(x: Axis, y: Axis) -> str:
    bottom = HEIGHT - BOTTOM
    parts = [ticks_below(x, bottom)]
    for value, label in y.ticks:
        at = f"{_down(y, value):.1f}"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at}" dy="0.35em" text-anchor="end">{escape(label)}</text>')
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text class="label" transform="translate(12 {middle:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y.label)}</text>"
    )
    return "".join(parts)


def legend(names: Mapping[str, str]) -> str:
    """The legend in a row above the plot, from CSS classes and names."""
    parts: list[str] = []
    across = float(LEFT)
    for kind, name in names.items():
        parts.append(f'<rect class="key {kind}" x="{across:.0f}" y="4" width="12" height="10"/>')
        parts.append(f'<text x="{across + 17:.0f}" y="13">{escape(name)}</text>')
        across += 36 + _LETTER * len(name)
    return "".join(parts)


def _across(x: Axis, value: float) -> float:
    return LEFT + x.share(value) * (WIDTH - LEFT - RIGHT)


def _down(y: Axis, value: float) -> float:
    return HEIGHT - BOTTOM - y.share(value) * (HEIGHT - TOP - BOTTOM)


def _round_step(least: float) -> float:
    """The next step of 1, 2 or 5 times a power of ten that is not less."""
    power = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
