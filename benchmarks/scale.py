"""Growth of derivations: `python benchmarks/scale.py` prints a table, a row a problem and size.

A size is derived once, after one derivation of a small program that loads everything. Matches are those of the laws in
the e-graph; layers of one form count once. `python benchmarks/scale.py ring` prints the rows whose name holds "ring".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from timing import STAGES, shares_text, timed

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


PROBLEMS: tuple[tuple[str, Callable[[int], str], tuple[int, ...]], ...] = (
    ("k equal vectors, symmetric tensor", symmetric_product, (2, 3, 4, 5, 6, 7, 8)),
    ("ring of n matrices", ring, (2, 4, 6, 8, 10)),
    ("ring of n equal matrices", equal_ring, (2, 4, 6, 8, 10)),
    ("matrix-product norm, n equal sites", state_norm, (2, 4, 6, 8)),
    ("matrix-product norm, n sites", lambda n: state_norm(n, equal=False), (2, 4, 6, 8)),
    ("second-order energy by amplitudes", perturbation_energy, (1,)),
    ("doubles energy by amplitudes", doubles_energy, (1,)),
    ("doubles equations by amplitudes", doubles_amplitudes, (1,)),
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
    print(f"| problem | n | seconds | matches | {' | '.join(f'{s}, %' for s in STAGES)} | notes |")
    print("| --- " * (5 + len(STAGES)) + "|")
    for name, n, text in rows(wanted):
        t = timed(text, "grad")
        shares = {stage: t.shares[stage] / t.total for stage in STAGES}
        notes = "; ".join(dict.fromkeys(t.notes))
        print(f"| {name} | {n} | {t.total:.3f} | {t.matches} | {shares_text(shares)} | {notes} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:2])
