"""Loops where they meet the rest of the language: libraries, reductions over all states, sizes that are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import combdiff as cd
from combdiff.explanation import explanation
from tests.emit.array_libraries import Numbers, library
from tests.promises import assert_libraries_agree, differences

__all__ = ["library"]


def horner(c: Any, x: Any) -> Any:
    value = 0.0
    for each in c[::-1]:
        value = value * x + each
    return value


BEGINNINGS = {
    "with an integer": "(c::RV{n}, x::R) -> iterate((s, t) -> s * x + c(n - 1 - t), 0, n)",
    "with a fraction": "(c::RV{n}, x::R) -> iterate((s, t) -> sin(s) * x + c(t), 3/10, n)",
    "with a real number": "(c::RV{n}, x::R) -> abs2(iterate((s, t) -> s * (x + im) + c(t), 1, n))",
    "with several, of which one stays a number": (
        "(c::RV{n}, x::R) -> begin (a, b, k) = iterate(((a, b, k), t) -> (sin(b) + c(t), 2, k + 1), (x, 1, 0), n)\n"
        "a * b * k end"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BEGINNINGS)
def test_libraries_agree_on_loops_that_begin_with_a_number(name: str, library: Numbers) -> None:
    if library.name == "dask":
        pytest.skip("no loops")
    for n in (1, 3):
        assert_libraries_agree(cd.grad(BEGINNINGS[name]), library.name, [np.linspace(0.4, 1.1, n), np.array(0.7)])


@pytest.mark.slow
def test_jax_keeps_the_digits_of_a_loop_that_begins_with_zero() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    given = [np.linspace(0.4, 1.1, 5), 0.7]
    value, *slopes = cd.grad(BEGINNINGS["with an integer"]).compile("jax", value=True)(*given)
    np.testing.assert_allclose(value, horner(*given), rtol=1e-14)
    for found, expected in zip(slopes, differences(horner, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7)


def below(x: Any) -> Any:
    s = 1.0
    for a in x:
        for b in x:
            for c in x:
                s = np.sin(s) * c + a
            s = s + b
    return s


def beside(x: Any) -> Any:
    s = 1.0
    for a in x:
        for b in x:
            s = np.sin(s) * b
        s = s + a
    return s


def at_the_outer_number(x: Any) -> Any:
    """The loop inside is read at the number of the loop around it, so that its adjoint compares the two numbers."""
    s = 1.0
    for a in range(len(x)):
        states = [s]
        for b in range(len(x)):
            states.append(np.sin(states[-1]) * x[b] + a * b * x[a])
        s = np.sin(states[a])
    return s


NESTED = {
    "three deep": (
        "(x::RV{n}) -> iterate((s, a) -> iterate((u, b) -> "
        "iterate((q, c) -> sin(q) * x(c) + x(a), u, n) + x(b), s, n), 1, n)",
        below,
    ),
    "read at a number of its own": (
        "(x::RV{n}) -> iterate((s, a) -> iterate((u, b) -> sin(u) * x(b), s, n) + x(a), 1, n)",
        beside,
    ),
    "read at the number of the loop around it": (
        "(x::RV{n}) -> iterate((s, a) -> sin(scan((u, b) -> sin(u) * x(b) + a * b * x(a), s, n)(a)), 1, n)",
        at_the_outer_number,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NESTED)
def test_loops_in_loops_keep_their_own_definitions(name: str) -> None:
    text, objective = NESTED[name]
    f = cd.grad(text).compile(value=True)
    for n in (1, 2, 3):
        x = np.linspace(0.4, 1.1, n)
        value, slope = f(x)
        np.testing.assert_allclose(value, objective(x), rtol=1e-12)
        np.testing.assert_allclose(slope, differences(objective, [x])[0], rtol=1e-7, atol=1e-8)


GUARDED = {
    "of indices": (
        "(x::RV{n}) -> sum((i, j), i < j, iterate((s, t) -> s / (x(i) - x(j)), 1, 2))",
        lambda x: sum(1 / (a - b) ** 2 for n, a in enumerate(x) for b in x[n + 1 :]),
    ),
    "of numbers": (
        "(x::RV{n}) -> sum(i, 0 < x(i), iterate((s, t) -> s * sqrt(x(i)), log(x(i)), 3))",
        lambda x: sum(a**1.5 * np.log(a) for a in x if a > 0),
    ),
    "in a loop": (
        "(x::RV{n}) -> iterate((s, t) -> where(0 < t, iterate((q, b) -> q / (x(t) - x(0)), s, 2), s), 1, n)",
        lambda x: np.prod([1.0, *(1 / (a - x[0]) ** 2 for a in x[1:])]),
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", GUARDED)
def test_a_loop_that_a_condition_leaves_out_never_matters(name: str) -> None:
    text, objective = GUARDED[name]
    f = cd.grad(text).compile(value=True)
    for x in ([0.7], [-0.3, 0.7], [0.4, -0.8, 1.3]):
        given = np.array(x)
        value, slope = f(given)
        np.testing.assert_allclose(value, objective(given), rtol=1e-12)
        np.testing.assert_allclose(slope, differences(objective, [given])[0], rtol=1e-6, atol=1e-7)


def stepped(x: Any, places: Any, less: int) -> Any:
    s = 1.0
    for t in range(len(x) - less):
        s = np.sin(s) * x[places(t, len(x))]
    return s


FEWER: dict[str, tuple[str, Any]] = {
    "its number": ("iterate((s, t) -> sin(s) * x(t), 1, n - 1)", lambda x: stepped(x, lambda t, n: t, 1)),
    "the next one": ("iterate((s, t) -> sin(s) * x(t + 1), 1, n - 1)", lambda x: stepped(x, lambda t, n: t + 1, 1)),
    "two behind": ("iterate((s, t) -> sin(s) * x(t + 2), 1, n - 2)", lambda x: stepped(x, lambda t, n: t + 2, 2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("place", FEWER)
def test_steps_that_are_fewer_than_entries_read_these(place: str) -> None:
    text, objective = FEWER[place]
    d = cd.grad(f"(x::RV{{n}}) -> {text}")
    f, again = d.compile(value=True), cd.simplified(str(d)).compile()
    for n in (1, 2, 3, 5):
        x = np.linspace(0.4, 1.1, n)
        value, slope = f(x)
        np.testing.assert_allclose(value, objective(x), rtol=1e-12)
        np.testing.assert_allclose(slope, differences(objective, [x])[0], rtol=1e-7, atol=1e-8)
        if n > 2:  # code for what is read back reads no state where there is none
            np.testing.assert_allclose(again(x), slope, rtol=1e-12)


def test_an_index_beyond_the_entries_is_refused_for_fewer_steps_too() -> None:
    with pytest.raises(cd.CombDiffError, match=r"t \+ 2 may leave the range"):
        cd.grad("(x::RV{n}) -> iterate((s, t) -> s * x(t + 2), 1, n - 1)")


REDUCED: dict[str, Any] = {
    "maximum(t, h(t))": np.max,
    "norm(h)": np.linalg.norm,
    "logsumexp(t, h(t))": lambda h: np.log(np.exp(h).sum()),
    "prod(t, h(t) + 2)": lambda h: np.prod(h + 2),
    "minimum(t, 0 < t, h(t))": lambda h: np.min(h[1:]),
    "sum(t, softmax(t, h(t))(t) * h(t))": lambda h: (np.exp(h) * h).sum() / np.exp(h).sum(),
    "sum(t, h(n - t) * h(t))": lambda h: h @ h[::-1],
}


@pytest.mark.slow
@pytest.mark.parametrize("reduction", REDUCED)
def test_all_states_of_a_loop_are_reduced(reduction: str) -> None:
    def objective(x: Any) -> Any:
        states = [0.3]
        for each in x:
            states.append(np.sin(states[-1]) + each)
        return REDUCED[reduction](np.array(states))

    f = cd.grad(f"(x::RV{{n}}) -> begin\n  h = scan((s, t) -> sin(s) + x(t), 0.3, n)\n  {reduction}\nend")
    code = f.compile(value=True)
    for n in (1, 2, 5):
        x = np.linspace(0.9, -1.2, n)
        value, slope = code(x)
        np.testing.assert_allclose(value, objective(x), rtol=1e-12)
        np.testing.assert_allclose(slope, differences(objective, [x])[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("body", "power"), [("iterate((s, t) -> s * x, 1, T - 1)", 4), ("T * x^5 / 5", 5)])
def test_a_given_number_stays_a_parameter_of_the_result(body: str, power: int) -> None:
    d = cd.grad(f"(T::Int) -> (x::R) -> {body}")
    slope = power * 2.0 ** (power - 1)
    assert d.compile()(2.0, T=5) == cd.simplified(str(d)).compile()(2.0, T=5) == slope


@pytest.mark.slow
def test_expanding_keeps_loops_and_multiplies_out_the_rest() -> None:
    text = "(x::RV{n}, a::R) -> begin u = (a + 1)^2; h = iterate((s, t) -> sin(s) * u + x(t), u, n); (h + u)^2 end"
    d = cd.grad(text, expand=True)
    given = [np.linspace(0.4, 1.1, 3), 0.3]
    for found, expected in zip(d.compile()(*given), cd.grad(text).compile()(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert "u =" not in str(d)


def test_a_loop_of_no_steps_is_its_first_state() -> None:
    assert str(cd.grad("(x::R) -> iterate((s, t) -> sin(s) * x, x, 0)^2")) == "(x::R) -> 2 * x"
    all_states = cd.grad(
        "(x::RV{n}) -> begin h = scan((s, t) -> i -> sin(s(i)) * x(i), x, 0); sum((t, i), h(t, i)^2) end"
    )
    np.testing.assert_allclose(all_states.compile()(np.array([0.4, 0.7])), [0.8, 1.4])


@pytest.mark.slow
def test_all_states_of_a_written_number_of_steps_read_back() -> None:
    d = cd.grad("(x::R) -> begin h = scan((s, t) -> sin(s) * x + t, x, 3); maximum(t, h(t)) end")
    assert np.isclose(cd.simplified(str(d)).compile()(0.7), d.compile()(0.7), rtol=1e-12)
    with pytest.raises(cd.CombDiffError, match="4 to 4, and the slot runs from 0 to 3"):
        cd.grad("(x::R) -> begin h = scan((s, t) -> sin(s) * x + t, x, 3); h(4) end")


WHOLE = {
    "captured": "(x::RV) -> sum(i, scan((y, t) -> x, x, 2)(i, 0) * x(0))",
    "for each of an index": "(x::RV) -> sum(i, iterate((y, t) -> k -> y(k) * x(i), x, 2)(0))",
    "until it stops, for each of an index": (
        "(x::RV) -> sum(i, iterate((y, t) -> k -> x(k) * x(i), x, 2, y -> 0 <= norm(y))(0))"
    ),
    "read where it was made": (
        "(x::RV) -> begin u = i -> iterate((y, t) -> k -> sin(y(k)) * x(i), x, 2)(i); sum(i, u(i)) end"
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", WHOLE)
def test_a_tensor_is_a_state_as_a_whole(name: str) -> None:
    report = cd.grad(WHOLE[name]).check()
    assert report, report


def test_a_map_of_loops_reads_the_one_of_its_own_index() -> None:
    d = cd.simplified("(x::RV{n}) -> i -> iterate((s, t) -> j -> sin(s(j)) * x(i), x, 2)(i)")
    x = np.array([0.4, 0.9, -1.1])
    np.testing.assert_allclose(d.compile()(x), [np.sin(np.sin(a) * a) * a for a in x])


@pytest.mark.slow
@pytest.mark.parametrize("steps", ["n", "n - 1", "3", "0"])
def test_an_index_written_n_ranges_over_all_states(steps: str) -> None:
    report = cd.grad(f"(x::RV{{n}}) -> sum(t::N, scan((s, t) -> s * x(0), x(0), {steps})(t)^2)").check()
    assert report, report


def test_a_loop_that_changes_nothing_is_code() -> None:
    f = cd.grad("(x::RV{n}) -> (a::R) -> a * iterate((b, t) -> b, 1, n - 1)").compile(value=True)
    assert f(np.ones(3), 2.0) == (2.0, 1.0)


GIVEN = {
    "in the type of a state": (
        "(n::Int) -> (y::RV) -> "
        "sum(j, scan((v, m) -> i -> v(i) * sum(p, scan((r, q) -> r / 2, y(i), n)(p)), y, n)(n, j))"
    ),
    "less a number": "(n::Int) -> (y::RV) -> iterate((b, t) -> sin(b) * y(0), 1, n - 1)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GIVEN)
def test_a_given_number_of_steps_is_printed(name: str) -> None:
    d = cd.grad(GIVEN[name])
    assert str(d).startswith("(n::Int) ->")
    assert d.check(), d.check()


@pytest.mark.slow
def test_an_explanation_shows_loops_in_loops() -> None:
    d = cd.grad("(x::RV{n}) -> iterate((s, t) -> iterate((u, q) -> u * x(t), s, n) * x(t), 1, n)")
    told = explanation(d)
    assert "u ↦ u(q + 1) = B (mul x(t)) I" in told
    assert "u ↦ s(t + 1) = B (mul x(t)) I" in told


@pytest.mark.parametrize(("steps", "given"), [("T", {"T": 10**13}), ("10000000000000", {})])
def test_a_loop_whose_states_no_machine_holds_is_refused_before_it_starts(steps: str, given: dict[str, int]) -> None:
    f = cd.grad(f"(T::Int) -> (a::R) -> iterate((s, t) -> sin(s) * a, 1, {steps})").compile()
    with pytest.raises(cd.CombDiffError, match="the states of a loop take 80000000000008 bytes, and this machine has"):
        f(0.5, **given)


@pytest.mark.slow
def test_a_loop_of_many_steps_has_code() -> None:
    # beyond some size values are computed in blocks, which read what another loop stores
    d = cd.grad("(T::Int) -> (x::RV) -> sum(i, iterate((s, t) -> i -> sin(s(i)) * x(i), x, T)(i))")
    x = np.linspace(0.5, 1.2, 1000)
    slope = d.compile()(x, T=3000)
    first, last = d.compile()(x[:1], T=3000), d.compile()(x[-1:], T=3000)
    np.testing.assert_allclose(slope[[0, -1]], [*first, *last], rtol=1e-12)


def test_an_early_stop_needs_a_largest_number_of_steps() -> None:
    with pytest.raises(cd.CombDiffError, match="has a largest number of steps before it") as found:
        cd.grad("(x::R) -> iterate((s, t) -> s * x, 1, s -> 1 < s)")
    remedy = str(found.value).rpartition("write it, too: ")[2]
    assert cd.grad(f"(x::R) -> x * {remedy}").compile()(2.0) > 0


@pytest.mark.parametrize("word", ["scan((s, t) -> sin(s) * x(t), 1, n)(n)", "iterate((s, t) -> sin(s) * x(t), 1, n)"])
def test_a_loop_that_is_written_twice_counts_twice(word: str) -> None:
    def objective(x: Any) -> Any:
        return stepped(x, lambda t, n: t, 0) ** 2

    f = cd.grad(f"(x::RV{{n}}) -> {word} * {word}").compile()
    for n in (1, 3):
        x = np.linspace(0.4, 1.1, n)
        np.testing.assert_allclose(f(x), differences(objective, [x])[0], rtol=1e-7)


def test_a_state_that_is_declared_complex_may_begin_with_a_real_number() -> None:
    d = cd.simplified("(x::CV{n}) -> iterate((s::C, t) -> s / 2 + x(t), 0, n)")
    assert np.isclose(d.compile()(np.array([1j, 2.0])), 2 + 0.5j)
    with pytest.raises(cd.CombDiffError, match="a real value is needed here"):
        cd.grad("(x::CV{n}) -> abs2(iterate((s::R, t) -> s / 2 + x(t), 0, n))")


@pytest.mark.slow
def test_a_state_that_is_read_in_a_sum_costs_no_square_of_the_steps() -> None:
    text = """(x::RV{T}, y::RV{T}) -> (W::RM{n, n}, c::RV{n}) -> begin
  h = scan((h, t) -> i -> tanh(sum(j, W(i, j) * h(j)) + x(t)), i -> 0, T)
  sum(t, (sum(i, c(i) * h(t + 1, i)) - y(t))^2) / T
end"""
    d = cd.grad(text)
    plan = d.plan(x=(50,), y=(50,), W=(3, 3), c=(3,))
    assert max(map(plan.entries, plan.steps)) == 50 * 3
    f = d.compile(value=True)
    rng = np.random.default_rng(0)
    for T in (1, 2, 5):
        given = [*rng.normal(size=(2, T)), rng.normal(size=(3, 3)), rng.normal(size=3)]

        def objective(x: Any, y: Any, W: Any, c: Any) -> Any:
            h, total = np.zeros(3), 0.0
            for a, b in zip(x, y, strict=True):
                h = np.tanh(W @ h + a)
                total += (c @ h - b) ** 2
            return total / len(x)

        value, *slopes = f(*given)
        np.testing.assert_allclose(value, objective(*given), rtol=1e-12)
        for found, expected in zip(slopes, differences(objective, given)[2:], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_what_is_read_under_a_condition_in_a_step_is_never_infinite_outside() -> None:
    text = (
        "(x::RV{n}) -> iterate((s, t) -> sin(s) + where(0 < t, 1 / (x(t) - x(0)) + log(x(t) - x(0)) / x(t), 0), 1, n)"
    )

    def objective(x: Any) -> Any:
        s = 1.0
        for t, a in enumerate(x):
            s = np.sin(s) + (1 / (a - x[0]) + np.log(a - x[0]) / a if t else 0.0)
        return s

    f = cd.grad(text).compile(value=True)
    for n in (1, 2, 5):
        x = np.linspace(0.4, 1.1, n)
        value, slope = f(x)
        np.testing.assert_allclose(value, objective(x), rtol=1e-12)
        np.testing.assert_allclose(slope, differences(objective, [x])[0], rtol=1e-6, atol=1e-7)


COMPLEX_JACOBIANS = {
    "of a complex loop": "(x::CV{n}) -> (a::C) -> iterate((s, t) -> s^2 * a / 8 + x(t)' + im / 2, 0, n)",
    "of a real loop": "(x::RV{n}) -> (a::C) -> iterate((s, t) -> s / 2 + abs2(a) + real(a) * s^2 / 9 * x(t), 0.1, n)",
    "of tensors": "(x::RV{n}) -> (a::CV{m}) -> iterate((s, t) -> i -> s(i) * a(i) + conj(a(i)) * x(t), i -> 1, n)",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", COMPLEX_JACOBIANS)
def test_the_jacobian_by_a_complex_number_keeps_its_loops_as_definitions(name: str) -> None:
    d = cd.jacobian(COMPLEX_JACOBIANS[name])
    assert "iterate" in str(d)
    assert d.check()


@pytest.mark.parametrize("value", ["1", "rho"])
def test_a_slot_that_n_minus_1_steps_read_has_n_values(value: str) -> None:
    step = f"(a, j) -> begin rho = A(j, 0); x(i) * {value} end"
    d = cd.grad(f"(x::RV, y::RV{{n}}) -> (A::RM) -> sum(i, iterate({step}, 1, n - 1))")
    f = d.compile()
    for n in (1, 2, 3, 5):
        x, y, A = np.arange(1.0, 4), np.ones(n), np.ones((n, 2))
        expected = np.zeros((n, 2))
        if value == "rho" and n > 1:
            expected[n - 2, 0] = x.sum()
        np.testing.assert_allclose(f(x, y, A), expected)
    with pytest.raises(cd.ArrayError, match="both have the range n"):
        f(np.ones(3), np.ones(2), np.ones((3, 1)))


WHOLE_STATES = {
    "begun as an array of indices": (
        "(A::Sym{n}) -> begin (rho, f, g) = iterate(((x, a, y), i) -> ((j::N{n}) -> iterate((b, k) -> b, j, n)"
        " + im * A(0, 0), im, (j::N{n}) -> im), ((j::N{n}) -> 0, 1, (j::N{n}) -> 1), n - 1); rho(0) * f end"
    ),
    "of which the first is the index itself": (
        "(A::RM{n, n}) -> begin s = iterate((s, t) -> i -> s(i) * A(i, t) + s(t) / 2, (j::N{n}) -> j, n);"
        " sum(i, s(i)^2) end"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WHOLE_STATES)
def test_a_state_that_begins_with_indices_is_a_tensor_of_numbers(name: str) -> None:
    d = cd.grad(WHOLE_STATES[name])
    assert str(cd.simplified(str(d)))
    assert d.check()


@pytest.mark.slow
def test_a_state_that_is_read_whole_beside_one_that_stops_the_loop_is_lowered() -> None:
    text = (
        "@space T begin type = (N{N1}, N{N1}) -> R; symmetries = (((2, 1), :id),) end\n"
        "(A::T, n::Int) -> (x::CV{m}) -> begin (rho, f) = scan(((y, a), i) -> ((j::N{N1}) -> 1, "
        "sum(j, iterate((z, k) -> l -> z(l) / (1 + abs2(z(l))) + im * A[i, i + 1], x, n)(j))), "
        "((j::N{N1}) -> 1, 2), N1 - 2, "
        "(y, a) -> 3/2 <= norm(y)); sum((i, j), rho(i, j)) * sum(i, real(f(i))^2) end"
    )
    d = cd.grad(text)
    f = d.compile(value=True)
    rng = np.random.default_rng(3)
    for n, m, steps in ((3, 2, 2), (4, 1, 1), (5, 3, 0)):
        A = rng.standard_normal((n, n))
        A, x = A + A.T, rng.standard_normal(m) + 1j * rng.standard_normal(m)
        value, slope = f(A=A, n=steps, x=x)
        for at in range(m):
            for direction in (1e-6, 1e-6j):
                ahead, behind = x.copy(), x.copy()
                ahead[at] += direction
                behind[at] -= direction
                expected = (f(A=A, n=steps, x=ahead)[0] - f(A=A, n=steps, x=behind)[0]) / 2e-6
                found = slope[at].real if direction.imag == 0 else slope[at].imag
                np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * max(1, abs(value)))


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_all_states_of_a_loop_without_steps_are_the_first_one(size: int) -> None:
    # an index of n values reads the states before n - 1 steps and the last one, each in its part of the range
    text = "(x::RV{n}) -> begin y = scan((g, t) -> g * x(t + 1), 2, n - 1); sum(i, y(i)^2) end"
    x = np.arange(size) + 1.0
    wanted = sum(np.prod(x[1 : k + 1]) ** 2 for k in range(size)) * 4
    assert cd.simplified(text).compile()(x) == wanted
    assert "%" not in cd.simplified(text).source()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_states_are_gathered_only_where_they_are_read(size: int) -> None:
    # no state is stored of a loop without steps, and none is read of them
    text = "(x::RV{n}) -> (a::C) -> sum(i, abs2(scan((b, j) -> x(i), a, n - 1)(i)))"
    x, a = np.arange(size) + 1.0, 0.5 + 1j
    value, slope = cd.grad(text).compile(value=True)(x, a)
    states = [a, *x[1:]]  # the first one, and then what each index has put in its place
    assert value == pytest.approx(sum(abs(s) ** 2 for s in states))
    assert slope == pytest.approx(2 * a)
