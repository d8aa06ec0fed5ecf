"""Growth of derivations: `python benchmarks/scale.py` prints a table, a row a problem and size.

A size is derived once, after one derivation of a small program that loads everything. Matches are those of the laws
in the e-graphs, nodes those of the largest one; layers of one form count once. Rows of canonical names alone are the
median of twenty. `python benchmarks/scale.py ring` prints the rows whose name holds "ring".
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from timing import STAGES, shares_text, timed

from combdiff.canon.canonical import canonical
from combdiff.terms.terms import App, Term, fresh, mul, total
from combdiff.terms.types import REAL, Domain, Index, Map, Symmetry

SPACES = """@domain O begin base = I end
@domain V begin base = I end
@space OOVV begin type = (O, O, V, V) -> R; symmetries = (((2, 1, 3, 4), :neg), ((1, 2, 4, 3), :neg)) end
@space VVOO begin type = (V, V, O, O) -> R; symmetries = (((2, 1, 3, 4), :neg), ((1, 2, 4, 3), :neg)) end
"""


def _names(letter: str, count: int) -> list[str]:
    return [f"{letter}{n}" for n in range(count)]


def symmetric_product(k: int) -> str:
    """Σ T(i1, …, ik) x(i1) ⋯ x(ik), T fully symmetric."""
    indices = _names("i", k)
    exchange = ", ".join(map(str, [2, 1, *range(3, k + 1)]))
    cycle = ", ".join(map(str, [*range(2, k + 1), 1]))
    entries = " * ".join(f"x({i})" for i in indices)
    symmetries = f"((({exchange}), :id), (({cycle}), :id))"
    return (
        f"@space T begin type = ({', '.join(['N'] * k)}) -> R; symmetries = {symmetries} end\n"
        f"(T::T) -> (x::RV) -> sum(({', '.join(indices)}), T({', '.join(indices)}) * {entries})"
    )


def ring(n: int) -> str:
    """tr(A₁A₂…Aₙ)."""
    indices = _names("i", n)
    entries = " * ".join(f"A{m}({indices[m]}, {indices[(m + 1) % n]})" for m in range(n))
    return f"({', '.join(f'A{m}::CM' for m in range(n))}) -> sum(({', '.join(indices)}), {entries})"


def equal_ring(n: int) -> str:
    """tr(Aⁿ)."""
    indices = _names("i", n)
    entries = " * ".join(f"A({indices[m]}, {indices[(m + 1) % n]})" for m in range(n))
    return f"(A::CM) -> sum(({', '.join(indices)}), {entries})"


def state_norm(n: int, equal: bool = True) -> str:
    """⟨ψ|ψ⟩ of a matrix-product state of n sites with open ends."""
    sites = ["A"] * n if equal else _names("A", n)
    entries = [f"{A}(a{m}, s{m}, a{m + 1}) * {A}(b{m}, s{m}, b{m + 1})'" for m, A in enumerate(sites)]
    ends = f"L(a0) * L(b0)' * R(a{n}) * R(b{n})'"
    indices = [*_names("a", n + 1), *_names("b", n + 1), *_names("s", n)]
    unknowns = ", ".join(f"{A}::T3" for A in dict.fromkeys(sites))
    return (
        "@space T3 begin type = (N, N, N) -> C end\n"
        f"(L::CV, R::CV) -> ({unknowns}) -> sum(({', '.join(indices)}), {' * '.join(entries)} * {ends})"
    )


def perturbation_energy(_: int) -> str:
    """Closed-shell second-order energy by its amplitudes: Σ t(iajb)(2(ia|jb) − (ib|ja))."""
    return """@domain O begin base = I end
@domain V begin base = I end
@space G begin type = (O, V, O, V) -> R; symmetries = (((3, 4, 1, 2), :id),) end
(g::G) -> (t::G) -> sum((i, a, j, b), t(i, a, j, b) * (2 * g(i, a, j, b) - g(i, b, j, a)))"""


def doubles_energy(_: int) -> str:
    """The coupled-cluster doubles energy ¼ Σ ⟨ij‖ab⟩ t(abij)."""
    return SPACES + "(v::OOVV) -> (t::VVOO) -> 1/4 * sum((i, j, a, b), v(i, j, a, b) * t(a, b, i, j))"


def doubles_amplitudes(_: int) -> str:
    """The four contractions of the doubles equations that are quadratic in t, with multipliers l."""
    terms = (
        "1/4 * v(k, m, c, d) * t(c, d, i, j) * t(a, b, k, m)",
        "v(k, m, c, d) * t(a, c, i, k) * t(b, d, j, m)",
        "-1/2 * v(k, m, c, d) * t(a, b, i, k) * t(c, d, j, m)",
        "-1/2 * v(k, m, c, d) * t(a, c, i, j) * t(b, d, k, m)",
    )
    bound = "i, j, k, m, a, b, c, d"
    whole = " + ".join(f"sum(({bound}), l(a, b, i, j) * ({term}))" for term in terms)
    return SPACES + f"(v::OOVV, l::VVOO) -> (t::VVOO) -> {whole}"


def _chain(first: str, step: Callable[[int], str], n: int, last: str) -> str:
    return "\n".join(["begin", first, *(step(k) for k in range(n)), last, "end"])


def scalar_chain(n: int) -> str:
    """h = sin(h) cos(h) + cos(h), n times; bounded, so that it can be checked on numbers."""
    return "(x::R) -> " + _chain("h0 = x", lambda k: f"h{k + 1} = sin(h{k}) * cos(h{k}) + cos(h{k})", n, f"h{n}")


def layer_chain(n: int) -> str:
    """h = sin(A h), n times."""
    steps = _chain(
        "h0 = i -> x(i)", lambda k: f"h{k + 1} = i -> sin(sum(j, A(i, j) * h{k}(j)))", n, f"sum(i, h{n}(i)^2)"
    )
    return "(A::RM) -> (x::RV) -> " + steps


def composition(n: int) -> str:
    """h = f(h) + g(h), n times, f and g unknown."""
    return "(f::RF, g::RF) -> (x::R) -> " + _chain("h0 = x", lambda k: f"h{k + 1} = f(h{k}) + g(h{k})", n, f"h{n}")


def many_unknowns(n: int) -> str:
    """Σ a sin(b) over n unknowns in a ring."""
    unknowns = ", ".join(f"{a}::R" for a in _names("a", n))
    return f"({unknowns}) -> " + " + ".join(f"a{m} * sin(a{(m + 1) % n})" for m in range(n))


def second_order_energy(_: int) -> str:
    """Half of the Lagrangian of second-order perturbation theory in spin orbitals, by its amplitudes."""
    bound = "i, j, a, b"
    return (
        SPACES
        + "(v::OOVV, e::(O) -> R, f::(V) -> R) -> (t::VVOO) -> "
        + f"1/2 * sum(({bound}), v(i, j, a, b) * t(a, b, i, j)) + "
        + f"1/4 * sum(({bound}), t(a, b, i, j)^2 * (f(a) + f(b) - e(i) - e(j)))"
    )


def doubles_residual(_: int) -> str:
    """The doubles equations with multipliers l: linear terms, ladders, rings, and the four quadratic contractions."""
    two = "(((2, 1, 3, 4), :neg), ((1, 2, 4, 3), :neg))"
    spaces = (
        f"@space VVVV begin type = (V, V, V, V) -> R; symmetries = {two} end\n"
        f"@space OOOO begin type = (O, O, O, O) -> R; symmetries = {two} end\n"
        "@space OVVO begin type = (O, V, V, O) -> R end\n"
    )
    terms = (
        ("", "v(i, j, a, b)"),
        ("", "2 * (f(a) - e(i)) * t(a, b, i, j)"),
        ("c, d, ", "1/2 * w(a, b, c, d) * t(c, d, i, j)"),
        ("k, m, ", "1/2 * u(k, m, i, j) * t(a, b, k, m)"),
        ("k, c, ", "4 * r(k, b, c, j) * t(a, c, i, k)"),
    )
    linear = " + ".join(f"sum(({inner}i, j, a, b), l(a, b, i, j) * {term})" for inner, term in terms)
    given = "v::OOVV, w::VVVV, u::OOOO, r::OVVO, e::(O) -> R, f::(V) -> R, l::VVOO"
    quadratic = doubles_amplitudes(1).split("-> (t::VVOO) -> ")[1]
    return SPACES + spaces + f"({given}) -> (t::VVOO) -> {linear} + {quadratic}"


def integrals(pairs: Sequence[str]) -> Term:
    """A product of four integrals V of eightfold symmetry over eight dummies, named by their places: "abcd" …"""
    n = Index(Domain("n"))
    exchanges = ((2, 1, 3, 4), (3, 4, 1, 2))
    V = fresh("V", Map((n,) * 4, REAL, tuple(Symmetry.permutation(p, "id") for p in exchanges)))
    dummies = {letter: fresh(letter, n) for letter in "abcdefgh"}
    return total(list(dummies.values()), mul(*(App(V, tuple(dummies[c] for c in p)) for p in pairs)))


def naming_rows(wanted: str) -> Iterator[tuple[str, float]]:
    """Names alone: eight dummies and four equal factors, whose indices are linked in a ring, at random, or in pairs."""
    links = {
        "ring": ("abcd", "cdef", "efgh", "ghab"),
        "random": ("acbe", "dgfa", "hcge", "bdhf"),
        "crossed": ("abcd", "aefb", "cegh", "dfgh"),
    }
    for kind, pairs in links.items():
        name = f"names of four eightfold V, {kind}"
        if wanted in name:
            seconds = []
            for _ in range(20):
                t = integrals(pairs)
                start = time.perf_counter()
                canonical(t)
                seconds.append(time.perf_counter() - start)
            yield name, statistics.median(seconds)


PROBLEMS: tuple[tuple[str, Callable[[int], str], tuple[int, ...]], ...] = (
    ("k equal vectors, symmetric tensor", symmetric_product, (2, 3, 4, 5, 6, 7, 8)),
    ("ring of n matrices", ring, (2, 4, 6, 8, 10)),
    ("ring of n equal matrices", equal_ring, (2, 4, 6, 8, 10)),
    ("matrix-product norm, n equal sites", state_norm, (2, 4, 6, 8)),
    ("matrix-product norm, n sites", lambda n: state_norm(n, equal=False), (2, 4, 6, 8)),
    ("second-order energy by amplitudes", perturbation_energy, (1,)),
    ("second-order Lagrangian by amplitudes", second_order_energy, (1,)),
    ("doubles energy by amplitudes", doubles_energy, (1,)),
    ("quadratic doubles terms by amplitudes", doubles_amplitudes, (1,)),
    ("doubles equations by amplitudes", doubles_residual, (1,)),
    ("chain of n lets", scalar_chain, (10, 100, 300, 1000)),
    ("chain of n layers", layer_chain, (10, 100, 300, 1000)),
    ("h = f(h) + g(h), n deep", composition, (10, 30, 100)),
    ("n unknown numbers", many_unknowns, (10, 100, 300, 1000)),
)


def rows(wanted: str) -> Iterator[tuple[str, int, str]]:
    """The problems whose name holds `wanted`: name, size, program."""
    for name, program, sizes in PROBLEMS:
        if wanted in name:
            yield from ((name, n, program(n)) for n in sizes)


def main(wanted: str = "") -> None:
    """Print the table."""
    timed("(x::R) -> x^2", "grad")
    print(f"| problem | n | seconds | matches | nodes | {' | '.join(f'{s}, %' for s in STAGES)} | notes |")
    print("| --- " * (6 + len(STAGES)) + "|")
    for name, n, text in rows(wanted):
        t = timed(text, "grad")
        shares = {stage: t.shares[stage] / t.total for stage in STAGES}
        notes = "; ".join(dict.fromkeys(t.notes))
        print(
            f"| {name} | {n} | {t.total:.3f} | {t.matches} | {t.nodes} | {shares_text(shares)} | {notes} |", flush=True
        )
    for name, seconds in naming_rows(wanted):
        print(f"| {name} | 8 | {seconds:.4f} |" + " |" * (3 + len(STAGES)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
