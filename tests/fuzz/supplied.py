"""The functions that a user gives to compiled code: `f`, `grad_f`, `pullback_grad_L`, `adjoint_D`, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import tangents as T
from .data import Energy, Matrix, Wave

Function = Callable[[Sequence[T.Value]], tuple[T.Value, ...]]
Groups = list[tuple[bool, ...]]


def supplied(name: str, given: Mapping[str, Any]) -> Callable[..., Any]:
    """The function of that name, on whole arrays."""
    if name.startswith("adjoint_"):
        return supplied(
            name.removeprefix("adjoint_"), {k: v.adjoint if isinstance(v, Matrix) else v for k, v in given.items()}
        )
    energies = {k: v for k, v in given.items() if isinstance(v, Energy)}
    for k, energy in energies.items():
        of_energy = {
            k: energy.on,
            f"grad_{k}": energy.gradient,
            f"pullback_grad_{k}": energy.product,
            f"pullback_pullback_grad_{k}": lambda x, k, c, e=energy: (e.third(x, k, c), e.product(x, c)),
            f"pullback_{k}": lambda x, k, e=energy: k * e.gradient(x),
            f"pullback_pullback_{k}": lambda x, k, c, e=energy: (
                k * e.product(x, c),
                np.real(np.sum(np.conj(e.gradient(x)) * c)),
            ),
            # of the two results before, for cotangents u and v
            f"pullback_pullback_pullback_{k}": lambda x, k, c, uv, e=energy: (
                k * e.third(x, uv[0], c) + uv[1] * e.product(x, c),
                np.real(np.sum(np.conj(e.product(x, c)) * uv[0])),
                k * e.product(x, uv[0]) + uv[1] * e.gradient(x),
            ),
        }
        if name in of_energy:
            return of_energy[name]
    if isinstance(given.get(name), Matrix):
        return given[name].on  # type: ignore[no-any-return]
    found, takes, gives = _function(name, given)

    def on_arrays(*args: Any) -> Any:
        flat: list[Any] = []
        for a in args:
            flat.extend(a) if isinstance(a, tuple) else flat.append(a)
        wide = [np.asarray(a) for a in flat]
        result = found([w.astype(np.clongdouble if w.dtype.kind == "c" else np.longdouble) for w in wide])
        shape = np.broadcast_shapes(*(w.shape for w in wide))
        arrays = iter([np.broadcast_to(_double(r), shape)[()] for r in result])
        parts = tuple(_bare(tuple(next(arrays) for _ in group)) for group in gives)
        return _bare(parts)

    on_arrays.__name__ = f"{name}_of_{len(takes)}"
    return on_arrays


def _bare(items: tuple[Any, ...]) -> Any:
    return items[0] if len(items) == 1 else items


def _double(x: Any) -> Any:
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def _function(name: str, given: Mapping[str, Any]) -> tuple[Function, Groups, Groups]:
    """The function on arrays with tangents; which of its arguments are complex, and which of its results.

    A tuple of arguments, as the cotangent of a gradient is, is one group; so are the results that belong to it.
    """
    if name in given:
        wave = given[name]
        assert isinstance(wave, Wave), f"{name} is no function"
        return (lambda args: (wave.on(args),)), [(wave.argument_complex,)] * len(wave.slopes), [(wave.complex,)]
    for how in ("grad_", "pullback_"):
        if name.startswith(how):
            inner, takes, gives = _function(name.removeprefix(how), given)
            if (how, takes, gives) == ("grad_", [(False,)], [(True,)]):
                return _along(inner), takes, gives
            cotangent = [tuple(_flat(gives))] if how == "pullback_" else []
            return _pulled_back(inner, _flat(takes), bool(cotangent)), takes + cotangent, takes
    raise KeyError(name)


def _flat(groups: Groups) -> list[bool]:
    return [c for group in groups for c in group]


def _along(f: Function) -> Function:
    """The derivative of a complex function along its real argument."""

    def derivative(args: Sequence[T.Value]) -> tuple[T.Value, ...]:
        tag = T.fresh_tag()
        return tuple(T.tangent_of(r, tag) for r in f([T.Dual(tag, args[0], np.longdouble(1))]))

    return derivative


def _pulled_back(f: Function, takes: list[bool], cotangent: bool) -> Function:
    def derivative(args: Sequence[T.Value]) -> tuple[T.Value, ...]:
        points, k = args[: len(takes)], args[len(takes) :]
        found = []
        for n, c in enumerate(takes):
            total: T.Value = None
            for unit in (1, 1j) if c else (1,):
                tag = T.fresh_tag()
                one = np.longdouble(1) if unit == 1 else np.clongdouble(1j)
                at = [T.Dual(tag, p, one) if m == n else p for m, p in enumerate(points)]
                slopes = [T.tangent_of(r, tag) for r in f(at)]
                weighted = [T.mul(T.conj(w), s) for w, s in zip(k, slopes, strict=True)] if cotangent else slopes
                part = T.real(weighted[0])
                for more in weighted[1:]:
                    part = T.add(part, T.real(more))
                part = part if unit == 1 else T.mul(part, one)
                total = part if total is None else T.add(total, part)
            found.append(total)
        return tuple(found)

    return derivative
