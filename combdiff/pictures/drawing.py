"""Draws networks with matplotlib: a row for each definition and result, in it a panel for each term of the sum."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch
from matplotlib.path import Path

from combdiff.pictures.layout import Arrangement, Line, arranged, middle, width_of
from combdiff.pictures.network import ARITHMETIC, TENSOR, Network, Node, Row
from combdiff.records import dataclass

_FILL = {"tensor": "#dbe7f5", "condition": "#f6e3c5", "arithmetic": "#ffffff", "value": "#e4efdc"}
_LINE, _CONJ, _INK = "#4a5563", "#b5482f", "#1c232b"
_WIDEST = 13.0
"""Inches; a row that is longer is continued below."""

_GAP, _MARGIN, _LOWEST = 0.2, 0.15, 0.62


class Picture(Figure):
    """A figure of matplotlib that shows itself in a notebook, whatever backend is in use."""

    def _repr_png_(self) -> bytes:
        page = BytesIO()
        self.savefig(page, format="png", dpi=110)
        return page.getvalue()


_Content: TypeAlias = "str | tuple[Network, Arrangement]"
_Sized: TypeAlias = tuple[_Content, float, float]
"""Text or a network, its width and its height."""

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text or a network, with its width and height, and its place from the left of its line."""

    content: _Content
    left: float
    width: float
    height: float


def drawn(rows: Sequence[Row]) -> Picture:
    """The figure of these rows; lengths are inches, so that text and networks keep their size."""
    lines = [line for row in rows for line in _broken(_pieces(row))]
    width = max((piece.left + piece.width for line in lines for piece in line), default=1.0) + 2 * _MARGIN
    heights = [max(_LOWEST, *(piece.height for piece in line)) + _GAP for line in lines]
    height = sum(heights) + 2 * _MARGIN
    figure = Picture(figsize=(width, height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(0, height)
    axes.axis("off")
    top = height - _MARGIN
    for line, high in zip(lines, heights, strict=True):
        for piece in line:
            _place(axes, piece, top - high / 2)
        top -= high
    return figure


def _pieces(row: Row) -> list[_Sized]:
    """The head, then signs, factors and networks, each with width and height."""
    if not row.terms:
        return [_text(f"{row.head} = {row.formula}")]
    found: list[_Sized] = [_text(f"{row.head} =")]
    for n, network in enumerate(row.terms):
        sign = "-" if network.minus else "+" if n else ""
        factor = network.factor or ("" if network.nodes else "1")
        if sign or factor:
            found.append(_text(f"{sign}{factor}" if not n else rf"{sign}\;{factor}"))
        if network.nodes:
            layout = arranged(network)
            left, bottom, right, top = layout.box
            found.append(((network, layout), right - left, top - bottom))
    return found


def _text(formula: str) -> _Sized:
    return formula, 1.1 * width_of(formula), _LOWEST / 2


def _broken(pieces: Sequence[_Sized]) -> list[list[_Piece]]:
    """The pieces of a row, side by side in as many lines as it takes."""
    lines: list[list[_Piece]] = [[]]
    left = _MARGIN
    for content, width, height in pieces:
        if lines[-1] and left + width > _WIDEST:
            lines.append([])
            left = _MARGIN + 0.6
        lines[-1].append(_Piece(content, left, width, height))
        left += width + _GAP
    return lines


def _place(axes: Axes, piece: _Piece, centre: float) -> None:
    if isinstance(piece.content, str):
        axes.text(piece.left, centre, f"${piece.content}$", ha="left", va="center", fontsize=13, color=_INK)
        return
    network, layout = piece.content
    left, bottom, _, top = layout.box
    _network(axes, network, layout, np.array([piece.left - left, centre - (bottom + top) / 2]))


def _network(axes: Axes, network: Network, layout: Arrangement, shift: Array) -> None:
    places = layout.places + shift
    for line in layout.lines:
        _line(axes, layout, places, line)
    for dot in layout.dots:
        axes.add_patch(Circle(tuple(places[dot]), 0.045, color=_LINE, zorder=3))
    for end, label in layout.ends.items():
        x, y = places[end]
        axes.text(x, y, f"${label}$", ha="center", va="center", fontsize=11, color=_INK, zorder=4)
    for node, place, radius in zip(network.nodes, places, layout.radii, strict=False):
        _node(axes, node, (float(place[0]), float(place[1])), radius)


def _node(axes: Axes, node: Node, place: tuple[float, float], radius: float) -> None:
    x, y = place
    edge = _CONJ if node.conj else _LINE
    style: dict[str, Any] = {"facecolor": _FILL[node.kind], "edgecolor": edge, "linewidth": 1.3, "zorder": 5}
    if node.kind == TENSOR and radius < 0.3:
        axes.add_patch(Circle(place, radius, linestyle="--" if node.conj else "-", **style))
    else:
        high = 0.12 if node.kind == ARITHMETIC else 0.2
        shape = FancyBboxPatch(
            (x - radius + 0.06, y - high + 0.06),
            2 * radius - 0.12,
            2 * high - 0.12,
            boxstyle="round,pad=0.06",
            linestyle="--" if node.conj else "-",
            **style,
        )
        axes.add_patch(shape)
    label = f"{node.label}^{{*}}" if node.conj else node.label
    size = 9 if node.kind == ARITHMETIC else 12
    axes.text(x, y, f"${label}$", ha="center", va="center", fontsize=size, color=_INK, zorder=6)


def _line(axes: Axes, layout: Arrangement, places: Array, line: Line) -> None:
    a, b = places[line.start], places[line.end]
    if line.end in layout.ends:
        # a leg stops before its label
        b = b - (b - a) / np.hypot(*(b - a)) * layout.radii[line.end]
    along = b - a
    normal = np.array([-along[1], along[0]]) / (np.hypot(*along) or 1.0)
    control = (a + b) / 2 + 2 * line.bend * normal
    arc = Path([tuple(a), tuple(control), tuple(b)], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
    axes.add_patch(PathPatch(arc, fill=False, edgecolor=_LINE, linewidth=1.4, zorder=2))
    if line.label:
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
        axes.text(
            *middle(places, line),
            f"${line.label}$",
            ha="center",
            va="center",
            fontsize=11,
            color=_INK,
            bbox=box,
            zorder=4,
        )
    for end, start, slot in ((a, line.start, line.slots[0]), (b, line.end, line.slots[1])):
        if slot:
            _slot(axes, end, control, layout.radii[start], slot)


def _slot(axes: Axes, centre: Array, towards: Array, radius: float, number: int) -> None:
    """The number of a slot, inside the rim where its line begins."""
    direction = (towards - centre) / (np.hypot(*(towards - centre)) or 1.0)
    x, y = centre + direction * (radius - 0.055)
    axes.text(x, y, str(number), ha="center", va="center", fontsize=5.5, color=_LINE, zorder=7)
