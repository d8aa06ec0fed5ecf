"""Where the nodes, the edges and the labels of a network lie: the same at every run, and apart from one another.

Distances in the plane are to be those in the graph (stress majorisation: Gansner, Koren and North, Graph Drawing 2004),
from several fixed starts; of the results the one is taken in which least lies on top of something else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from combdiff.notation.widths import columns
from combdiff.pictures.network import CONDITION, TENSOR, VALUE, Network
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS

Points = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]

RADIUS = 0.24
"""Of a node, in inches, as all lengths here."""

_LETTER = 0.095
_STEP, _LEG = 0.5, 0.42
_BEND = 0.22
_STARTS, _ROUNDS, _KEPT = 16, 60, 2


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of an edge between two places, bent by `bend` to the left; `label` is LaTeX, and may be empty.

    `slots` are the numbers of the slots in which it starts and ends, from 1; 0 where it does so in no node.
    """

    start: int
    end: int
    bend: float
    label: str
    slots: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Places of the nodes first, then of the dots where more than two slots share an index, then of the ends of legs.

    `dots` and `ends` are numbers of places; an end has the label of its leg.
    """

    places: Points
    radii: tuple[float, ...]
    lines: tuple[Line, ...]
    dots: tuple[int, ...]
    ends: dict[int, str]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top of everything."""
        if not len(self.places):
            return 0.0, 0.0, 0.0, 0.0
        reach = np.array(self.radii)[:, None]
        low, high = (self.places - reach).min(axis=0), (self.places + reach).max(axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def arranged(network: Network) -> Arrangement:
    """A layout of the network.

    >>> from combdiff.pictures.network import Edge, Node
    >>> nodes = (Node("A", TENSOR, (0, 1)), Node("x", TENSOR, (1,)))
    >>> layout = arranged(Network(False, "", nodes, (Edge("i", open=True), Edge("j"))))
    >>> len(layout.places), layout.ends, [line.label for line in layout.lines]
    (3, {2: 'i'}, ['', 'j'])
    """
    radii = [_radius(node.label, node.kind) for node in network.nodes]
    lines, dots, ends = _lines(network, radii)
    if not radii:
        return Arrangement(np.zeros((0, 2)), (), (), (), {})
    wanted = _distances(len(radii), lines, radii)
    places = _level(_orderly(wanted, _Merit(wanted, radii, lines)), ends)
    return Arrangement(places, tuple(radii), tuple(lines), tuple(dots), ends)


def _radius(label: str, kind: str) -> float:
    wide = 0.5 * width_of(label) + 0.08
    return max(RADIUS if kind in (TENSOR, VALUE, CONDITION) else 0.14, wide)


def _lines(network: Network, radii: list[float]) -> tuple[list[Line], list[int], dict[int, str]]:
    """What is to be drawn of each edge; adds the radii of dots and of ends of legs."""
    lines: list[Line] = []
    dots: list[int] = []
    ends: dict[int, str] = {}
    for number, edge in enumerate(network.edges):
        reached = [(n, s) for n, node in enumerate(network.nodes) for s, e in enumerate(node.slots, 1) if e == number]
        if len(reached) == 2 and not edge.open and reached[0][0] != reached[1][0]:
            (a, s), (b, t) = reached
            lines.append(Line(a, b, 0.0, edge.label, (_shown(network, a, s), _shown(network, b, t))))
            continue
        if len(reached) == 1 and edge.open:
            ((a, s),) = reached
            ends[len(radii)] = edge.label
            lines.append(Line(a, len(radii), 0.0, "", (_shown(network, a, s), 0)))
            radii.append(end_radius(edge.label))
            continue
        dot = len(radii)
        radii.append(0.05)
        if not (len(reached) == 2 and not edge.open):
            dots.append(dot)
        lines += [
            Line(a, dot, 0.0, "" if edge.open or n else edge.label, (_shown(network, a, s), 0))
            for n, (a, s) in enumerate(reached)
        ]
        if edge.open:
            ends[len(radii)] = edge.label
            lines.append(Line(dot, len(radii), 0.0, ""))
            radii.append(end_radius(edge.label))
    return _bent(lines), dots, ends


def end_radius(label: str) -> float:
    """About half as wide as a label is, in inches."""
    return 0.5 * width_of(label) + 0.02


def width_of(formula: str) -> float:
    """About how wide a formula is, in inches, at 12 points."""
    named = re.sub(r"\\([a-z]{3,})(?=\\|\(| |$)", lambda m: m[1] if m[1] in SCALAR_FUNCTIONS else m[0], formula)
    return _LETTER * columns(named) + 0.06


def _shown(network: Network, node: int, slot: int) -> int:
    """The number of a slot where there are several to tell apart."""
    found = network.nodes[node]
    return slot if found.kind == TENSOR and len(found.slots) > 1 else 0


def _bent(lines: Sequence[Line]) -> list[Line]:
    """Lines between the same two places lie side by side."""
    total = Counter(frozenset((line.start, line.end)) for line in lines)
    met: Counter[frozenset[int]] = Counter()
    found = []
    for line in lines:
        pair = frozenset((line.start, line.end))
        bend = (met[pair] - (total[pair] - 1) / 2) * 2 * _BEND
        met[pair] += 1
        # to the left of one direction is to the right of the other
        found.append(Line(line.start, line.end, bend if line.start < line.end else -bend, line.label, line.slots))
    return found


def _distances(count: int, lines: Sequence[Line], radii: Sequence[float]) -> Points:
    """How far apart any two places should be: along the lines, and more where nothing joins them."""
    result = np.full((count, count), np.inf)
    np.fill_diagonal(result, 0)
    leg_ends = {line.end for line in lines}
    for line in lines:
        room = _LEG if line.end in leg_ends and not line.label else _STEP + width_of(line.label or "i") - 0.15
        length = radii[line.start] + radii[line.end] + room + 0.6 * abs(line.bend)
        result[line.start, line.end] = result[line.end, line.start] = length
    for via in range(count):
        result = np.minimum(result, result[:, [via]] + result[[via], :])
    finite = result[np.isfinite(result)]
    result[~np.isfinite(result)] = float(finite.max()) + 2 * max(radii) + 0.3
    return result


def _orderly(wanted: Points, merit: _Merit) -> Points:
    """The first places where nothing lies on anything else, or else the best ones, with what moves improve."""
    tries = []
    for seed in range(_STARTS):
        tries.append(_majorised(wanted, seed))
        if not merit.disorder(tries[-1]):
            return tries[-1]
    return min(map(merit.improved, sorted(tries, key=merit)[:_KEPT]), key=merit)


def _majorised(wanted: Points, seed: int) -> Points:
    """Places whose distances are nearly those wanted."""
    count = len(wanted)
    if count == 1:
        return np.zeros((1, 2))
    angles = 2 * np.pi * np.random.default_rng(seed).permutation(count) / count
    places = float(wanted.max()) / 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    weights = np.divide(1.0, wanted**2, out=np.zeros_like(wanted), where=wanted > 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    for _ in range(_ROUNDS):
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        pull = np.divide(weights * wanted, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        places = inverse @ ((np.diag(pull.sum(axis=1)) - pull) @ places)
    return places


def _level(places: Points, ends: dict[int, str]) -> Points:
    """Turned so that it is wider than high, and the first leg points to the left."""
    centred = places - places.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    turned: Points = centred @ axes[:, ::-1]
    for axis, reference in enumerate(list(ends)[:2] or [0]):
        if turned[reference, axis] * (1 if axis == 0 else -1) > 0:
            turned[:, axis] *= -1
    return turned


# --- how much lies on top of something ------------------------------------------------------------------------------


def middle(places: Points, line: Line) -> tuple[float, float]:
    """Where the label of a line stands: in the middle of its arc."""
    x, y = _middles(places, np.array([line.start]), np.array([line.end]), np.array([line.bend]))[0]
    return float(x), float(y)


def _middles(places: Points, starts: Numbers, ends: Numbers, bends: Points) -> Points:
    a, b = places[starts], places[ends]
    along = b - a
    length = np.maximum(np.hypot(along[:, 0], along[:, 1]), 1e-9)
    normal: Points = np.stack([-along[:, 1], along[:, 0]], axis=1) / length[:, None]
    return (a + b) / 2 + normal * bends[:, None]


class _Merit:
    """How bad a choice of places is: crossings, then what lies in one another, then the stress."""

    def __init__(self, wanted: Points, radii: Sequence[float], lines: Sequence[Line]) -> None:
        self.wanted = wanted
        self.starts = np.array([line.start for line in lines], int)
        self.ends = np.array([line.end for line in lines], int)
        self.bends = np.array([line.bend for line in lines])
        self.labelled = np.array([n for n, line in enumerate(lines) if line.label], int)
        self.radii = np.array([*radii, *(end_radius(line.label) for line in lines if line.label)])
        pairs = np.array(list(combinations(range(len(self.radii)), 2)), int).reshape(-1, 2)
        self.first, self.second = pairs[:, 0], pairs[:, 1]
        # lines that share a place do not cross, and a line may touch its own places, and its own label
        ends = [{line.start, line.end} for line in lines]
        self.apart = np.array([[a.isdisjoint(b) for b in ends] for a in ends], bool).reshape(len(lines), len(lines))
        label = dict(zip(self.labelled.tolist(), range(len(radii), len(self.radii)), strict=True))
        own = [{line.start, line.end, label.get(n, line.end)} for n, line in enumerate(lines)]
        spots = range(len(self.radii))
        self.foreign = np.array([[spot not in mine for mine in own] for spot in spots], bool).reshape(-1, len(lines))
        met = [(place, n) for n, line in enumerate(lines) for place in (line.start, line.end)]
        beside = [(p, m, n) for (p, m), (q, n) in combinations(met, 2) if p == q]
        self.hubs, self.one, self.other = np.array(beside, int).reshape(-1, 3).T

    def __call__(self, places: Points) -> float:
        return self.disorder(places) + 2 * self.stress(places)

    def disorder(self, places: Points) -> float:
        """Crossings, what lies in one another, and lines that leave a place side by side; 0 if there are none."""
        middles = _middles(places, self.starts, self.ends, self.bends)
        spots = np.concatenate([places, middles[self.labelled]])
        between = spots[self.first] - spots[self.second]
        room = self.radii[self.first] + self.radii[self.second] + _ROOM
        overlap = np.maximum(0.0, room - np.hypot(between[:, 0], between[:, 1])).sum()
        a = np.concatenate([places[self.starts], middles])
        b = np.concatenate([middles, places[self.ends]])
        distances = _distances_to(spots, a, b).reshape(len(spots), 2, -1).min(axis=1)
        overlap += np.where(self.foreign, np.maximum(0.0, self.radii[:, None] + _ROOM - distances), 0.0).sum()
        one, other = (_unit(middles[n] - places[self.hubs]) for n in (self.one, self.other))
        crowded = np.maximum(0.0, (one * other).sum(axis=1) - _NARROW).sum()
        return float(round(_crossings(a, b, np.tile(self.apart, (2, 2))) + 8 * overlap + 8 * crowded, 9))

    def stress(self, places: Points) -> float:
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        return float((((apart - self.wanted) / np.where(self.wanted > 0, self.wanted, 1)) ** 2).mean())

    def improved(self, places: Points) -> Points:
        """One place after the other is moved as long as that is better."""
        places, best = places.copy(), self(places)
        for step in _MOVES:
            for n in range(len(places)):
                here = places[n].copy()
                for angle in range(8):
                    places[n] = here + step * np.array([np.cos(angle * np.pi / 4), np.sin(angle * np.pi / 4)])
                    found = self(places)
                    if found < best - 1e-9:
                        best, here = found, places[n].copy()
                places[n] = here
        return places


_ROOM = 0.06
_NARROW = float(np.cos(np.pi / 7))
_MOVES = (0.5, 0.3, 0.15, 0.15, 0.07, 0.07)


def _unit(vectors: Points) -> Points:
    found: Points = vectors / np.maximum(np.hypot(vectors[:, 0], vectors[:, 1]), 1e-9)[:, None]
    return found


def _crossings(a: Points, b: Points, counted: npt.NDArray[np.bool_]) -> int:
    """How many of the pieces from `a` to `b` cross, among the pairs that count."""

    def side(p: Points, q: Points, r: Points) -> Points:
        d = q - p
        found: Points = d[..., 0] * (r - p)[..., 1] - d[..., 1] * (r - p)[..., 0]
        return found

    p, q, r, s = a[:, None], b[:, None], a[None], b[None]
    meet = (side(p, q, r) * side(p, q, s) < 0) & (side(r, s, p) * side(r, s, q) < 0)
    return int((meet & counted).sum()) // 2


def _distances_to(points: Points, a: Points, b: Points) -> Points:
    """From each point to each piece from `a` to `b`."""
    along = b - a
    squares = np.maximum((along**2).sum(axis=1), 1e-12)
    from_a = points[:, None] - a[None]
    t = np.clip((from_a * along).sum(axis=2) / squares, 0, 1)
    rest = from_a - t[..., None] * along
    found: Points = np.hypot(rest[..., 0], rest[..., 1])
    return found
