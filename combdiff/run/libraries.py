"""The adapter of an array library other than NumPy: is this an array of yours, of which type and shape, and where?

Every question is answered before any work is done; entries are looked at only to check a declared symmetry.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from numbers import Number as PythonNumber
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from combdiff.arrays.lower.signature import slots
from combdiff.arrays.plan import Argument
from combdiff.errors import ArrayError, UnsupportedError
from combdiff.meaning.breaches import Entries
from combdiff.meaning.masks import refuse_masked
from combdiff.meaning.values import whole_numbers
from combdiff.terms.types import is_complex

if TYPE_CHECKING:
    import numpy.typing as npt

    from combdiff.meaning.comparing import Sizes

    Array: TypeAlias = npt.NDArray[np.generic]
    Doubles: TypeAlias = npt.NDArray[np.float64 | np.complex128]


class Foreign(Protocol):
    """An array of some library."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> object: ...


class Library:
    """CuPy, which NumPy's arrays are not given to silently, for they lie in other memory; the others differ below.

    `convert` and `double` are what remedies say: how an array is made one of the library's, and of double precision.
    """

    name = "cupy"
    module = "cupy"
    title = "CuPy"
    install = "cupy-cuda12x, or cupy-cuda13x, as pip install 'combdiff[cuda12]' does"
    convert = "cupy.asarray({0}, {1!r})"
    double = "{0}.astype({1!r})"
    takes_numpy = False
    has_kernels = True

    def __init__(self) -> None:
        try:
            self.namespace: ModuleType = import_module(self.module)
        except ImportError as problem:
            raise UnsupportedError(
                f"the backend {self.name} needs {self.title}, which cannot be imported ({problem})",
                remedy=f"install {self.install}",
            ) from problem

    # --- what libraries differ in -----------------------------------------------------------------------------------

    def owns(self, value: object) -> bool:
        return isinstance(value, self.namespace.ndarray)

    def made(self, value: Array) -> Foreign:
        """An array of the library, of one of NumPy's."""
        return cast(Foreign, self.namespace.asarray(value))

    def device(self, array: Foreign) -> str:
        """Where an array lies; empty where there is no such thing."""
        return f"GPU {array.device.id}" if hasattr(array, "device") and hasattr(array.device, "id") else ""

    def numpy(self, array: Foreign) -> Array:
        return cast("Array", array.get() if hasattr(array, "get") else np.asarray(array))

    def entries(self, array: Foreign, points: Sequence[Array]) -> Array:
        """The entries at points, which are index arrays of NumPy's."""
        return self.numpy(array[tuple(map(self.made, points))])  # type: ignore[index]  # arrays are indexed alike

    def largest(self, array: Foreign, over: tuple[int, ...]) -> Foreign:
        """The sizes of the largest entries over some axes."""
        sizes: Any = abs(cast(Any, array))
        return cast(Foreign, sizes.max(axis=over) if over else sizes)

    def is_known(self, array: Foreign) -> bool:
        """Whether the array has entries to look at."""
        return True

    @property
    def singular(self) -> tuple[type[Exception], ...]:
        """What a solver raises besides NumPy's error."""
        return ()

    def is_finite(self, result: object) -> bool:
        """Whether what solvers found are numbers; nothing is raised for singular systems on a GPU, or traced."""
        results = result if isinstance(result, tuple) else (result,)
        known = [r for r in results if self.owns(r) and self.is_known(r)]
        return all(bool(np.isfinite(self.numpy(r)).all()) for r in known)

    def finished(self, array: Foreign) -> Foreign:
        """A result as the caller wants it."""
        return array

    def offsets(self, rows: Array, near: Foreign | None) -> object:
        """A list of offsets, where the arrays are."""
        return self.made(rows)

    # --- arguments and results --------------------------------------------------------------------------------------

    def argument(self, argument: Argument, value: object) -> Foreign:
        """The value as an array of double precision, of real numbers where the argument is declared real."""
        name, complex = argument.name, is_complex(argument.kind)
        refuse_masked(value, name)
        wanted = "complex128" if complex else "float64"
        if not slots(argument.kind) and isinstance(value, PythonNumber | np.generic):
            value = _number(value)
        elif not self.owns(value):
            self._refuse_others(name, value, wanted)
        found = dtype_name(value)
        if found not in ("float64", "complex128"):
            raise ArrayError(
                f"{name} holds {found}, and the code computes in double precision", remedy=self.remedy(name, wanted)
            )
        if found == "complex128" and not complex:
            raise ArrayError(f"{name} is declared real, but the array is complex", remedy="give its real part")
        array = self.made(value) if isinstance(value, np.ndarray) and not self.owns(value) else cast(Foreign, value)
        self.refuse_gaps(array, name)
        if dtype_name(array) != found:
            raise ArrayError(
                f"{name} holds {found}, which {self.title} takes as {dtype_name(array)}",
                remedy=self.remedy(name, wanted),
            )
        return self.promoted(array) if complex else array

    def integers(self, argument: Argument, value: object) -> Foreign:
        """The value as an array of integers."""
        name = argument.name
        refuse_masked(value, name)
        if not self.owns(value):
            if not self.takes_numpy or not isinstance(value, np.ndarray):
                self._refuse_others(name, value, "int64")
            return self.made(whole_numbers(cast("Array", value), name))
        array = cast(Foreign, value)
        self.refuse_gaps(array, name)
        if not dtype_name(array).startswith(("int", "uint")):
            whole_numbers(np.empty(1, dtype_name(array)), name)
        return array

    def known(self, array: Foreign) -> Array | None:
        """The entries as NumPy's array; None where they are not known."""
        return self.numpy(array) if self.is_known(array) else None

    def whole(self, array: Foreign) -> object:
        """What the code computed with integers, as integers, which index NumPy's arrays."""
        return whole(self.numpy(array))

    def refuse_gaps(self, array: Foreign, name: str) -> None:
        """Refuse arrays of the library that hold no number for some entries, or do not hold them one by one."""

    def listed(self, name: str, value: object) -> object:
        """A list of offsets as NumPy's array."""
        refuse_masked(value, name)
        if not self.owns(value):
            return value
        self.refuse_gaps(cast(Foreign, value), name)
        if not self.is_known(cast(Foreign, value)):
            raise ArrayError(f"{name} is traced, and its offsets must be known", remedy=f"do not trace {name}")
        return self.numpy(cast(Foreign, value))

    def _refuse_others(self, name: str, value: object, wanted: str) -> None:
        if self.takes_numpy and isinstance(value, np.ndarray):
            return
        module = type(value).__module__.split(".")[0]
        found = "an array of NumPy" if isinstance(value, np.ndarray) else f"{module}.{type(value).__name__}"
        raise ArrayError(
            f"{name} is {found if module != 'builtins' else f'a {type(value).__name__}'}, not an array of {self.title}",
            remedy=f"give {self.convert.format(name, wanted)}",
        )

    def remedy(self, name: str, wanted: str) -> str:
        return f"give {self.double.format(name, wanted)}"

    def promoted(self, array: Foreign) -> Foreign:
        """An array that is declared complex, which kernels want to be complex."""
        return cast(Foreign, array.astype("complex128", copy=False)) if self.has_kernels else array  # type: ignore[attr-defined]  # of CuPy

    def result(self, value: object) -> Foreign:
        """A result, also one that is a constant, as an array of the library."""
        if self.owns(value):
            return self.finished(cast(Foreign, value))
        return self.made(_number(value))

    def check_devices(self, arrays: Sequence[tuple[str, Foreign]]) -> None:
        """All arrays must lie in one place; where a traced one lies is known when the traced code runs."""
        placed = [(self.device(array), name) for name, array in reversed(arrays) if array.shape]
        found = {device: name for device, name in placed if device}
        if len(found) > 1:
            (here, first), (there, second) = list(found.items())[:2]
            raise ArrayError(
                f"{second} is on {there}, but {first} is on {here}", remedy="move all arrays to one device"
            )


class Jax(Library):
    """JAX, which takes NumPy's arrays everywhere; in single precision unless its configuration says otherwise."""

    name, module, title, install = "jax", "jax.numpy", "JAX", "jax, as pip install 'combdiff[jax]' does"
    convert = "jax.numpy.asarray({0}, {1!r})"
    double = '{0}.astype({1!r}), after jax.config.update("jax_enable_x64", True)'
    takes_numpy = True
    has_kernels = False

    def device(self, array: Foreign) -> str:
        if not self.is_known(array):
            return ""
        return ", ".join(sorted(str(d) for d in array.devices()))  # type: ignore[attr-defined]  # of jax.Array

    def is_known(self, array: Foreign) -> bool:
        return not isinstance(array, import_module("jax").core.Tracer)

    def whole(self, array: Foreign) -> object:
        """Traced entries are known when the traced code has run."""
        return super().whole(array) if self.is_known(array) else self.namespace.rint(array).astype(int)


class Torch(Library):
    """PyTorch, whose products do not mix real with complex tensors."""

    name, module, title, install = "torch", "torch", "PyTorch", "torch, as pip install 'combdiff[torch]' does"
    convert = "torch.as_tensor({0}, dtype=torch.{1})"
    double = "{0}.to(torch.{1})"

    def owns(self, value: object) -> bool:
        return isinstance(value, self.namespace.Tensor)

    def device(self, array: Foreign) -> str:
        return str(array.device)  # type: ignore[attr-defined]  # of torch.Tensor

    def numpy(self, array: Foreign) -> Array:
        plain = array.detach().cpu().resolve_conj().resolve_neg()  # type: ignore[attr-defined]  # of torch.Tensor
        return cast("Array", plain.numpy())

    def entries(self, array: Foreign, points: Sequence[Array]) -> Array:
        device = array.device  # type: ignore[attr-defined]  # of torch.Tensor
        places = tuple(self.namespace.as_tensor(np.ascontiguousarray(p), device=device) for p in points)
        return self.numpy(array[places])  # type: ignore[index]  # arrays are indexed alike

    def largest(self, array: Foreign, over: tuple[int, ...]) -> Foreign:
        sizes: Any = abs(cast(Any, array))
        return cast(Foreign, sizes.amax(dim=over) if over else sizes)

    def is_known(self, array: Foreign) -> bool:
        return not array.is_meta  # type: ignore[attr-defined]  # of torch.Tensor

    def refuse_gaps(self, array: Foreign, name: str) -> None:
        if array.layout != self.namespace.strided:  # type: ignore[attr-defined]  # of torch.Tensor
            raise ArrayError(f"{name} is a sparse tensor", remedy=f"give {name}.to_dense()")
        if hasattr(array, "get_mask"):
            raise ArrayError(
                f"{name} is a masked tensor, and its masked entries have no value", remedy=f"give {name}.to_tensor(0)"
            )

    def offsets(self, rows: Array, near: Foreign | None) -> object:
        device = None if near is None else near.device  # type: ignore[attr-defined]  # of torch.Tensor
        return self.namespace.as_tensor(np.ascontiguousarray(rows), device=device)

    def integers(self, argument: Argument, value: object) -> Foreign:
        return cast(Foreign, super().integers(argument, value).to(self.namespace.int64))  # type: ignore[attr-defined]  # of torch.Tensor

    @property
    def singular(self) -> tuple[type[Exception], ...]:
        return (self.namespace.linalg.LinAlgError,)

    def promoted(self, array: Foreign) -> Foreign:
        return cast(Foreign, array.to(self.namespace.complex128))  # type: ignore[attr-defined]  # of torch.Tensor

    def finished(self, array: Foreign) -> Foreign:
        return cast(Foreign, array.resolve_conj().resolve_neg())  # type: ignore[attr-defined]  # of torch.Tensor


class Dask(Library):
    """Dask, whose results are computed when asked for."""

    name, module, title, install = "dask", "dask.array", "Dask", "dask, as pip install 'combdiff[dask]' does"
    convert = "dask.array.asarray({0}, dtype={1!r})"
    takes_numpy = True
    has_kernels = False

    def owns(self, value: object) -> bool:
        return isinstance(value, self.namespace.Array)

    def argument(self, argument: Argument, value: object) -> Foreign:
        array = super().argument(argument, value)
        if not all(isinstance(n, int) for n in array.shape):
            raise ArrayError(
                f"the chunks of {argument.name} have unknown sizes",
                remedy=f"call {argument.name}.compute_chunk_sizes() first",
            )
        return array

    def integers(self, argument: Argument, value: object) -> Foreign:
        """Index arrays are NumPy's."""
        return cast(Foreign, self.numpy(super().integers(argument, value)).astype(np.intp))

    def refuse_gaps(self, array: Foreign, name: str) -> None:
        held: object = array._meta  # type: ignore[attr-defined]  # of Dask
        if type(held) is not np.ndarray and isinstance(held, np.ma.MaskedArray):
            raise ArrayError(
                f"{name} is a masked array, and its masked entries have no value",
                remedy=f"give dask.array.ma.filled({name}, 0), or another array with a number for each entry",
            )

    def device(self, array: Foreign) -> str:
        return ""

    def offsets(self, rows: Array, near: Foreign | None) -> object:
        return rows

    def numpy(self, array: Foreign) -> Array:
        return cast("Array", np.asarray(array))

    def entries(self, array: Foreign, points: Sequence[Array]) -> Array:
        return self.numpy(array.vindex[tuple(np.broadcast_arrays(*points))])  # type: ignore[attr-defined]  # of Dask


_LIBRARIES = {kind.name: kind for kind in (Library, Jax, Torch, Dask)}


def library_of(backend: str) -> Library | None:
    """The library of a backend, imported; None for NumPy. Raises UnsupportedError where it is not installed."""
    return None if backend == "numpy" else _LIBRARIES[backend]()


def whole(array: object) -> npt.NDArray[np.intp]:
    """Floating-point numbers that are whole, as integers.

    >>> whole(np.array([2.0, -1.0]))
    array([ 2, -1])
    """
    found: npt.NDArray[np.intp] = np.rint(np.asarray(array)).astype(np.intp)
    return found


def dtype_name(array: object) -> str:
    """`float64`, `complex128`, … in every library."""
    return str(getattr(array, "dtype", type(array).__name__)).removeprefix("torch.")


def _number(value: object) -> Array:
    """A number, or NumPy's result, in double precision."""
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


class Sampled(Entries):
    """Entries of an array of another library, fetched where a check of its symmetry asks for them."""

    def __init__(self, library: Library, array: Foreign) -> None:
        self.library = library
        self.foreign = array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.foreign.shape)

    @property
    def dtype(self) -> np.dtype[np.float64 | np.complex128]:
        return np.dtype(dtype_name(self.foreign))

    def at(self, points: Sequence[npt.NDArray[np.intp]]) -> Doubles:
        return cast("Doubles", self.library.entries(self.foreign, np.broadcast_arrays(*points)))

    def largest(self, kept: tuple[int, ...]) -> Sizes:
        over = tuple(axis for axis in range(len(self.shape)) if axis not in kept)
        found = cast("Sizes", self.library.numpy(self.library.largest(self.foreign, over)))
        return np.minimum(found, np.finfo(float).max)  # beyond which the size of a complex entry may lie

    def part(self, index: int) -> Sampled:
        return Sampled(self.library, self.foreign[index])  # type: ignore[index]  # arrays are indexed alike


def looked_at(library: Library | None, value: object, sample: int | None) -> Entries | None:
    """An array as `breaks_symmetry` wants it: all of it where it is small, or asked for; None where there are none."""
    if library is None:
        return Entries(value) if isinstance(value, np.ndarray) else None
    array = cast(Foreign, value)
    if value is None or not library.is_known(array):
        return None
    whole = sample is None or int(np.prod(array.shape, dtype=np.int64)) <= sample
    return Entries(cast("Doubles", library.numpy(array))) if whole else Sampled(library, array)
