"""Functions of the user's own: every mode, every library, threads, and what is refused."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import combdiff as cd
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

TEXT = "(A::RM) -> (x::RV) -> sum(i, bell(2 * sum(j, A(i, j) * x(j))))"


def bell() -> None:
    cd.register("bell", derivative="-x * bell(x)", numpy="np.exp(-x**2 / 2)", latex=r"\varphi")


@pytest.fixture(autouse=True)
def registered() -> None:
    """Not when this file is read: other files make their tests of the functions that there are."""
    bell()


@pytest.mark.sampled
@pytest.mark.parametrize("mode", [cd.grad, cd.pullback, cd.jvp, cd.hvp, cd.hessian, cd.jacobian, cd.simplified])
def test_it_works_in_every_mode(mode: object) -> None:
    d = mode(TEXT)  # type: ignore[operator]
    assert d.check()
    assert r"\varphi" in d.latex()
    assert r"\varphi" in d.latex(form="matrix")
    assert str(pickle.loads(pickle.dumps(d))) == str(d)


@pytest.mark.sampled
def test_it_is_the_function_that_was_meant(library: Numbers) -> None:
    A, x = np.random.default_rng(0).normal(size=(3, 4)), np.random.default_rng(1).normal(size=4)
    gradient = cd.grad(TEXT).compile(library.name)(library.to(A), library.to(x))
    u = 2 * A @ x
    np.testing.assert_allclose(library.back(gradient), 2 * A.T @ (-u * np.exp(-(u**2) / 2)), rtol=1e-12)


@pytest.mark.slow
def test_it_works_in_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda _: (bell(), str(cd.hvp(TEXT)))[1], range(8)))) == 1


@pytest.mark.parametrize(
    ("name", "derivative", "numpy"),
    [
        ("bell", "x", "np.exp(-x**2 / 2)"),
        ("exp", "x", "np.exp(x)"),
        ("sum", "x", "np.exp(x)"),
        ("no name", "x", "np.exp(x)"),
        ("other1", "im * x", "np.exp(x)"),
        ("other2", "y", "np.exp(x)"),
        ("other3", "x", "np.exp("),
        ("other4", "x", "np.pi"),
        ("other5", "1", "np.nope(x)"),
        ("other6", "1", "y * x"),
        ("other7", "1", "x / 'a'"),
        ("other8", "1", "np.sum(x)"),
        ("other9", "0", "x * 1j"),
        ("other10", "2 * x", "x**3"),
    ],
)
def test_what_cannot_be_registered_is_refused(name: str, derivative: str, numpy: str) -> None:
    with pytest.raises(cd.CombDiffError):
        cd.register(name, derivative=derivative, numpy=numpy)
    if name.startswith("other"):
        with pytest.raises(cd.LanguageError):
            cd.grad(f"(x::R) -> {name}(x)")


@pytest.mark.parametrize(
    ("name", "derivative", "numpy"),
    [
        ("steep", "10^4 * cos(10^4 * x)", "np.sin(1e4 * x)"),
        ("kinked", "sign(x - 71/100)", "np.abs(x - 0.71)"),
        ("beyond_five", "1 / (x - 5)", "np.log(x - 5)"),
        ("counted", "0", "np.floor(x).astype(np.int64)"),
    ],
)
def test_what_is_right_can_be_registered(name: str, derivative: str, numpy: str) -> None:
    cd.register(name, derivative=derivative, numpy=numpy)
    assert cd.grad(f"(x::R) -> {name}(x)").text


@pytest.mark.slow
def test_the_text_for_another_library_has_the_names_of_that_library() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    x = np.array([0.3, -1.2])
    for name, text in (
        ("scaled_tail", "jnp.exp(x**2) * special.erfc(x)"),
        ("scaled_tail2", "np.exp(x**2) * special.erfc(x)"),
    ):
        cd.register(name, derivative=f"2 * x * {name}(x) - 2 / sqrt(pi)", numpy="special.erfcx(x)", jax=text)
        d = cd.grad(f"(x::RV) -> sum(i, log({name}(x(i))))")
        np.testing.assert_allclose(d.compile("jax")(x), d.compile("numpy")(x), rtol=1e-12)
    with pytest.raises(cd.CombDiffError, match="holds torch"):
        cd.register("scaled_tail3", derivative="1", numpy="x", jax="torch.exp(x)")
