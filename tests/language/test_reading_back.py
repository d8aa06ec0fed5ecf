"""What is printed is a program again, of the same value: for all programs, whatever they call things."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.calculus.modes import differentiate, marked_program
from combdiff.errors import CombDiffError, LanguageError, UnsupportedError
from combdiff.gate.gate import Gate
from combdiff.language.inference.infer import infer
from combdiff.language.parsing.parser import parse
from combdiff.language.printing.names import unique_name
from combdiff.language.printing.printer import program_text
from combdiff.simplify.stages import Simplifier
from combdiff.terms.terms import App, Diff, Lam, Sum, Tuple, delta, fresh, number, subterms
from combdiff.terms.types import REAL, Domain, Index, Map
from tests.adversarial_names import NAMES, called, domain_names, names_of
from tests.reading_back import assert_reads_back, reread
from tests.strategies import programs
from tests.thinned import thinned

ROOT = Path(__file__).parents[2]
TEXTS = sorted([*(ROOT / "examples").glob("*.cd"), *(ROOT / "tests" / "golden").glob("*.cd")])
LARGE = {"wannier", "wannier_lattice", "wannier_neighbours", "hartree_fock_general", "restricted_hartree_fock"}
"""Programs whose values take the oracle's plain loops long."""

# of all names those that sizes, indices and items get, so that many of them meet
CLOSE = (*"nmixNRT", "n_3", "n_4", "n₁", "i₁", "i1", "t1", "t2", "x1", "A1", "exp", "sum", "end", "pi")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["grad", "pullback", "hvp"])
@pytest.mark.parametrize("path", thinned(TEXTS, 2), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_result_reads_back(path: Path, mode: str) -> None:
    try:
        term = getattr(cd, mode)(path.read_text(encoding="utf-8")).term
    except CombDiffError:
        pytest.skip(f"there is no {mode} of it")
    assert_reads_back(term, values=path.stem not in LARGE)


def readable(name: str) -> str:
    return unique_name(name, ())


@pytest.mark.slow
@given(program=programs(), data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_program_reads_back_whatever_it_calls_things(program: Lam, data: st.DataObject) -> None:
    names = st.sampled_from(CLOSE) | st.sampled_from(NAMES)
    new = {name: data.draw(names) for name in names_of(program)}
    domains = domain_names(program)
    others = st.lists(names.map(readable), min_size=len(domains), max_size=len(domains), unique=True)
    new |= zip(domains, data.draw(others), strict=True)
    assert_reads_back(called(program, lambda stem: new.get(stem, stem)))


@pytest.mark.slow
@given(program=programs(depth=2), mode=st.sampled_from(("grad", "pullback", "hvp")), expand=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_derivative_of_any_program_reads_back(program: Lam, mode: str, expand: bool) -> None:
    try:
        term = differentiate(marked_program(program), mode, Simplifier(Gate(), expand, seconds=3))
    except CombDiffError:
        return  # what is differentiated, such as the square of an abs2, may be none of ours
    assert_reads_back(term)


PARTS = """(t::(N, N) -> C, g::(N, N) -> C) -> (n::(N) -> C) -> begin
  k = (i) -> n[2] * abs(n[3])
  sum(i, g(2, i) * tan((1/4) * k(i))) + sum(l, n(l) * k(2))
end"""


@pytest.mark.slow
@pytest.mark.parametrize("wrt", ["n", "g", ("g", "n"), ("t", "g", "n")])
@pytest.mark.parametrize("mode", ["grad", "pullback", "hvp"])
def test_parts_that_were_copied_say_each_how_far_their_index_ranges(mode: str, wrt: str) -> None:
    assert_reads_back(getattr(cd, mode)(PARTS, expand=True, wrt=wrt).term)


def test_one_variable_of_two_sums_ranges_over_what_each_of_them_sums() -> None:
    rows = Index(Domain("A.1"))
    A, i = fresh("A", Map((rows,), REAL)), fresh("i", rows)
    term = Lam((A,), Tuple((Sum((i,), App(A, (i,))), Sum((i,), delta(i, number(0), number(1))))))
    assert program_text(term) == "(A::RV{n}) -> (sum(i, A(i)), sum(i::N{n}, delta(i, 0, 1)))"
    assert_reads_back(term)


SPACES = """@space V begin type = (N) -> R end
@space Der begin type = (V) -> V; linear = true end
@space Twice begin type = ((V) -> V) -> R end
"""


@pytest.mark.parametrize(
    "text",
    [
        "(D::Der, a::V) -> (x::V) -> sum(i, D(x)(i)^2 * a(i))",
        "(D::Der, a::(N{M}) -> R) -> (x::V) -> sum(i, D(x)(i)^2 * a(i)) + sum(i::N{M}, 1)",
        "(F::Twice, D::Der) -> (x::V) -> F((y::V) -> i -> D(y)(i)) * x(0)",
    ],
)
def test_a_space_of_spaces_is_declared_with_what_is_said_of_it(text: str) -> None:
    term = infer(parse(SPACES + text))
    assert_reads_back(term, values="F::" not in text)  # a map of functions has no random value
    assert "linear = true" in program_text(term) and "D::Der" in program_text(term)


@pytest.mark.parametrize("name", ["K", "n₁", "_k", "𝐊", "ψ̄", "½"])
def test_a_slot_of_a_space_ranges_over_a_domain_of_any_name(name: str) -> None:
    declared = f"@domain {name} begin base = I; periodic = true end\n@space V begin type = ({name}, {name}) -> R end\n"
    term = infer(parse(declared + "(A::V) -> (x::V) -> sum((k, l), A(k, l) * x(l, k))"))
    assert_reads_back(term)


def test_a_linear_map_stays_linear_in_a_result() -> None:
    d = cd.grad(SPACES + "(D::Der, a::V) -> (x::V) -> sum(i, D(x)(i)^2 * a(i))")
    assert_reads_back(d.term)
    assert any(u.kind == "adjoint" for u in subterms(reread(d.term)) if isinstance(u, Diff))


# --- names of sizes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("(n::R) -> (x::RV) -> sum(i, x(i) * n)", "(n::R) -> (x::RV{m}) -> (i::N{m}) -> n"),
        ("(n::R, m::R) -> (x::RV) -> sum(i, x(i) * n * m)", "(n::R, m::R) -> (x::RV{n_3}) -> (i::N{n_3}) -> n * m"),
        ("(a::R) -> (x::RV) -> sum(n, x(n) * a)", "(a::R) -> (x::RV{m}) -> (n::N{m}) -> a"),
    ],
)
def test_a_size_gets_a_name_that_nothing_else_has(program: str, text: str) -> None:
    d = cd.grad(program)
    assert str(d) == text
    assert_reads_back(d.term)


def test_what_a_derivation_adds_is_not_called_as_a_size_is() -> None:
    d = cd.hvp("(W::RM{k, P}) -> (x::RV{k}) -> sum((i, j), x(i)^2 * W(i, j)^2)")
    assert str(d).startswith("(W::RM{k, P}) -> (x::RV{k}, v::RV{k}) -> ")
    assert_reads_back(d.term)
    n = Index(Domain("n", sized=True))
    x, other = fresh("x", Map((n,), REAL)), fresh("n", REAL)
    assert program_text(Lam((x, other), other)) == "(x::RV{n}, n₁::R) -> n₁"


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("(n::R) -> (x::RV{n}) -> sum(i, x(i) * n)", "parameter"),
        ("(x::RV{n}) -> begin n = sum(i, x(i)); n^2 end", "definition"),
        ("(x::RV{n}) -> begin (a, n) = (x(0), x(1)); a * n end", "definition"),
        ("(x::RV{n}) -> begin n := 2; n * x(0) end", "definition"),
        ("(x::RV{n}) -> begin f = (n::R) -> n^2; f(x(0)) end", "parameter"),
        ("@space T begin type = (N{n}, N) -> R end\n(x::T, n::R) -> n * x(0, 0)", "parameter"),
        ("(r::RF, x::RV{t}) -> sum(t::R, r(t)) * x(0)", "parameter"),
    ],
)
def test_a_name_of_a_size_is_no_other_name(program: str, what: str) -> None:
    with pytest.raises(LanguageError, match=f"is a {what} here and the name of a size elsewhere") as caught:
        cd.grad(program)
    message = str(caught.value)
    assert message.count("^") >= 2 and "the size is named here" in message and "rename one of the two" in message


@pytest.mark.parametrize(
    "program", ["(w::RV{e}) -> sum(e, w(e)^2)", "(w::RV{e}) -> (i::N{e}) -> w(i)", "(w::RV{e}) -> (e) -> w(e)^2"]
)
def test_an_index_may_be_called_as_what_it_runs_over(program: str) -> None:
    term = infer(parse(program))
    assert_reads_back(term)
    assert program_text(term).startswith("(w::RV{e})")


@pytest.mark.parametrize(
    "program",
    [
        "(x::RV{n}) -> begin rho = (i::N{n}, j::N{n}) -> 1; rho(0, 0) * x(0) end",
        "(s::RV, x::RV{n}) -> begin h = (l, i::N{n}) -> s(l); sum((l, i), h(l, i) * x(i)) end",
        "(x::RV, s::R) -> begin h = (i) -> s; sum(i, h(i) * x(i)) + h(0) end",
    ],
)
def test_the_index_of_a_value_that_stands_nowhere_says_how_far_it_ranges(program: str) -> None:
    term = infer(parse(program))
    assert_reads_back(term)


def test_an_index_that_a_derivation_adds_is_not_called_as_a_size_is() -> None:
    d = cd.grad("(B::Sym{d}) -> (M::Sym{d}) -> sum((k, l), B(k, l)) * M(0, 0)^2")
    assert "d::" not in str(d).replace("N{d}", "") and "d1" in str(d)
    assert_reads_back(d.term)


def test_what_divides_by_zero_under_a_condition_reads_back() -> None:
    d = cd.grad("(x::CV{n}) -> sum((i, j), real(indicator(i, 2, delta(j, i, x(j) / abs2(x(i) - x(j))))))")
    assert "/ 0" in str(d)
    assert_reads_back(d.term)


def test_a_derivative_that_always_divides_by_zero_is_refused() -> None:
    """A sum over a Hermitian matrix is real, so that its imaginary part is zero."""
    with pytest.raises(UnsupportedError, match="divides by zero for all arrays"):
        cd.grad("(A::Her) -> log(imag(sum((i, j), A(i, j))))")


@pytest.mark.sampled
@pytest.mark.parametrize("size", ["max", "exp", "mean", "size"])
def test_a_size_may_be_called_as_a_function_is(size: str) -> None:
    d = cd.grad(f"(x::RV{{{size}}}) -> sum(i, x(i)^2) * {size}")
    assert str(d) == f"(x::RV{{{size}}}) -> i -> 2 * {size} * x(i)"
    assert str(cd.simplified(str(d))) == str(d)
