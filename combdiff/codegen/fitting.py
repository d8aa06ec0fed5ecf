"""What a caller gives as what generated code takes, or an error that says how to mend it; results into given arrays."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, SupportsIndex

from combdiff.codegen.plan import Argument
from combdiff.errors import ArrayError
from combdiff.language.types import Domain, Index, is_complex

if TYPE_CHECKING:
    from combdiff.language.values import Array, Extent


def as_size(argument: Argument, value: object, extent: Extent) -> int:
    """The size of a domain that no array shows."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or value.__index__() < 0:
        raise ArrayError(
            f"{argument.name} is how many values a domain has, and {value!r} is no such number",
            remedy="give a whole number, 0 or more",
        )
    assert isinstance(argument.kind, Index) and argument.kind.domain is not None, "a size is of a domain"
    extent.note(argument.kind.domain, value.__index__(), f"the argument {argument.name}")
    return value.__index__()


def as_array(argument: Argument, value: object) -> Array:
    """The value as an array of floating-point numbers, real where the argument is real."""
    import numpy as np

    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ArrayError(f"{argument.name} is no array: {error}", remedy="give a NumPy array") from error
    if array.dtype.kind in "biu":
        array = array.astype(np.float64)
    if array.dtype.kind not in "fc":
        raise ArrayError(f"{argument.name} must hold numbers, and holds {array.dtype}", remedy="give a NumPy array")
    if array.dtype.kind == "c" and not is_complex(argument.kind):
        raise ArrayError(f"{argument.name} is declared real, but the array is complex", remedy="give its real part")
    return array


def are_alike(arguments: Sequence[Argument], values: Sequence[object]) -> bool:
    """Whether all arrays are of one precision, and complex where they are declared so."""
    import numpy as np

    found = set()
    for argument, value in zip(arguments, values, strict=True):
        if argument.step is None or argument.offsets is not None or value is None:
            continue
        name = str(getattr(value, "dtype", "")).removeprefix("torch.")
        if is_complex(argument.kind) != name.startswith("complex"):
            return False
        found.add(np.dtype(name).itemsize // (2 if is_complex(argument.kind) else 1))
    return len(found) == 1


def filled(out: object, result: object) -> object:
    """`result` written into the arrays that the caller gives."""
    import numpy as np

    if isinstance(result, tuple):
        if not isinstance(out, tuple | list) or len(out) != len(result):
            raise ArrayError(
                f"out must be a tuple of {len(result)} arrays", remedy="give one array for each result, in order"
            )
        return tuple(filled(o, r) for o, r in zip(out, result, strict=True))
    value = np.asarray(result)
    if not isinstance(out, np.ndarray) or out.shape != value.shape:
        raise ArrayError(
            f"out must be an array of shape {value.shape}",
            remedy="give an array of that shape and of the dtype of the result",
        )
    if not np.can_cast(value.dtype, out.dtype, "same_kind"):
        raise ArrayError(f"out holds {out.dtype}, but the result is {value.dtype}", remedy="give one of that dtype")
    np.copyto(out, value, casting="same_kind")
    return out


def forms_of(values: Sequence[object]) -> tuple[Hashable, ...]:
    """Shape and dtype of arrays, one form for all functions; None for what may have to be converted."""
    import numpy as np

    return tuple(
        (v.shape, v.dtype.char) if type(v) is np.ndarray else ("function" if callable(v) else None) for v in values
    )


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
    from combdiff.language.points import Offsets

    return tuple(size.rows.tobytes() for size in sizes.values() if isinstance(size, Offsets))
