"""Kernels of CuPy: which steps they join, how they read, and that a compiler of C++ gives them the same meaning."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import types
from pathlib import Path

import numpy as np
import pytest

import combdiff as cd
from tests.emit.elementwise_kernels import ElementwiseKernel
from tests.emit.test_backends import TEXTS, derived

TYPES = {"float64": "double", "complex128": "complex<double>", "int64": "long long"}
LAYER = "(X::RM, Y::RM) -> (W::RM) -> sum((i, j), (tanh(sum(k, X(i, k) * W(k, j))) - Y(i, j))^2)"


def kernels(source: str) -> list[ElementwiseKernel]:
    """The kernels that a source defines."""
    found: list[ElementwiseKernel] = []
    recorded = lambda *given: found.append(ElementwiseKernel(*given)) or found[-1]  # noqa: E731  # a constructor
    exec(source.removeprefix("import cupy as cp"), {"cp": types.SimpleNamespace(ElementwiseKernel=recorded)})
    return found


def test_a_stretch_of_steps_is_one_kernel() -> None:
    text = cd.grad(LAYER).source("cupy")
    definition = '''
kernel = cp.ElementwiseKernel(
    "float64 x, float64 Y",
    "float64 out",
    """
    double P = tanh(x);
    out = (1.0 - P * P) * (P - Y);
    """,
    "kernel",
)
'''
    assert text.startswith(f"import cupy as cp\n\n{definition}\n\ndef gradient(X, Y, W):")
    assert text.endswith("    return 2 * X.T @ kernel(X @ W, Y)\n")


@pytest.mark.parametrize(
    ("program", "statements"),
    [
        ("(a::R, x::RV) -> sum(i, a * sin(x(i)))", "out = a * cos(x)"),
        ("(x::RV) -> sum(i, abs(x(i)) / 3)", "out = (x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x) / 3.0"),
        ("(z::CV) -> sum(i, abs2(z(i))^3)", "double t1 = norm(z); out = 6.0 * z * t1 * t1"),
        ("(x::RV) -> sum(i, indicator(0, x(i), x(i)^3))", "out = 3.0 * (0.0 <= x ? x * x : 0.0)"),
        ("(x::RV) -> sum(i, sqrt(1 + x(i)^2))", "out = x / sqrt(1.0 + x * x)"),
        ("(θ::RV) -> sum(i, exp(-θ(i)))", "out = -exp(-x)"),
        ("(n::RV) -> sum(i, exp(-n(i)))", "out = -exp(-x)"),
    ],
)
def test_statements_read_as_an_expert_writes_them(program: str, statements: str) -> None:
    wrt = {"wrt": "x"} if program.startswith("(a") else {}
    (kernel,) = kernels(cd.grad(program, **wrt).source("cupy"))
    assert "; ".join(kernel.statements) == statements


def test_what_others_need_too_and_smaller_shapes_are_left_outside() -> None:
    text = cd.grad("(a::RV) -> (A::RM) -> sum((i, j), exp(a(i)) * sin(A(i, j))^2)").source("cupy", value=True)
    assert text.count("cp.exp(a)") == 1 and text.count("cp.sin(A)") == 1
    assert "float64" in text and "exp(" not in str([k.statements for k in kernels(text)])


@pytest.mark.slow
def test_kernels_do_not_compute_for_a_direction_what_is_known_at_the_point() -> None:
    """The second derivative over v is one kernel, called once; it is not joined with the product by the direction."""
    text = cd.grad("(x::RV) -> sum(i, exp(sin(x(i))) * x(i))").source("cupy", hvp=True)
    point, closure = text.split("def hvp(k):")
    assert "t3 = kernel2(t2, t, x)" in point and "    return t1 * k * t3\n" in closure


@pytest.mark.slow
def test_other_libraries_have_no_kernels() -> None:
    assert all("kernel" not in cd.grad(LAYER).source(backend) for backend in ("numpy", "jax", "torch", "dask"))


def translated(number: int, kernel: ElementwiseKernel) -> str:
    """A kernel as a function of C++ over whole arrays."""
    result = "complex<double>" if kernel.dtype.kind == "c" else "double"
    given = [f"const {TYPES[dtype]}* _{name}" for dtype, name in kernel.operands]
    reads = [f"    const {TYPES[dtype]} {name} = _{name}[_at];" for dtype, name in kernel.operands]
    lines = [*reads, f"    {result} out;", *(f"    {s};" for s in kernel.statements), "    _out[_at] = out;"]
    head = f'extern "C" void kernel{number}(long _size, {", ".join(given)}, {result}* _out)'
    return "\n".join([f"{head} {{", "  for (long _at = 0; _at < _size; ++_at) {", *lines, "  }", "}"])


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler of C++")
def test_a_compiler_of_cpp_agrees_with_what_the_tests_read(tmp_path: Path) -> None:
    """Compiled with `std::complex`, each kernel of each program gives the numbers that its stand-in gives."""
    found = [k for name in TEXTS for k in kernels(derived(name, "grad").source("cupy", value=True))]
    assert len(found) > 30
    head = "#include <cmath>\n#include <complex>\nusing namespace std;\n"
    file = tmp_path / "kernels.cpp"
    file.write_text(head + "\n".join(translated(n, k) for n, k in enumerate(found)))
    subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", file, "-o", tmp_path / "kernels.so"], check=True)
    library = ctypes.CDLL(str(tmp_path / "kernels.so"))
    rng, size = np.random.default_rng(0), 12
    for n, kernel in enumerate(found):
        real = [rng.normal(size=size).round(1) + (dtype == "int64") for dtype, _ in kernel.operands]
        imaginary = [1j * rng.normal(size=size) if dtype == "complex128" else 0 for dtype, _ in kernel.operands]
        arrays = [(a + b).astype(d) for a, b, (d, _) in zip(real, imaginary, kernel.operands, strict=True)]
        out = np.empty(size, kernel.dtype)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)]
        getattr(library, f"kernel{n}")(ctypes.c_long(size), *pointers)
        np.testing.assert_allclose(out, kernel(*arrays), rtol=1e-12, atol=1e-12, err_msg=str(kernel.statements))
