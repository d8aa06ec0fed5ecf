"""Pictures: the same at every run, nothing on top of anything else, as large as they must be."""

from __future__ import annotations

from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import combdiff as cd
from combdiff.pictures.layout import arranged
from combdiff.pictures.network import CONDITION, TENSOR, Edge, Network, Node

if TYPE_CHECKING:
    from matplotlib.figure import Figure

pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[2] / "examples"
MPS = """@space M3 begin type = (N, N, N) -> C end
(B::M3, D::M3, E::M3) -> (A::M3) -> sum((s, t, u, v, a, b, c, d, e, f, m, n),
    A(s, n, a)' * A(s, m, b) * B(t, a, c)' * B(t, b, d) * D(u, c, e)' * D(u, d, f) * E(v, e, n)' * E(v, f, m))
"""
TUCKER = """@space T3 begin type = (N, N, N) -> R end
(T::T3) -> (G::T3, X::RM, Y::RM, Z::RM) ->
    sum((i, j, k), (T(i, j, k) - sum((a, b, c), G(a, b, c) * X(i, a) * Y(j, b) * Z(k, c)))^2)
"""
PROGRAMS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.cd"))}
PROGRAMS |= {"norm of a matrix product state": MPS, "Tucker": TUCKER}


def boxes(figure: Figure) -> list[tuple[str, np.ndarray]]:
    """The corners of every label, in inches; slot numbers inside of nodes left out."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    (axes,) = figure.axes
    texts = [text for text in axes.texts if text.get_text().startswith("$")]
    return [(t.get_text(), t.get_window_extent(renderer).get_points() / figure.dpi) for t in texts]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_label_lies_on_another_or_outside(name: str) -> None:
    figure = cd.grad(PROGRAMS[name]).picture()
    found = boxes(figure)
    width, height = figure.get_size_inches()
    for label, ((left, bottom), (right, top)) in found:
        assert left >= 0 and right <= width and bottom >= 0 and top <= height, label
    for (one, a), (other, b) in combinations(found, 2):
        apart = (a[1] <= b[0] + 0.02).any() or (b[1] <= a[0] + 0.02).any()
        assert apart, f"{one} and {other}"


@pytest.mark.slow
def test_a_picture_is_the_same_at_every_run() -> None:
    first, second = (page(cd.grad(PROGRAMS["hartree_fock"]).picture()) for _ in range(2))
    assert first == second


def page(figure: Figure) -> bytes:
    stream = BytesIO()
    figure.savefig(stream, format="raw", dpi=80)
    return stream.getvalue()


def test_a_picture_has_the_size_that_it_says_and_shows_itself() -> None:
    figure = cd.grad(PROGRAMS["hartree_fock"]).picture()
    width, height = figure.get_size_inches()
    assert 3 < width < 8 and 1.5 < height < 5
    from matplotlib.image import imread

    image = imread(BytesIO(figure._repr_png_()), format="png")
    assert image.shape[:2] == (int(height * 110), int(width * 110))
    # ink on white
    assert image[..., :3].min() < 0.3 and image[0, 0, :3].min() == 1.0


@pytest.mark.slow
def test_a_long_sum_is_continued_below() -> None:
    terms = " + ".join(f"sum(i, a(i)^{n} * x(i)^{n})" for n in (2, 3, 4))
    text = f"(a::RV) -> (x::RV) -> ({terms}) * sum((i, j), a(i) * x(j)) + sum(i, exp(x(i)) + sin(x(i)) * a(i))"
    width, _ = cd.grad(text, expand=True).picture().get_size_inches()
    assert width < 14


@pytest.mark.slow
def test_drawing_leaves_pyplot_alone() -> None:
    import subprocess
    import sys

    shown = "cd.grad('(x::RV) -> sum(i, x(i)^2)').picture()"
    code = f"import sys, combdiff as cd; {shown}; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=EXAMPLES.parent, timeout=60).returncode == 0


def test_parallel_lines_are_bent_apart() -> None:
    nodes = (Node("A", TENSOR, (0, 1)), Node("B", TENSOR, (0, 1)))
    bends = [line.bend for line in arranged(Network(False, "", nodes, (Edge("i"), Edge("j")))).lines]
    assert bends[0] == -bends[1] != 0


def test_a_trace_goes_round() -> None:
    layout = arranged(Network(False, "", (Node("A", TENSOR, (0, 0)),), (Edge("i"),)))
    assert len(layout.lines) == 2 and not layout.dots and not layout.ends


def test_an_index_of_three_slots_has_a_dot() -> None:
    nodes = tuple(Node(label, TENSOR, (0,)) for label in "ABC")
    layout = arranged(Network(False, "", nodes, (Edge("i"),)))
    assert layout.dots == (3,) and {line.end for line in layout.lines} == {3}


def test_a_delta_without_tensors_is_drawn() -> None:
    layout = arranged(Network(False, "", (Node(r"\delta", CONDITION, (0, 1)),), (Edge("i", True), Edge("j", True))))
    assert set(layout.ends.values()) == {"i", "j"}
