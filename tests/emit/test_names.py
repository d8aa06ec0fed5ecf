"""Names of emitted code: no name of a program means anything else in it, in any role, in any library."""

from __future__ import annotations

import ast
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import combdiff as cd
from combdiff.arrays.lower.forms import Forms
from combdiff.arrays.lower.lower import guessed_sizes
from combdiff.arrays.plan import Argument
from combdiff.emit.emit import source
from combdiff.emit.names import words
from combdiff.errors import ArrayError
from combdiff.language.printing.names import unique_name
from combdiff.language.printing.printer import program_text
from combdiff.run.compiled import CodeOptions, Compiled
from combdiff.run.executing import compile_source
from combdiff.run.hessian import CompiledHessian, Joint, products_source
from combdiff.terms.terms import Term
from tests.adversarial_names import NAMES, called, names_of
from tests.emit.array_libraries import Numbers, library
from tests.emit.test_backends import TEXTS, WHOLE, arrays, assert_close, converted, function_of

__all__ = ["library"]

PROGRAMS = {
    name: TEXTS[name]
    for name in (
        *("functions", "rolls", "lists", "lattices", "complex root", "two unknowns", "shared value", "four index"),
        *("own function", "delta", "indicator", "quadratic", "cubic", "hartree_fock", "implicit", "numbers"),
    )
}
PROGRAMS |= {
    "derivatives": "(g::RF, a::RV) -> (x::RV) -> begin\n"
    "  p = i -> a(i) * x(i)\n  sum(i, g(p(i)) * grad(g)(x(i))) + g(x(0))\nend",
    "complex function": "(g::(C) -> C) -> (z::CV) -> sum(i, abs2(g(z(i))) + real(g(z(i))))",
    "an equation with a function": "(g::RF, a::RM) -> (b::RV) -> begin\n"
    "  x = root((x::RV) -> i -> x(i) + g(x(i)) / 9 + sum(j, a(i, j) * x(j)) / 9 - b(i))\n  sum(i, x(i)^2)\nend",
    "sizes": "(A::RM{M, K}, b::RV{M}) -> (x::RV{K}) -> "
    "sum(i, (sum(j, A(i, j) * x(j)) - b(i))^2) / sum(i::N{M}, 1) + sum(i::N{K}, 1) * x(0)",
    "a size that no array has": "@domain K begin base = I end\n(a::R) -> (x::RV) -> sum((i, k::K), a * k * x(i)^2)",
    "a companion's name": "(g::RF, grad_g::R, x1::R) -> (x::RV) -> sum(i, grad(g)(x(i)) * grad_g + x1 * x(i))",
    "loops": "(x::RM, w::RM) -> (y::RM) -> sum((a, b), w(a, b) * exp(-sum(c, (x(a, c) - y(b, c))^2)))",
}

PACKED = {"quadratic": ("A",), "cubic": ("T",), "hartree_fock": ("J",), "four index": ("J",)}
LOOPED = {"numpy": {"loops", "vectors of matrices"}, "torch": {"loops"}, "cupy": {"loops"}, "jax": set(), "dask": set()}
UNSOLVED = {*WHOLE, "an equation with a function"}


@cache
def derived(name: str) -> cd.Derivation:
    return cd.grad(PROGRAMS[name])


@cache
def compiled(name: str, kind: str) -> Compiled:
    """The function with the names of the program, in NumPy."""
    return derived(name).compile(value=True, hvp=kind == "hvp")


@cache
def term_of(name: str, kind: str) -> Term | Joint:
    d = derived(name)
    return d.runnable.joint(True) if kind == "hvp" else d.runnable.forms(True).formula


@cache
def own_words(name: str, kind: str, backend: str) -> tuple[list[str], list[str]]:
    """The names of a program, and all words of its code: what it is easiest to mistake them for."""
    term = term_of(name, kind)
    plain = term.term if isinstance(term, Joint) else term
    code = text_of(name, kind, backend, {})
    return names_of(plain), sorted(words(code.rpartition('"""')[2]) | {f.name for f in _functions(code)})


def _functions(code: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)]


def text_of(name: str, kind: str, backend: str, new: dict[str, str]) -> str:
    """Code of a kind: with products, with packed arrays, in loops; for a program with other names."""
    term = term_of(name, kind)
    whole = called(term.term if isinstance(term, Joint) else term, lambda stem: new.get(stem, stem))
    title = program_text(whole)
    if isinstance(term, Joint):
        joint = Joint(Forms(whole), whole.params[-len(term.directions) :], term.first)
        return products_source(joint, backend, "value_gradient_and_hvp", title)
    pack = tuple(new.get(n, n) for n in PACKED.get(name, ())) if kind == "pack" else ()
    sizes = dict.fromkeys(guessed_sizes(whole), 1000) if kind == "memory" else None
    limit = 12_000_000 if kind == "memory" else None
    return source(whole, sizes, backend, "value_and_gradient", title, pack, limit)


def renamed(name: str, kind: str, backend: str, new: dict[str, str]) -> Compiled:
    """The same function of a program with other names."""

    def chosen(stem: str) -> str:
        return new.get(stem, stem)

    term = term_of(name, kind)
    if isinstance(term, Joint):
        whole = called(term.term, chosen)
        count = len(term.directions)
        joint = Joint(Forms(whole), whole.params[-count:], term.first)
        return CompiledHessian(joint, CodeOptions(backend, "value_gradient_and_hvp", program_text(whole)))
    whole = called(term, chosen)
    pack = tuple(new.get(n, n) for n in PACKED.get(name, ())) if kind == "pack" else ()
    return Compiled(whole, CodeOptions(backend, "value_and_gradient", program_text(whole), pack=pack))


def values_of(f: Compiled, g: Compiled, new: dict[str, str], values: dict[str, object]) -> dict[str, object]:
    """What `g`, the function of other names, is given: the values of the arguments that stand for the same in `f`."""
    old = {theirs: ours for ours, theirs in new.items()}
    ours = {function_of(a, f._term): a.name for a in f.arguments if a.callable}

    def key(a: Argument) -> str:
        stem = function_of(a, g._term)
        ends = [n for n in sorted(old, key=len, reverse=True) if stem == n or stem.endswith(f"_{n}")]
        found = [stem.removesuffix(n) + old[n] for n in ends]
        # an array may be called as the derivative of a function is
        return next(ours[s] for s in found if s in ours) if a.callable else found[0]

    lists = iter([a.name for a in f.arguments if a.offsets is not None])
    sizes = iter([a.name for a in f.arguments if _is_size(a)])
    taken: dict[str, object] = {}
    for a in g.arguments:
        if a.optional:
            continue
        taken[a.name] = values[next(lists) if a.offsets else next(sizes) if _is_size(a) else key(a)]
    return taken


def _is_size(a: Argument) -> bool:
    return a.step is None and not a.callable and not a.optional


@st.composite
def choices(draw: st.DrawFn, backend: str) -> tuple[str, str, dict[str, str]]:
    """A program, a kind of code, and names: words of its own code, or others that are taken somewhere."""
    name = draw(st.sampled_from(sorted(PROGRAMS.keys() - (UNSOLVED if backend == "dask" else set()))))
    kinds = [
        "value",
        "hvp",
        *["pack"] * (name in PACKED and backend != "dask"),
        *["memory"] * (name in LOOPED[backend]),
    ]
    kind = draw(st.sampled_from(kinds))
    known, own = own_words(name, kind, backend)
    asked = draw(st.lists(st.sampled_from(known), min_size=1, unique=True))
    new = {n: n for n in known if n not in asked}
    for n in asked:
        new[n] = unique_name(draw(st.sampled_from(own) | st.sampled_from(NAMES)), {*new.values()})
    return name, kind, new


def assert_same(name: str, kind: str, new: dict[str, str], to: Numbers | None) -> None:
    """The code of the program with the new names gives the same numbers, called by place and by name."""
    f, backend = compiled(name, kind), to.name if to else "numpy"
    values = arrays(derived(name), f, 3)
    g, back = renamed(name, kind, backend, new), to or Numbers("numpy")
    taken = values_of(f, g, new, values)
    taken = converted(taken, to) if to else taken
    in_order = [_for_code(taken[a.name], a, to) for a in g.arguments if not a.optional]
    wanted = with_products(f(**values), kind, Numbers("numpy"))
    assert_close(with_products(g(**taken), kind, back), wanted, back)
    if kind != "pack":
        alone = compile_source(
            text_of(name, kind, backend, new), "value_gradient_and_hvp" if kind == "hvp" else "value_and_gradient"
        )
        assert_close(with_products(alone(*in_order), kind, back), wanted, back)


def _for_code(value: object, a: Argument, to: Numbers | None) -> object:
    """An argument of the code alone, which takes arrays of PyTorch only; a compiled function takes lists of NumPy's."""
    return to.to(value) if a.offsets is not None and to is not None and to.name == "torch" else value


def with_products(found: tuple[object, ...], kind: str, to: Numbers) -> tuple[object, ...]:
    """What a function returned, with products with the Hessian in the place of the function for them."""
    if kind != "hvp":
        return found
    value, *gradients, hvp = found
    products = hvp(*(to.to(0.1 * to.back(x) + 0.2) for x in gradients))
    return (value, *gradients, *(products if isinstance(products, tuple) else (products,)))


@pytest.mark.long
@given(choice=choices("numpy"))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_numpy_code_is_right_whatever_a_program_calls_things(choice: tuple[str, str, dict[str, str]]) -> None:
    assert_same(*choice, None)


@pytest.mark.long
@given(data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_code_for_other_libraries_is_right_whatever_a_program_calls_things(
    library: Numbers, data: st.DataObject
) -> None:
    assert_same(*data.draw(choices(library.name)), library)


# --- one name at a time -----------------------------------------------------------------------------------------------

WORDS = ("len", "np", "lambda", "None", "value_and_gradient", "gradient", "jnp", "torch", "cp", "da", "device", "n")


@pytest.mark.sampled
@pytest.mark.parametrize("word", WORDS)
def test_a_function_is_called_by_the_name_that_it_has_in_the_code(library: Numbers, word: str) -> None:
    d = cd.grad(f"({word}::RF, x::RV) -> (y::RV) -> sum(i, {word}(x(i)) * y(i)^2 + {word}(y(i)))")
    x, y = np.array([0.5, 2.0]), np.array([1.0, -1.0])
    own = {word: lambda z: z**3, f"grad_{word}": lambda z: 3 * z**2}
    wanted = [np.sum(x**3 * y**2 + y**3), 2 * x**3 * y + 3 * y**2]
    f = d.compile(library.name, value=True)
    assert_close(f(x=library.to(x), y=library.to(y), **own), tuple(wanted), library)
    assert_close(d.compile(value=True)(x=x, y=y, **own), tuple(wanted), Numbers("numpy"))


def test_letters_that_python_reads_alike_are_two_functions() -> None:
    d = cd.grad("(f::RF, 𝐟::RF) -> (x::RV) -> sum(i, f(x(i)) * 𝐟(x(i))^2)")
    values = {"f": np.exp, "𝐟": np.sin, "grad_f": np.exp, "grad_𝐟": np.cos}
    x = np.array([0.3, 0.7])
    expected = np.exp(x) * np.sin(x) ** 2 + 2 * np.exp(x) * np.sin(x) * np.cos(x)
    assert np.allclose(d.compile()(x=x, **values), expected)


@pytest.mark.sampled
@pytest.mark.parametrize("word", ["_", "x", "w", "len", "rows", "n_"])
def test_what_is_not_needed_of_a_shape_hides_no_argument(word: str) -> None:
    body = f"sum((i, j, k), A(i, j, k) * y(k) * delta(k, 0, {word}))"
    d = cd.grad(f"(A::(N, N, N) -> R, {word}::R) -> (y::RV) -> {body}")
    A, y = np.arange(24.0).reshape(2, 3, 4), np.ones(4)
    assert np.allclose(d.compile()(A, 5.0, y), [5 * A[:, :, 0].sum(), 0, 0, 0])


@pytest.mark.sampled
@pytest.mark.parametrize(
    "names", [("float", "int"), ("A", "np"), ("rows", "place"), ("i", "p"), ("J", "𝐉"), ("x̂", "x"), ("n", "m")]
)
def test_arrays_of_any_name_are_packed(names: tuple[str, str]) -> None:
    one, other = names
    body = f"sum((a, b, c), v(a, c)' * ({one}(a, b) + {other}(a, b)) * v(b, c))"
    d = cd.grad(f"({one}::Sym, {other}::Her) -> (v::CM) -> {body}")
    rng = np.random.default_rng(0)
    A, B, v = rng.normal(size=(3, 4, 4)) + 0j
    A, B, v = (A + A.T).real, B + 1j * v - (1j * v).T + B.T, v[:, :2]
    assert np.allclose(d.compile(pack=names)(A, B, v), 2 * (A + B) @ v)
    assert np.allclose(d.compile(pack=names, value=True)(A, B, v)[1], 2 * (A + B) @ v)


EQUATION = """(W::RM{{{size}, {size}}}, {g}::RF) -> (b::RV) -> begin
  {x} = root(({x}::RV) -> i -> {x}(i) + {g}(sum(j, W(i, j) * {x}(j))) / 9 - b(i))
  sum(i, {x}(i)^2) / sum(i::N{{{size}}}, 1)
end"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("x", "g", "size"),
    [
        ("x", "newton", "y"),
        ("x", "np", "z"),
        ("x̂", "equation_x", "x"),
        ("x⃗", "x", "y"),
        ("start_x", "g", "x"),
        ("start_x", "x", "start_start_x"),
        ("lambda", "None", "n"),
        ("grad_g", "g", "x"),
        ("𝐱", "x", "M"),
    ],
)
def test_equations_call_nothing_by_a_name_that_is_another(x: str, g: str, size: str) -> None:
    plain, other = (cd.grad(EQUATION.format(x=x, g=g, size=size)) for x, g, size in (("x", "g", "M"), (x, g, size)))
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(3, 3)), rng.normal(size=3)
    wanted = plain.compile(value=True)(W, b, np.sin, np.cos)
    f = other.compile(value=True)
    own = dict(zip((a.name for a in f.arguments if a.callable), (np.sin, np.cos), strict=True))
    start = next(a.name for a in f.arguments if a.optional)
    for more in ({}, {start: 0.1 * b}):
        for a, c in zip(f(W=W, b=b, **own, **more), wanted, strict=True):
            assert np.allclose(a, c)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["X", "X_offsets", "n_K", "n_x_1", "start_x", "grad_g", "grad_g2"])
def test_an_argument_that_the_program_does_not_name_gets_another_name(word: str) -> None:
    text = "@domain K begin base = I end\n@domain X begin base = I; list = true end\n"
    text += "@domain Z begin periodic = true end\n"
    text += f"({word}::R, g::RF, u::(Z) -> R) -> (y::RV) -> begin\n  x = root((x::R) -> x + x^3 - {word})\n"
    text += f"  sum((i, k::K), k * {word} * g(y(i)) * x) + sum((z::Z, b::X), b * u(z + b) * y(0))\nend"
    d = cd.grad(text)
    f = d.compile(value=True)
    names = [a.name for a in f.arguments]
    assert len(set(names)) == len(names) and word in names
    y, u, t = np.array([0.3, 0.4]), np.arange(5.0), 2.0
    values = {word: t, "g": np.sin, "u": u, "y": y}
    for a in f.arguments:
        if a.name not in values and not a.optional:
            values[a.name] = np.cos if a.callable else np.array([1, 2]) if a.offsets else 4
    value, gradient = f(**values)
    assert np.isclose(value, 6 * t * np.sin(y).sum() + (10 + 20) * y[0])
    assert np.allclose(gradient, 6 * t * np.cos(y) + [30, 0])


def test_a_derivative_is_told_by_what_it_is_of_not_by_its_name() -> None:
    d = cd.grad("(g::RF, grad_g::RF) -> (x::RV) -> sum(i, g(x(i)) + grad_g(x(i)))")
    with pytest.raises(ArrayError, match=r"grad_g2\(x\) is the derivative of g at x"):
        d.compile()(np.ones(2))
    assert "grad_g2: function of the caller's, grad_g2(x), the derivative of g, on whole arrays" in d.source()
    assert "grad_grad_g: function of the caller's, grad_grad_g(x), on whole arrays of numbers" in d.source()
    assert d.check()


@pytest.mark.slow
def test_a_result_with_such_names_is_checked_and_minimised() -> None:
    d = cd.grad("(np::RF, grad_np::R, _::RM) -> (out::RV) -> sum((i, j), np(_(i, j) * out(j)) * grad_np)")
    assert d.check()
    p = d.problem(np=np.cosh, grad_np2=np.sinh, grad_grad_np=np.cosh, grad_np=2.0, _=np.eye(2), out=np.ones(2))
    assert np.allclose(p.jac(p.x0), 2 * np.sinh(p.x0)) and np.allclose(p.hessp(p.x0, p.x0), 2 * np.cosh(p.x0))


@pytest.mark.slow
def test_released_arrays_may_have_names_with_marks() -> None:
    marked = PROGRAMS["loops"].replace("w", "ŵ")
    code = cd.grad(marked).source("torch", value=True, memory="2 MB", y=(2000, 3), ŵ=(3000, 2000))
    assert "ŵ_block" in code and "del" in code
    compile(code, "<source>", "exec")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "@domain X begin base = I; list = true end\n@domain Z begin periodic = true end\n"
        "(u::(Z) -> R) -> (y::R) -> begin\n"
        "  x = root((x::(Z) -> R) -> (z::Z) -> x(z) + sum(b::X, b * u(z + b)) / 9 - y)\n  sum(z::Z, x(z)^2)\nend",
        "@domain K begin base = I end\n(u::RV) -> (y::R) -> begin\n"
        "  x = root((x::RV) -> i -> x(i) + u(i) * sum(k::K, k) / 9 - y)\n  sum(i, x(i)^2)\nend",
    ],
    ids=["a list of offsets", "a size"],
)
def test_an_equation_is_given_what_only_it_asks_for(text: str) -> None:
    assert cd.grad(text).check()


@pytest.mark.sampled
@pytest.mark.parametrize(
    "text",
    [
        "(s::R) -> (a::R, k1::R) -> k1 * a^2 + s",
        "(s::R) -> (a::R, k2::R) -> k2 * a^2 + s",
        "(s::R, k::R) -> (a::R) -> a^3 + s",
        "(s::R, x::RV, v::RV) -> (z::RV) -> sum(k, z(k) * k) + sum(i, z(i)^3)",
        "(k::R, v::R, u::R, h::R, c::R, cotangent::R) -> (a::R, b::R) -> a^2 * b",
    ],
)
def test_directions_have_names_that_the_program_has_not(text: str) -> None:
    d = cd.grad(text)
    f = d.compile(value=True, hvp=True)
    rng = np.random.default_rng(0)
    values = {a.name: rng.normal(size=(3,) * (a.step.rank if a.step else 0)) for a in f.arguments}
    *_, hvp = f(**values)
    unknowns = [p.name for p in d.objective.params]
    ks = [rng.normal(size=np.shape(values[name])) for name in unknowns]
    steps = [{n: values[n] + s * k for n, k in zip(unknowns, ks, strict=True)} for s in (1e-5, -1e-5)]
    moved = [gradients_at(d, {**values, **step}) for step in steps]
    found = hvp(*ks)
    for h, a, b in zip(found if isinstance(found, tuple) else (found,), *moved, strict=True):
        assert np.allclose(h, (a - b) / 2e-5, atol=1e-6)


def gradients_at(d: cd.Derivation, values: dict[str, object]) -> tuple[object, ...]:
    _, *gradients = d.compile(value=True)(**values)
    return tuple(gradients)


@pytest.mark.slow
def test_a_size_that_no_array_shows_has_a_name_and_is_said_in_words() -> None:
    text = "(y::RV) -> (m::R) -> sum(n, root((y::RV) -> j -> y(j)^3 + y(j) - sin(m))(n)) + sum(i, y(i) * m)"
    f = cd.grad(text).compile()
    assert "n_y_1_2: how many values slot 1 of another y has" in f.source

    def root(m: float) -> float:
        (real,) = (z.real for z in np.roots([1, 0, 1, -np.sin(m)]) if abs(z.imag) < 1e-9)
        return float(real)

    slope = (root(0.3 + 1e-6) - root(0.3 - 1e-6)) / 2e-6
    np.testing.assert_allclose(f(y=np.ones(2), m=0.3, n_y_1_2=3), 3 * slope + 2, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("(R) -> C", r"grad_pullback_g\(x, y\) is the derivative of pullback_g at \(x, y\), a tuple of those by x, y"),
        (
            "(C) -> C",
            r"pullback_pullback_g\(x, y, k\) is the derivative of pullback_g at \(x, y\), transposed, times k, a",
        ),
        ("(C) -> C", r"; pullback_g\(x, k\) is the derivative of g at x, transposed, times k; "),
    ],
)
def test_every_function_that_is_missing_is_told_with_the_arguments_that_it_takes(kind: str, told: str) -> None:
    d = cd.hvp(f"(g::{kind}) -> (x::{kind[1]}) -> abs2(g(x))")
    with pytest.raises(ArrayError, match=told):
        d.compile()(x=1.0, k=1.0)
