"""Which networks a result is drawn as: nodes, edges, free legs, and rows for what has a name."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import combdiff as cd
from combdiff.arrays.lower.signature import result_of
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.pictures.network import ARITHMETIC, CONDITION, TENSOR, VALUE, Network, Row, rows_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def rows(text: str) -> list[Row]:
    term = cd.grad(text).term
    return rows_of(term, [f"g{n}" for n, _ in enumerate(result_of(term).outputs, 1)])


def example(name: str) -> list[Row]:
    return rows((EXAMPLES / f"{name}.cd").read_text(encoding="utf-8"))


def joined(network: Network) -> set[tuple[str, ...]]:
    """What each summed index joins, by the labels of the nodes."""
    labels = [f"{node.label}*" if node.conj else node.label for node in network.nodes]
    return {
        (edge.label, *sorted(labels[n] for n in network.ends(number)))
        for number, edge in enumerate(network.edges)
        if not edge.open
    }


def legs(network: Network) -> dict[str, list[str]]:
    return {e.label: [network.nodes[k].label for k in network.ends(n)] for n, e in enumerate(network.edges) if e.open}


def test_hartree_fock_is_one_network() -> None:
    (row,) = example("hartree_fock")
    (network,) = row.terms
    assert (row.head, network.minus, network.factor) == ("g1(p, i)", False, "4")
    assert joined(network) == {("q", "C", "J"), ("r", "C*", "J"), ("s", "C", "J"), ("j", "C", "C*")}
    assert legs(network) == {"p": ["J"], "i": ["C"]}


@pytest.mark.slow
def test_an_index_of_many_slots_joins_them_all() -> None:
    definition, first, *_ = example("cp_loss")
    assert definition.head == "P(i, j, k)" and [t.minus for t in definition.terms] == [False, True]
    assert joined(definition.terms[0]) == {("e", "X", "Y", "Z")}
    assert legs(first.terms[0])["e"] == ["Y", "Z"]


def test_a_sum_of_indices_is_a_node_that_joins_them() -> None:
    rho, _ = example("wannier")
    (network,) = rho.terms
    (plus,) = [node for node in network.nodes if node.kind == ARITHMETIC]
    assert {network.edges[e].label for e in plus.slots} == {"k + b", "k", "b"}
    assert ("k + b", "+", "S", "U") in joined(network)


def test_a_bracket_has_a_name_and_a_row() -> None:
    P, gradient, bracket, inner = example("restricted_hartree_fock")
    assert [row.head for row in (P, gradient, bracket, inner)] == [
        "P(p, q)",
        "g1(p, i)",
        "u_{1}(p, q)",
        "u_{2}(p, q, r, s)",
    ]
    assert [n.label for n in gradient.terms[0].nodes if n.kind == VALUE] == ["u_{1}"]
    assert [(t.minus, t.factor) for t in inner.terms] == [(False, "2"), (True, "")]


def test_deltas_are_nodes() -> None:
    (row,) = rows("(A::RM{n, n}) -> sum(i, A(i, i))^3")
    (network,) = row.terms
    (delta,) = [node for node in network.nodes if node.kind == CONDITION]
    assert delta.label == r"\delta" and [network.edges[e].open for e in delta.slots] == [True, True]


def test_the_copies_of_a_squared_sum_share_no_index() -> None:
    (row,) = rows("(A::RM{n, n}) -> sum(i, A(i, i))^3")
    (network,) = row.terms
    traces = [node for node in network.nodes if node.kind == TENSOR]
    assert len(traces) == 2 and set(traces[0].slots).isdisjoint(traces[1].slots)
    assert all(len(set(node.slots)) == 1 for node in traces)


@pytest.mark.slow
def test_what_is_no_contraction_is_a_formula() -> None:
    x, root, *_ = example("implicit")
    assert not root.terms and root.formula.startswith(r"\operatorname{root}")
    assert x.terms[0].nodes[0].label in root.head


POLYNOMIALS = {
    name: (EXAMPLES / f"{name}.cd").read_text(encoding="utf-8")
    for name in ("hartree_fock", "quadratic", "cp_loss", "restricted_hartree_fock", "hartree_fock_general")
}
POLYNOMIALS |= {
    "trace": "(A::RM{n, n}) -> sum((i, j, k), A(i, j) * A(j, k) * A(k, i)) + sum(i, A(i, i))^3",
    "delta": "(x::CM) -> sum((i, j), delta(i, j, x(i, j)' * x(i, j)^2))",
    "sizes": "(λ::R, A::RM{M, K}) -> (x::RV{K}) -> sum((i::N{M}, j), λ^2 * x(j)^2) + sum((i, j), A(i, j) * x(j))^2",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_contracting_the_networks_gives_the_value(name: str) -> None:
    """Rows are contracted as they are drawn, with einsum; later rows are what earlier ones mention."""
    d = cd.grad(POLYNOMIALS[name])
    parts = result_of(d.term)
    rng, sizes = np.random.default_rng(0), default_sizes(d.term)
    values = {p: random_value(p.kind, sizes, rng) for p in parts.params}
    names = [f"g{n}" for n, _ in enumerate(parts.outputs)]
    found = rows_of(d.term, names)
    known = {p.name: np.asarray(value) for p, value in values.items()}
    by_name = {row.head.partition("(")[0]: row for row in found}
    lengths = _lengths(found, known)

    def array(label: str) -> np.ndarray:
        if label not in known:
            row = by_name[label]
            slots = row.head.partition("(")[2].rstrip(")").split(", ") if "(" in row.head else []
            known[label] = sum(contracted(t, slots) for t in row.terms)
        return known[label]

    def contracted(t: Network, slots: list[str]) -> np.ndarray:
        operands: list[object] = []
        for node in t.nodes:
            ranges = [lengths.get(t.edges[e].label, 0) for e in node.slots]
            value = np.eye(*ranges) if node.kind == CONDITION else array(node.label)
            operands += [value.conj() if node.conj else value, list(node.slots)]
        scale = -1.0 if t.minus else 1.0
        for factor in t.factor.split(r"\,") if t.factor else []:
            if factor.startswith(r"\sum"):
                scale = scale * lengths["M"]
            elif factor.replace("^{2}", "") in ("\\lambda",):
                scale = scale * known["λ"] ** (2 if "^" in factor else 1)
            else:
                scale = scale * float(factor)
        open_ = {e.label: n for n, e in enumerate(t.edges) if e.open}
        missing = [s for s in slots if s not in open_]
        for n, s in enumerate(missing, len(t.edges)):
            operands += [np.ones(lengths[s]), [n]]
            open_[s] = n
        return scale * np.einsum(*operands, [open_[s] for s in slots]) if operands else np.asarray(scale)

    for v, size in sizes.items():
        if v.sized:
            lengths[v.name] = size
    expected = evaluate(cd_result(d), values, sizes)
    for name_, value in zip(names, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(array(name_), value, rtol=1e-9)


def cd_result(d: object) -> object:
    from combdiff.terms.terms import let, tuple_of

    parts = result_of(d.term)
    return let(parts.bindings, tuple_of(parts.outputs))


def _lengths(found: list[Row], known: dict[str, np.ndarray]) -> dict[str, int]:
    """How far the indices of each name range, read off arrays; one name has one range in these programs."""
    lengths: dict[str, int] = {}
    for (row,) in product(found):
        for t in row.terms:
            for node in t.nodes:
                if node.kind == TENSOR and node.label in known:
                    lengths |= {t.edges[e].label: n for e, n in zip(node.slots, known[node.label].shape, strict=True)}
    return lengths
