"""Converts what a caller passes to what generated code takes, or raises an error with a remedy; fills given arrays."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Hashable, Mapping, Sequence
from decimal import Decimal
from operator import index
from typing import TYPE_CHECKING, cast

from combdiff.arrays import ops
from combdiff.arrays.plan import Argument, Plan, ordered
from combdiff.errors import ArrayError
from combdiff.language.vocabulary import counted
from combdiff.terms.types import Domain, Index, Number, entry_range, is_complex, is_discrete

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from combdiff.meaning.values import Array, Extent
    from combdiff.run.libraries import Foreign, Library


def as_size(argument: Argument, value: object, extent: Extent) -> int:
    """The size of a domain that no array shows."""
    try:
        size = -1 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]  # what is no index is refused
    except TypeError:
        size = -1
    if size < 0:
        raise ArrayError(
            f"{argument.name} is the size of a domain, and {value!r} is not a size",
            remedy="give a whole number, 0 or more",
        )
    assert isinstance(argument.kind, Index) and argument.kind.domain is not None, "a size is of a domain"
    extent.note(argument.kind.domain, size, f"the argument {argument.name}")
    return size


def as_array(argument: Argument, value: object) -> Array:
    """The value as an array of floating-point numbers, real where the argument is real."""
    import numpy as np

    from combdiff.meaning.masks import refuse_masked

    refuse_masked(value, argument.name)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        # arrays of other libraries say why they are not given to NumPy, each with an error of its own
        raise ArrayError(f"{argument.name} is not an array: {error}", remedy="give a NumPy array") from error
    if array.dtype.kind == "O" and not array.shape:
        raise _no_array(argument, value)
    if array.dtype.kind in "biu":
        array = array.astype(np.float64)
    if array.dtype.kind not in "fc":
        remedy = (
            f"give np.array({argument.name}, dtype=float)"
            if array.dtype.kind == "O"
            else "give a NumPy array of numbers"
        )
        raise ArrayError(f"{argument.name} must contain numbers, not {array.dtype}", remedy=remedy)
    if array.dtype.kind == "c" and not is_complex(argument.kind):
        raise ArrayError(f"{argument.name} is declared real, but the array is complex", remedy="give its real part")
    return array


def _no_array(argument: Argument, value: object) -> ArrayError:
    kind = type(value).__name__
    if isinstance(argument.kind, Number) and isinstance(value, numbers.Number | Decimal):
        return ArrayError(
            f"{argument.name} is a {kind}, and not a number in floating point",
            remedy=f"give float({argument.name}); numbers from 1.8e308 on have no floating point",
        )
    return ArrayError(f"{argument.name} is a {kind}, not an array", remedy="give a NumPy array of numbers")


def as_integers(argument: Argument, value: object) -> npt.NDArray[np.intp]:
    """The value as an array of integers; whether they are in range is asked when all sizes are known."""
    import numpy as np

    from combdiff.meaning.masks import refuse_masked
    from combdiff.meaning.values import whole_numbers

    refuse_masked(value, argument.name)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ArrayError(f"{argument.name} is not an array: {error}", remedy="give an array of integers") from error
    return whole_numbers(array, argument.name)


def check_entries(argument: Argument, value: object, sizes: Mapping[Domain, int], library: Library | None) -> None:
    """Refuse an array of integers with an entry that is none of the values of its index."""
    import numpy as np

    from combdiff.meaning.values import check_range

    domain = entry_range(argument.kind)
    if domain is None or value is None:
        return
    array = value if library is None else library.known(cast("Foreign", value))
    if array is None:
        return
    assert isinstance(array, np.ndarray), "an array of integers"
    size = sizes.get(domain, domain.count)
    first = domain.first(size or 0)
    if array.size and (array.min() < first or (size is not None and array.max() >= first + size)):
        check_range(array, argument.name, domain, size)


def check_positive(argument: Argument, value: object, library: Library | None) -> None:
    """Refuse an array with an entry that is not above 0 though its type is declared so."""
    import numpy as np

    array = value if library is None or value is None else library.known(cast("Foreign", value))
    if isinstance(array, np.ndarray) and array.size and not array.min() > 0:
        place = tuple(map(int, np.argwhere(~(array > 0))[0]))
        raise ArrayError(
            f"{argument.name} is declared positive, and its entry {place} is {array[place]:.6g}",
            remedy="give numbers above 0, or leave `positive = true` out",
        )


def are_alike(arguments: Sequence[Argument], values: Sequence[object]) -> bool:
    """Whether all arrays are of one precision, and complex where they are declared so."""
    import numpy as np

    found = set()
    for argument, value in zip(arguments, values, strict=True):
        if argument.step is None or argument.offsets is not None or value is None or is_discrete(argument.kind):
            continue
        name = str(getattr(value, "dtype", "")).removeprefix("torch.")
        if is_complex(argument.kind) != name.startswith("complex"):
            return False
        found.add(np.dtype(name).itemsize // (2 if is_complex(argument.kind) else 1))
    return len(found) == 1


def check_out(
    out: object, shapes: Sequence[tuple[int, ...]], complex: Sequence[bool], several: bool
) -> list[npt.NDArray[np.generic]]:
    """The arrays given for results of these shapes; errors for what cannot be written into, before any work is done."""
    import numpy as np

    from combdiff.meaning.masks import refuse_masked

    if several and (not isinstance(out, tuple | list) or len(out) != len(shapes)):
        raise ArrayError(
            f"out must be a tuple of {len(shapes)} arrays", remedy="give one array for each result, in order"
        )
    given = list(out) if several and isinstance(out, tuple | list) else [out]
    fitting: list[npt.NDArray[np.generic]] = []
    for array, shape, is_complex_ in zip(given, shapes, complex, strict=True):
        if not isinstance(array, np.ndarray):
            raise ArrayError(
                f"out is a {type(array).__name__}, but must be a NumPy array of shape {shape}",
                remedy=f"give np.empty({shape}{', complex' if is_complex_ else ''})",
            )
        if array.shape != shape:
            raise ArrayError(
                f"out has the shape {array.shape}, but the result has {shape}", remedy="give an array of that shape"
            )
        result = np.dtype(np.complex128 if is_complex_ else np.float64)
        if not np.can_cast(result, array.dtype, "same_kind"):
            raise ArrayError(
                f"out holds {array.dtype}, but the result is {result}", remedy="give an array of that dtype"
            )
        if not array.flags.writeable:
            raise ArrayError("out cannot be written to", remedy="give an array that is not read-only")
        refuse_masked(array, "out")
        fitting.append(array)
    return fitting


def filled(out: object, result: object) -> object:
    """`result` written into the arrays that the caller gives."""
    import numpy as np

    several = isinstance(result, tuple)
    values = [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]
    arrays = check_out(out, [v.shape for v in values], [v.dtype.kind == "c" for v in values], several)
    for array, value in zip(arrays, values, strict=True):
        np.copyto(array, value, casting="same_kind")
    return tuple(arrays) if several else out


def forms_of(values: Sequence[object], numbers: Collection[int] = ()) -> tuple[Hashable, ...]:
    """Shape and dtype of arrays, one form for all functions; None for what may have to be converted.

    `numbers` are the places of what `as_number` converts.
    """
    import numpy as np

    return tuple(
        [
            (v.shape, v.dtype.char) if type(v) is np.ndarray else _other_form(v, n in numbers)
            for n, v in enumerate(values)
        ]
    )


def _other_form(value: object, is_number: bool) -> Hashable:
    if callable(value):
        return "function"
    return _number_form(value) if is_number else None


def _number_form(value: object) -> Hashable:
    """The dtype that a number is converted to; None where it is none, or none that has its place in an array."""
    import numpy as np

    if isinstance(value, np.generic):
        return value.dtype.char
    if type(value) is int:
        return "d" if abs(value) < 1 << 63 else None
    return {float: "d", complex: "D"}.get(type(value))


def as_number(value: object) -> object:
    """A number of Python, or an array without axes, as the code takes it: a scalar of NumPy.

    >>> as_number(2), as_number(1j)
    (np.float64(2.0), np.complex128(1j))
    """
    import numpy as np

    array = np.asarray(value)
    return (array.astype(np.float64) if array.dtype.kind in "biu" else array)[()]


def contents_of(values: Sequence[object]) -> tuple[Hashable, ...]:
    """What small arrays hold, as keys that tell a change in place; None for what is no array of numbers.

    >>> import numpy as np
    >>> x = np.array([1, -1])
    >>> before = contents_of([x])
    >>> x[0] = 2
    >>> contents_of([x]) == before
    False
    """
    import numpy as np

    known = [v if type(v) is np.ndarray and v.dtype.kind in "iu" else None for v in values]
    return tuple(None if v is None else v.tobytes() for v in known)


def contents_of_lists(sizes: Mapping[Domain, int]) -> tuple[bytes, ...]:
    """The offsets of all lists among the sizes of domains."""
    from combdiff.meaning.points import Offsets

    return tuple(size.rows.tobytes() for size in sizes.values() if isinstance(size, Offsets))


def check_least_sizes(least: Mapping[Domain, int], sizes: Mapping[Domain, int]) -> None:
    """A range that entries are read in at constants, or a constant less an index, must have so many values."""
    for domain, size in least.items():
        if domain in sizes and sizes[domain] < size:
            raise ArrayError(
                f"the program reads entry {size - 1} of {_called(domain)}, which has {counted(sizes[domain], 'value')}",
                remedy="give larger arrays, or read it under a condition on the size, as in where(n > 4, x(4))",
            )


def _called(domain: Domain) -> str:
    """A range by its size, or by the slot that it is first of."""
    tensor, _, slot = domain.name.rpartition(".")
    return f"slot {slot} of {tensor}" if tensor and not domain.sized else f"a slot of the size {domain.name}"


def missing_entry(plan: Plan, sizes: Mapping[Domain, int]) -> ArrayError | None:
    """An entry at a constant index that the plan reads, and the arrays do not have, as an error."""
    for step in ordered(plan.outputs):
        if not isinstance(step.op, ops.Pick):
            continue
        for axis, constant, domain in step.op.fixed:
            size = domain.extent(sizes)
            place = constant + size if domain.from_zero and constant < 0 else constant
            inside = 0 <= place - domain.first(size) < size
            if size == 0 or not (inside or domain.periodic):
                array = next((o.op.argument for o in step.operands if isinstance(o.op, ops.Input)), "a tensor")
                shown = f"{size} - {-constant}" if place != constant else str(constant)
                return ArrayError(
                    f"the index {shown} is out of range in slot {axis + 1} of {array}, which has {size} values",
                    remedy="give larger arrays, or use an index that they have",
                )
    return None
