"""Code for CuPy, JAX, PyTorch and Dask gives the numbers of the code for NumPy, and refuses what does not fit."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays.lower.argument_names import ArgumentNames
from combdiff.arrays.lower.lower import lower
from combdiff.arrays.lower.signature import result_of
from combdiff.arrays.plan import Argument
from combdiff.emit.backends import BACKENDS
from combdiff.emit.emit import emit, source, spelling_of
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.points import Offsets, listed
from combdiff.meaning.samples import random_value
from combdiff.meaning.sizes import default_sizes
from combdiff.run.compiled import CodeOptions, Compiled
from combdiff.run.executing import compile_source
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.terms import TWO, App, Diff, Lam, Term, add, delta, fresh, mul, number, substitute, total
from combdiff.terms.types import COMPLEX, REAL, Domain, Index, Number, is_complex
from tests import random_terms as rt
from tests.emit.array_libraries import LIBRARIES, Numbers, library
from tests.function_points import applied, points_of
from tests.thinned import thinned

__all__ = ["library"]

EXAMPLES = Path(__file__).parents[2] / "examples"
ZONE = "@domain BZ begin base = I; periodic = true end\n@domain X begin symmetric = true end\n"
ZONE += "@space F begin type = (BZ,) -> C end\n@space W begin type = (X,) -> R end\n"
STEPS = """@domain Z begin base = I; periodic = true end
@domain X begin base = I; list = true; symmetric = true end
"""
LATTICE = """@domain K begin base = (I, I, I); periodic = true end
@domain X begin base = (I, I, I); list = true; symmetric = true end
"""
TEXTS = {
    "quadratic": "(A::Her) -> (x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))",
    "real with complex": "(A::RM, y::RV) -> (x::CV) -> "
    "sum((i, j), abs2(x(i)) * A(i, j) * y(j)) + abs2(sum(i, y(i) * x(i)))",
    "trace": "(A::CM) -> (X::CM) -> abs2(sum((i, j), A(i, j) * X(j, i)) + sum(i, X(i, i)))",
    "diagonal": "(y::RV) -> (A::RM) -> sum(i, y(i) * A(i, i)^3)",
    "cubic": "@space T begin type = (N, N, N) -> R; symmetries = (((2, 1, 3), :id), ((1, 3, 2), :id)) end\n"
    "(T::T) -> (x::RV) -> sum((i, j, k), T(i, j, k) * x(i) * x(j) * x(k))",
    "functions": "(a::RV) -> (x::RV) -> sum(i, a(i) * exp(sin(x(i))) + tanh(x(i))^2 + atan(a(i) * x(i)) + cosh(x(i)))",
    "complex functions": "(a::CV) -> (z::CV) -> sum(i, abs(sin(z(i)) + a(i)) + real(exp(z(i)) * a(i)) + imag(z(i))^2)",
    "complex branches": "(a::CV) -> (z::CV) -> sum(i, abs2(sqrt(a(i) * z(i)) + log(z(i)) + z(i)^(1/3)))",
    "real powers": "(a::RV) -> (x::RV) -> "
    "sum(i, (1 + x(i)^2)^(1/2) + 2^x(i) + (2 + abs(x(i)))^(-3) + sqrt(2) * a(i) * x(i))",
    "indicator": "(a::RV) -> (x::RV) -> "
    "sum((i, j), indicator(i, j, a(i) * x(i)^2 * x(j))) + sum(i, indicator(0, x(i), x(i)))",
    "delta": "(A::RM) -> (x::RV) -> sum((i, j, k), delta(i, j, A(i, k) * x(j) * x(k)^2))",
    "rolls": ZONE + "(a::F) -> (u::F) -> sum(k::BZ, abs2(u(k + 1) - u(k)) + real(a(k)' * u(k - 2) * u(k)))",
    "gathers": ZONE + "(w::W) -> (u::F) -> sum((k::BZ, b::X), w(b) * abs2(u(k + b) - u(k)) + w(-b) * abs2(u(2*k + b)))",
    "numbers of indices": ZONE + "(a::F) -> (w::W) -> sum((b::X, k::BZ), b^2 * w(b)^2 * abs2(a(k)) + k * w(-b)^3)",
    "lists": STEPS
    + "(w::(X) -> R) -> (u::(Z) -> C) -> sum((k::Z, b::X), w(b) * real(u(k)' * u(k + b)) + abs2(u(2*k)))",
    "back in lists": STEPS + "(w::(X) -> R) -> sum(b::X, b * w(b)^2 * w(-b) + w(b))",
    "lattices": LATTICE + "(w::(X) -> R) -> (u::(K) -> C) -> sum((k::K, b::X), w(b) * w(-b) * abs2(u(k + b) - u(k)))",
    "choice of a number": "(a::R) -> (t::R) -> indicator(0, t, a * t^2)",
    "complex root": "(W::CM, b::CV) -> (y::CV) -> begin\n"
    "  x = root((x::CV) -> i -> x(i) + abs2(x(i)) / 9 + sum(j, W(i, j) * x(j)) / 9 - y(i) - b(i))\n"
    "  sum(i, abs2(x(i)))\nend",
    "two unknowns": "(A::RM) -> (x::CV, y::RV) -> sum((i, j), real(x(i)' * A(i, j) * x(j)) * y(j)) + sum(i, y(i)^2)",
    "shared value": "(A::CM) -> (x::CV) -> begin\n"
    "  v = i -> sum(j, A(i, j) * x(j))\n  sum(i, abs2(v(i))) + sum(i, abs2(v(i))^2)\nend",
    "numbers": "(a::R, c::C) -> (t::R, z::C) -> exp(a * t) * abs2(z + c) + sqrt(2) * t^2",
    "four index": "@space T begin type = (N, N, N, N) -> C end\n(J::T) -> (A::CM) -> "
    "abs2(sum((p, q, r, s), J(p, q, r, s) * A(q, r) * A(s, p)))",
    "constant": "(x::RV) -> sum(i, 3 * x(i))",
    "own function": "(g::RF) -> (x::RV) -> sum(i, g(x(i))^2)",
    "guarded pairs": "(s::R) -> (x::RM) -> begin\n  r = (i, j) -> sqrt(sum(c, (x(i, c) - x(j, c))^2))\n"
    "  sum((i, j), indicator(i + 1, j, (s / r(i, j))^4 - log(r(i, j))))"
    " + sum(i, indicator(1, i, x(i, 0) / (x(0, 0) * i)))\nend",
    "guarded complex numbers": "(w::CV) -> (z::CV) -> "
    "sum((i, j), indicator(i + 1, j, w(i)' * w(j) / (z(i) - z(j))^2 + sqrt(z(i) - z(j)))) ▷ real",
    "guarded in several ways": "(x::RV) -> begin\n  d = i -> log(x(i)^2)\n"
    "  sum((i, j), indicator(i + 1, j, d(i) * x(j)))"
    " + sum((i, j), delta(i, 2 * j, exp(indicator(x(i), 0, d(j)))))\nend",
    "guarded numbers": "(x::RV) -> sum((i, j), indicator(i + 1, j, sqrt(x(i) - x(i)) + 2^(i - i) * x(j) + x(i)^2 / 3))",
    "functions of numbers": "(x::RV{n}) -> begin\n  m = sum(i::N{n}, 1)\n"
    "  log(abs2(m) + 1) * sum(i, x(i)^2) * exp(abs2(2/3))\nend",
    "guarded function": "(g::RF) -> (x::RV) -> sum((i, j), indicator(i + 1, j, g(1 / (x(i) - x(j))))) / 1e6",
    "vectors of matrices": "(T::RM) -> (A::RM, B::RM) -> sum((i, j), (sum(k, A(i, k) * B(k, j)) - T(i, j))^2)",
}
TEXTS |= {path.stem: path.read_text() for path in EXAMPLES.glob("*.cd") if path.stem != "least_action"}
# dense systems of equations are not solved in chunks
WHOLE = {"implicit", "complex root"}
CUBE = {"g": lambda x: x**3, "grad_g": lambda x: 3 * x**2, "pullback_g": lambda x, k: 3 * x**2 * k}
CUBE |= {"grad_grad_g": lambda x: 6 * x, "pullback_grad_g": lambda x, k: 6 * x * k}
CUBE |= {"grad_grad_grad_g": lambda x: 6 + 0 * x}
CUBE |= {"pullback_pullback_g": lambda x, k, c: (6 * x.conj() * k * c.conj(), 3 * x**2 * c)}


@cache
def derived(name: str, mode: str) -> cd.Derivation:
    return getattr(cd, mode)(TEXTS[name])


@cache
def compiled(name: str, mode: str, backend: str) -> Compiled:
    return derived(name, mode).compile(backend, value=mode == "grad")


def arrays(d: cd.Derivation, f: Compiled, plain: int, seed: int = 0) -> dict[str, object]:
    """Random values of the arguments, in the declared symmetries."""
    rng = np.random.default_rng(seed)
    sizes = default_sizes(d.term, seed=seed)
    if plain < 3:
        sizes = {d: n if isinstance(n, Offsets) else max(plain, 1) if d.symmetric else plain for d, n in sizes.items()}
    kinds = {v.name: v.kind for v in result_of(d.term).params}
    given_: dict[str, object] = {}
    for a in f.arguments:
        if a.offsets is not None:
            rows = listed(a.offsets, sizes).rows
            given_[a.name] = rows if a.offsets.directions > 1 else rows[:, 0]
        elif isinstance(a.kind, Index):
            given_[a.name] = sizes[a.kind.domain]
        elif a.callable:
            given_[a.name] = CUBE[function_of(a, d.term)]
        elif not a.optional:
            given_[a.name] = 0.3 * np.asarray(random_value(kinds.get(a.name, a.kind), sizes, rng))
    return given_


def function_of(a: Argument, term: Term) -> str:
    """Which function of a name of the program an argument is, whatever it is called: `grad_g`."""
    heads = ArgumentNames(term).derivatives_in(term)
    return whole_name(heads[a.name]) if a.name in heads else "_".join(a.made or (a.name,))


def whole_name(head: Term) -> str:
    return f"{head.kind}_{whole_name(head.of)}" if isinstance(head, Diff) else head.name


def is_list(value: object) -> bool:
    """Whether a value is a list of offsets, which NumPy's arrays are for every library."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "i"


def converted(values: dict[str, object], to: Numbers) -> dict[str, object]:
    return {k: v if callable(v) or isinstance(v, int) or is_list(v) else to.to(v) for k, v in values.items()}


def several(found: object) -> tuple[object, ...]:
    return found if isinstance(found, tuple) else (found,)


def assert_close(found: object, wanted: object, to: Numbers) -> None:
    for f, w in zip(several(found), several(wanted), strict=True):
        f, w = to.back(f), np.asarray(w)
        assert f.shape == w.shape
        scale = max(1.0, np.abs(w).max(initial=0.0))
        np.testing.assert_allclose(f, w, rtol=0, atol=1e-10 * scale)
        assert f.dtype.kind == w.dtype.kind or w.dtype.kind in "iu"


@pytest.mark.sampled
@pytest.mark.parametrize("plain", [3, 1, 0])
@pytest.mark.parametrize("mode", ["grad", "hvp"])
@pytest.mark.parametrize("name", thinned(TEXTS, 2))
def test_a_backend_agrees_with_numpy(library: Numbers, name: str, mode: str, plain: int) -> None:
    if library.name == "dask" and (name in WHOLE or plain == 0):
        pytest.skip("Dask solves no equations here, and does not contract empty arrays")
    f = compiled(name, mode, "numpy")
    values = arrays(derived(name, mode), f, plain)
    try:
        wanted = f(**values)
    except ArrayError:
        pytest.skip("the program has no values at this size")
    assert_close(compiled(name, mode, library.name)(**converted(values, library)), wanted, library)


@pytest.mark.slow
@pytest.mark.parametrize("name", thinned(TEXTS, 2))
def test_jax_compiles_the_emitted_function(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    f = compiled(name, "grad", "numpy")
    values = arrays(derived(name, "grad"), f, 3)
    own = {k: v for k, v in values.items() if callable(v) or isinstance(v, int) or is_list(v)}
    rest = {k: v for k, v in values.items() if k not in own}
    wanted = f(**values)
    to = Numbers("jax")
    emitted = compile_source(derived(name, "grad").source("jax", value=True), "value_and_gradient")
    order = [a.name for a in f.arguments if not a.optional]
    for function in (lambda **v: emitted(*(({**v, **own})[n] for n in order)), compiled(name, "grad", "jax")):
        extra = {} if function is not compiled(name, "grad", "jax") else own
        jitted = jax.jit(lambda v, function=function, extra=extra: function(**v, **extra))
        assert_close(jitted({k: to.to(v) for k, v in rest.items()}), wanted, to)


@pytest.mark.long
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.integers(0, 10**9), st.sampled_from((1, 2, 3)), st.sampled_from((1, 2, 3, 5)), st.sampled_from((1, 3)))
def test_random_terms_agree_with_numpy(library: Numbers, seed: int, n: int, bz: int, x: int) -> None:
    term = rt.Terms(random.Random(seed)).program()
    sizes = {rt.N: n, rt.M: 2, rt.BZ: bz, rt.X: x}
    rng = np.random.default_rng(seed)
    plan = lower(term, sizes)
    kinds = [v.kind for v in result_of(term).params]
    values = [np.asarray(random_value(kind, sizes, rng)) for kind in kinds]
    values = [v.astype(complex) if is_complex(kind) else v for v, kind in zip(values, kinds, strict=True)]
    sizes_asked = [sizes[a.kind.domain] for a in plan.arguments if isinstance(a.kind, Index)]
    with np.errstate(all="ignore"):
        wanted = compile_source(emit(plan, spelling_of("numpy")))(*values, *sizes_asked)
        text = emit(plan, spelling_of(library.name))
        found = compile_source(text)(*map(library.to, values), *sizes_asked)
        for f, w in zip(several(found), several(wanted), strict=True):
            f, w = library.back(f.resolve_conj().resolve_neg() if hasattr(f, "resolve_conj") else f), np.asarray(w)
            assert f.shape == w.shape
            scale = max(1.0, np.abs(w[np.isfinite(w)]).max(initial=0.0))
            np.testing.assert_allclose(f, w, rtol=1e-7, atol=1e-9 * scale, err_msg=text)


@pytest.mark.parametrize("kind", [REAL, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_every_function_of_numbers_is_what_it_means(library: Numbers, name: str, kind: Number) -> None:
    points = points_of(name, kind == COMPLEX)
    if not points or (kind == COMPLEX and name in ("erf", "erfc") and library.name not in ("numpy", "dask")):
        return
    if kind == COMPLEX and name not in ("asinh", "atan"):
        points = (*points, (-1.3 + 0j,))
    t, variables = applied(name, kind)
    n = rt.index("n", rt.N)
    tensors = tuple(rt.tensor(v.name, rt.N, complex=kind == COMPLEX) for v in variables)
    body = substitute(t, {v: App(z, (n,)) for v, z in zip(variables, tensors, strict=True)})
    f = Compiled(Lam(tensors, Lam((n,), body)), CodeOptions(library.name))
    wanted = [evaluate(t, dict(zip(variables, numbers, strict=True))) for numbers in points]
    assert_close(f(*(library.to(np.array(xs)) for xs in zip(*points, strict=True))), np.array(wanted), library)


@pytest.mark.parametrize("name", SCALAR_FUNCTIONS)
def test_every_function_of_a_number_without_an_index(library: Numbers, name: str) -> None:
    t, variables = applied(name, REAL)
    f = Compiled(Lam(variables, t), CodeOptions(library.name))
    for numbers in points_of(name, complex_=False):
        wanted = evaluate(t, dict(zip(variables, numbers, strict=True)))
        assert_close(f(*(library.to(np.array(x)) for x in numbers)), np.array(wanted), library)


# --- the text -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_text_imports_its_library_alone(backend: str) -> None:
    text = derived("wannier", "grad").source(backend)
    imports = [line for line in text.splitlines() if line.startswith(("import", "from"))]
    assert imports == spelling_of(backend).imports.splitlines()
    assert backend in ("numpy", "dask") or not re.search(r"\bnp\.", text)
    compile(text, backend, "exec")


SPECIAL = {
    "numpy": "from scipy import special",
    "cupy": "from cupyx.scipy import special",
    "jax": "from jax.scipy import special",
    "dask": "from scipy import special",
}


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_text_imports_special_functions_where_it_has_some(backend: str) -> None:
    text = cd.grad("(special::RV) -> (x::RV) -> sum(i, special(i) * lgamma(x(i)))").source(backend)
    imports = [line for line in text.splitlines() if line.startswith(("import", "from"))]
    more = [SPECIAL[backend]] if backend in SPECIAL else []
    assert imports == [*spelling_of(backend).imports.splitlines(), *more]
    others = cd.grad("(x::RV) -> sum(i, exp(x(i)))").source(backend)
    assert "special" not in others


@pytest.mark.parametrize("backend", ["cupy", "jax", "torch"])
def test_an_error_function_of_complex_numbers_is_refused_where_there_is_none(backend: str) -> None:
    with pytest.raises(cd.CombDiffError, match="the function erf of complex numbers has no spelling"):
        cd.pullback("(z::C) -> exp(erf(z))").source(backend)


def test_jax_code_writes_nothing_in_place() -> None:
    y, n = rt.tensor("y", rt.N), rt.N
    p, q = rt.index("p", n), rt.index("q", n)
    text = source(Lam((y,), Lam((p, q), delta(p, q, App(y, (p,))))), backend="jax")
    assert ".at[p, p].set(y)" in text


@pytest.mark.slow
def test_torch_gives_an_equation_lists_of_offsets_as_they_are() -> None:
    text = """@domain S begin base = I; list = true end
        @domain Z begin base = I; periodic = true end
        (X::(S, Z) -> R) -> sum(j, root((y::(S) -> R) -> m -> y(m)^3 + y(m) + sum(i, X(i, m + i)))(j))"""
    assert "equation_y(x, X, S)" in cd.grad(text).source(backend="torch")


def test_torch_adds_at_one_place_of_an_axis() -> None:
    ring = "@domain Z begin base = I; periodic = true end\n"
    d = cd.grad(ring + "(A::(Z, Z) -> R) -> sum(i::Z, A(0, 2 * i))")
    assert "index_put_((torch.tensor(" in d.source(backend="torch")
    torch = pytest.importorskip("torch")
    A = np.zeros((4, 4))
    np.testing.assert_array_equal(d.compile("torch")(torch.tensor(A)).numpy(), d.compile()(A))


def test_torch_casts_the_real_factor_only() -> None:
    text = source(_mixed(), backend="torch")
    assert "return (A + 0j) @ x" in text
    assert "return A @ x" in source(_mixed(), backend="jax")


def test_dask_neither_joins_axes_nor_computes() -> None:
    dask = pytest.importorskip("dask")
    text = derived("hartree_fock", "grad").source("dask")
    assert "reshape" not in text and "da.tensordot(J, CC, axes=2)" in text
    da = pytest.importorskip("dask.array")

    def refuse(dsk: object, keys: object, **named: object) -> None:
        raise AssertionError("something was computed")

    f = derived("hartree_fock", "grad").compile("dask", check=False)
    with dask.config.set(scheduler=refuse):
        found = f(da.ones((4, 4, 4, 4), chunks=2, dtype=complex), da.ones((4, 2), chunks=2, dtype=complex))
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found, 4 * 4**3 * 2 * np.ones((4, 2)))


@pytest.mark.sampled
def test_a_scatter_adds_what_falls_on_one_place(library: Numbers) -> None:
    k, f = rt.index("k", rt.BZ), rt.index("f", rt.BZ)
    u = rt.tensor("u", rt.BZ)
    term = Lam((u,), Lam((f,), total((k,), delta(mul(TWO, k), f, App(u, (k,))))))
    found = Compiled(term, CodeOptions(library.name))(library.to(np.array([1.0, 2.0, 3.0, 4.0])))
    np.testing.assert_allclose(library.back(found), [4.0, 0.0, 6.0, 0.0])


@pytest.mark.parametrize("template", ["put", "add_at"])
def test_a_library_that_writes_nothing_in_place_masks_and_sums(template: str) -> None:
    k, f = rt.index("k", rt.BZ), rt.index("f", rt.BZ)
    u = rt.tensor("u", rt.BZ)
    double = Lam((u,), Lam((f,), total((k,), delta(mul(TWO, k), f, App(u, (k,))))))
    diagonal = Lam((u,), Lam((f, k), delta(f, k, App(u, (k,)))))
    values = np.array([1.0, 2.0, 3.0, 4.0])
    for term, expected in ((double, [4.0, 0.0, 6.0, 0.0]), (diagonal, np.diag(values))):
        text = emit(lower(term), replace(spelling_of("numpy"), **{template: ""}))
        np.testing.assert_allclose(compile_source(text)(values), expected)


# --- what is refused ------------------------------------------------------------------------------------------------


def _mixed() -> Lam:
    n = Domain("A.1")
    p, q = rt.index("p", n), rt.index("q", n)
    A, x = rt.tensor("A", n, n), rt.tensor("x", n, complex=True)
    return Lam((A,), Lam((x,), Lam((p,), total((q,), mul(App(A, (p, q)), App(x, (q,)))))))


def refusal(f: Compiled, *args: object, **named: object) -> str:
    with pytest.raises(ArrayError) as caught:
        f(*args, **named)
    assert caught.value.remedy
    return str(caught.value)


def test_arrays_that_do_not_fit_are_refused(library: Numbers) -> None:
    f = derived("quadratic", "grad").compile(library.name)
    eye, x = library.to(np.eye(3)), library.to(np.ones(3, complex))
    assert "slot 1 of x" in refusal(f, eye, library.to(np.ones(2)))
    assert "1 axis" in refusal(f, x, x)
    assert "symmetry ((2, 1), :conj)" in refusal(f, library.to(np.triu(np.ones((3, 3)))), x)
    assert "float32" in refusal(f, library.to(np.eye(3, dtype=np.float32)), x)
    assert "complex64" in refusal(f, eye, library.to(np.ones(3, np.complex64)))
    assert "int64" in refusal(f, library.to(np.eye(3, dtype=np.int64)), x)
    assert "list" in refusal(f, [[1.0]], x)
    assert "out= works with NumPy only" in refusal(f, eye, x, out=np.zeros(3))
    real = Compiled(_mixed(), CodeOptions(library.name))
    assert "declared real" in refusal(real, library.to(np.eye(3, dtype=complex)), x)


@pytest.mark.slow
def test_a_large_array_is_held_against_its_symmetry_on_a_sample(library: Numbers) -> None:
    f = derived("quadratic", "grad").compile(library.name)
    large = np.zeros((120, 120))
    x = library.to(np.ones(120))
    f(library.to(large, chunks=60), x)
    broken = np.triu(np.ones((120, 120)))
    assert "symmetry" in refusal(f, library.to(broken, chunks=60), x)


@pytest.mark.long
def test_a_large_array_over_a_lattice_is_checked_too(library: Numbers) -> None:
    d = cd.grad(TEXTS["wannier_lattice"])
    f = d.compile(library.name)
    values = arrays(d, f, 3)
    values["M"] = np.ones((4, 4, 5, 5, 5, len(values["X"]))) + 0j  # type: ignore[arg-type]  # a list
    values["U"] = np.ones((4, 2, 5, 5, 5)) + 0j
    f(**converted(values, library))
    values["M"] = values["M"] * np.arange(4)[:, None, None, None, None, None]
    assert "symmetry" in refusal(f, **converted(values, library))


def test_numpy_arrays_are_taken_where_the_library_takes_them(library: Numbers) -> None:
    f = derived("quadratic", "grad").compile(library.name)
    if library.name in ("jax", "dask"):
        np.testing.assert_allclose(library.back(f(np.eye(2), np.ones(2))), 2 * np.ones(2))
    elif library.name == "torch":
        assert "an array of NumPy, not an array of PyTorch" in refusal(f, np.eye(2), np.ones(2))


def test_arrays_of_another_library_are_refused() -> None:
    torch = pytest.importorskip("torch")
    da = pytest.importorskip("dask.array")
    assert "torch.Tensor" in refusal(derived("quadratic", "grad").compile("dask"), torch.eye(2), np.ones(2))
    assert "dask.Array" in refusal(derived("quadratic", "grad").compile("torch"), da.eye(2), torch.ones(2))


def test_the_remedy_for_another_array_makes_one_that_is_taken(library: Numbers) -> None:
    """What the message says is run as it stands."""
    f = derived("quadratic", "grad").compile(library.name)
    eye, x = library.to(np.eye(2)), [1.0, 2.0]
    with pytest.raises(ArrayError) as caught:
        f(eye, x)
    names = {library.name: sys.modules[library.name], "x": x}
    converted_ = eval(caught.value.remedy.removeprefix("give "), names)
    np.testing.assert_allclose(library.back(f(eye, converted_)), [2, 4])


def test_arrays_on_two_devices_are_refused() -> None:
    torch = pytest.importorskip("torch")
    f = derived("quadratic", "grad").compile("torch", check=False)
    here, there = torch.eye(2, dtype=torch.float64), torch.ones(2, dtype=torch.complex128, device="meta")
    assert "A is on cpu, but x is on meta" in refusal(f, here, there)


def test_single_precision_of_jax_is_told() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", False)
    try:
        message = refusal(derived("quadratic", "grad").compile("jax"), np.eye(2), np.ones(2))
    finally:
        jax.config.update("jax_enable_x64", True)
    assert "float32" in message and "jax_enable_x64" in message


def test_chunks_of_unknown_size_are_refused() -> None:
    da = pytest.importorskip("dask.array")
    x = da.from_array(np.ones(4), chunks=2)
    f = derived("quadratic", "grad").compile("dask")
    assert "compute_chunk_sizes" in refusal(f, np.eye(4), x[x > 0])


@pytest.mark.parametrize("backend", LIBRARIES)
def test_a_missing_library_is_told_when_it_is_asked_for(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == backend]:
        monkeypatch.delitem(sys.modules, name)
    finder = type("Missing", (), {"find_spec": staticmethod(lambda name, *_: _missing(name, backend))})
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    d = derived("quadratic", "grad")
    assert "def gradient" in d.source(backend)
    with pytest.raises(UnsupportedError, match="install"):
        d.compile(backend)


def _missing(name: str, backend: str) -> None:
    if name.split(".")[0] == backend:
        raise ModuleNotFoundError(f"No module named {name!r}")


@pytest.mark.slow
def test_a_root_that_is_not_found_is_an_error(library: Numbers) -> None:
    if library.name == "dask":
        pytest.skip("Dask solves no equations here")
    f = cd.grad("(a::R) -> (y::R) -> begin\n  x = root((x::R) -> x^2 + y^2 + 1)\n  a * x\nend").compile(library.name)
    with np.errstate(all="ignore"):
        assert "start" in refusal(f, 1.0, 2.0)


@pytest.mark.slow
def test_equations_are_not_solved_in_chunks() -> None:
    with pytest.raises(UnsupportedError, match="dask"):
        derived("implicit", "grad").source("dask")


@pytest.mark.long
def test_the_command_line_knows_all_backends() -> None:
    for backend in BACKENDS:
        command = [
            sys.executable,
            "-m",
            "combdiff",
            "grad",
            "-",
            "--format",
            "python",
            "--backend",
            backend,
        ]
        found = subprocess.run(command, input=TEXTS["trace"], capture_output=True, text=True, check=True, timeout=60)
        assert found.stdout.startswith(spelling_of(backend).imports)


def test_constants_are_arrays_of_the_library(library: Numbers) -> None:
    c = fresh("c", COMPLEX)
    found = Compiled(Lam((c,), add(number(2), number(0))), CodeOptions(library.name))(1.5)
    assert library.back(found) == 2.0
    t = fresh("t", REAL)
    assert library.back(Compiled(Lam((t,), mul(TWO, t)), CodeOptions(library.name))(1.5)) == 3.0


@pytest.mark.sampled
@pytest.mark.parametrize("condition", ["i + 1, 0", "0, i"])
def test_a_guarded_number_is_taken_by_functions_of_the_library(library: Numbers, condition: str) -> None:
    """Where no i fulfils the condition, 1 stands for the base of the power."""
    d = cd.grad(f"(a::R) -> (x::RV{{n}}) -> sum(i::N{{n}}, indicator({condition}, a * x(0) / a^(-1/2)))")
    for n in (1, 3):
        wanted = d.compile()(2.0, np.ones(n))
        assert_close(d.compile(library.name)(2.0, library.to(np.ones(n))), wanted, library)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quadratic", "cubic", "functions", "delta", "two unknowns", "numbers"])
def test_products_with_the_hessian_are_those_of_numpy(library: Numbers, name: str) -> None:
    d, rng = cd.grad(TEXTS[name]), np.random.default_rng(4)
    plain = d.compile(value=True, hvp=True)
    sizes = default_sizes(d.term)
    kinds = [a.kind for a in plain.arguments]
    arrays = [random_value(kind, sizes, rng) for kind in kinds]
    directions = [random_value(k.kind, sizes, rng) for k in plain.directions]
    *wanted, products = plain(*arrays)
    *found, hvp = d.compile(library.name, value=True, hvp=True)(*map(library.to, arrays))
    assert_close(tuple(found), tuple(wanted), library)
    assert_close(hvp(*map(library.to, directions)), products(*directions), library)
    with pytest.raises(ArrayError, match="out= works with NumPy only"):
        hvp(*map(library.to, directions), out=np.zeros(2))
    with pytest.raises(ArrayError, match="out= works with NumPy only"):
        d.compile(library.name, hvp=True)(*map(library.to, arrays), out=np.zeros(2))


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_offsets_in_another_layout_are_integers_in_kernels(library: Numbers, n: int) -> None:
    text = """@domain Z begin base = (I, I); list = true; symmetric = true; contractable = false end
(A::(Z, N) -> R) -> sum(i, abs2(A(i, 0) * (sum(j::Z, A(-j, 0)) / sum(j::Z, 1))))"""
    A, Z = np.random.default_rng(n).normal(size=(3, n)), np.array([[0, 0], [1, 0], [-1, 0]])
    d = cd.grad(text)
    np.testing.assert_allclose(
        library.back(d.compile(library.name)(library.to(A), Z=Z)), d.compile()(A, Z=Z), rtol=1e-12
    )
