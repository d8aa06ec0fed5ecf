"""Arrays with declared symmetries, in every library: what breaks one is named, and rounding does not."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

import combdiff as cd
from combdiff.errors import ArrayError
from tests.emit.array_libraries import Numbers, library

__all__ = ["library"]

Array = npt.NDArray[np.generic]

TEXT = "(A::Sym) -> (x::RV) -> sum((i, j), x(i) * A(i, j) * x(j))"
ZONE = """@domain K begin base = (I, I); periodic = true end
@space S begin type = (N, N, K) -> C; symmetries = (((3,), :inegc),) end
@space F begin type = (N, K) -> C end
(S::S) -> (u::F) -> sum((p, q, k::K), u(p, k)' * S(p, q, k) * u(q, k))"""


@cache
def quadratic() -> cd.Derivation:
    return cd.grad(TEXT)


def refusal(to: Numbers, rows: object, **how: object) -> str:
    """What is said of an array; empty if it is taken."""
    f = quadratic().compile(to.name, **how)  # type: ignore[arg-type]
    array = np.asarray(rows)
    try:
        f(to.to(array, chunks=60), to.to(np.ones(len(array))))
    except ArrayError as error:
        assert error.remedy
        return error.message
    return ""


HOW = [{"check": "sample"}, {"check": "full"}, {"pack": "A"}]


@pytest.mark.sampled
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("size", [3, 120])
def test_what_breaks_a_symmetry_is_named(library: Numbers, how: dict[str, object], size: int) -> None:
    if "pack" in how and library.name == "dask":
        pytest.skip("Dask's arrays are not packed")
    rows = np.ones((size, size))
    assert refusal(library, rows, **how) == ""
    rows[np.triu_indices(size, 1)] = 2
    rows[0, 0] = 1e12
    message = refusal(library, rows, **how)
    assert "A does not have its declared symmetry ((2, 1), :id): A[" in message
    assert message.endswith((" is 1, not 2", " is 2, not 1"))
    for bad, word in ((np.nan, "is nan"), (np.inf, "is infinity"), (-np.inf, "is infinity")):
        rows = np.ones((size, size))
        rows[:, size // 2] = bad
        assert word in refusal(library, rows, **how)
        rows[size // 2, :] = bad
        assert word in refusal(library, rows, **how)


@pytest.mark.sampled
@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("size", [4, 120])
def test_rounding_is_taken(library: Numbers, how: dict[str, object], size: int) -> None:
    """Of 120 rows a sample of 4,096 entries shows few that are not rounding."""
    if "pack" in how and library.name == "dask":
        pytest.skip("Dask's arrays are not packed")
    rows = 1e-17 * np.random.default_rng(0).normal(size=(size, size))
    rows[np.arange(size), (np.arange(size) + size // 2) % size] = 1
    assert refusal(library, rows, **how) == ""
    if how.get("check") != "sample":
        rows[0, 1] += 1e-3
        assert "A[0, 1] is 0.001" in refusal(library, rows, **how) or "A[1, 0]" in refusal(library, rows, **how)


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"check": "sample"}, {"check": "full"}], ids=str)
def test_rounding_over_a_lattice_is_taken(library: Numbers, how: dict[str, object]) -> None:
    """The slices through an entry are those of slots, which may have more axes than one."""
    f = cd.grad(ZONE).compile(library.name, **how)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(6, 6, 12, 11)) + 1j * rng.normal(size=(6, 6, 12, 11))
    tensor = 1e-17 * noise
    tensor[np.arange(6), np.arange(6)[::-1]] += 1
    u = library.to(np.ones((6, 12, 11), complex))
    f(library.to(tensor, chunks=6), u)
    tensor = tensor.copy()  # what was seen is not looked at again
    tensor[:, :, 1:6, 1:5] += 1j
    with pytest.raises(ArrayError, match="declared symmetry"):
        f(library.to(tensor, chunks=6), u)


def test_masked_arrays_are_refused(library: Numbers) -> None:
    masked = np.ma.masked_equal(np.eye(3), 0.0)
    f = quadratic().compile(library.name)
    if library.name in ("jax", "dask", "cupy"):
        with pytest.raises(ArrayError, match="A is a masked array"):
            f(masked, library.to(np.ones(3)))
        with pytest.raises(ArrayError, match="x is a masked array"):
            f(library.to(np.eye(3)), masked[0])
    if library.name == "dask":
        with pytest.raises(ArrayError, match="A is a masked array"):
            f(library.module.ma.masked_equal(library.to(np.eye(3)), 0.0), library.to(np.ones(3)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_sparse_and_masked_tensors_are_refused() -> None:
    torch = pytest.importorskip("torch")
    f = quadratic().compile("torch")
    A, x = torch.eye(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    with pytest.raises(ArrayError, match="A is a sparse tensor"):
        f(A.to_sparse(), x)
    from torch.masked import masked_tensor

    with pytest.raises(ArrayError, match="A is a masked tensor"):
        f(masked_tensor(A, A > 0), x)
    np.testing.assert_allclose(f(A.to_sparse().to_dense(), x), 2 * np.ones(3))
    assert f(A.to("meta"), x.to("meta")).shape == (3,)


# --- NumPy ----------------------------------------------------------------------------------------------------------


def numpys(rows: object, **how: object) -> str:
    try:
        quadratic().compile(**how)(rows, np.ones(len(rows)))  # type: ignore[arg-type]
    except ArrayError as error:
        return error.message
    return ""


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i4", "u1", "?"])
def test_dtypes_of_numpy_are_checked_alike(how: dict[str, object], dtype: str) -> None:
    assert numpys(np.array([[1, 0], [0, 1]], dtype), **how) == ""
    assert "declared symmetry" in numpys(np.array([[1, 1], [0, 1]], dtype), **how)
    assert "not object" in numpys(np.array([[1, 1], [0, 1]], object), **how)


@pytest.mark.parametrize("how", HOW, ids=str)
def test_masked_arrays_of_numpy_are_refused(how: dict[str, object]) -> None:
    for masked in (np.ma.masked_equal(np.eye(2), 0.0), np.ma.array(np.eye(2)), np.ma.array(np.eye(2, dtype=int))):
        assert "A is a masked array" in numpys(masked, **how)
    with pytest.raises(ArrayError, match="x is a masked array"):
        quadratic().compile(**how)(np.eye(2), np.ma.ones(2))  # type: ignore[arg-type]


def test_masked_arrays_are_refused_wherever_arrays_are_taken() -> None:
    d = cd.grad("(a::R) -> (x::RV) -> sum(i, a * x(i)^2)")
    x, masked = np.ones(3), np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)
    hvp = d.compile(hvp=True)(2.0, x)[-1]  # type: ignore[index]
    f = d.compile()
    p = d.problem(a=2.0, x=x)
    for refused in (
        lambda: f(2.0, masked),
        lambda: f(np.ma.masked, x),
        lambda: f(2.0, x, out=np.ma.zeros(3)),
        lambda: hvp(masked),
        lambda: hvp(x, out=np.ma.zeros(3)),
        lambda: d.problem(a=2.0, x=masked),
        lambda: p.fun(masked),
        lambda: p.pack(masked),
    ):
        with pytest.raises(ArrayError, match="is a masked array"):
            refused()
    steps = cd.grad("@domain X begin list = true end\n(w::(X) -> R) -> sum(b::X, b * w(b)^2)").compile()
    with pytest.raises(ArrayError, match="X is a masked array"):
        steps(np.ones(2), X=np.ma.array([1, 2]))
