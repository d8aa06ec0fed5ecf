"""How an array library is written: the one table that `emit` reads, so that a library more is a table more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from combdiff.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """Templates for what libraries spell differently; `@`, indexing, `.reshape` and `.sum` are common to all.

    `functions` maps a scalar function of the language to its template; `branched` are those that need a complex
    argument where the language calls for one, empty where the library has real ones only; `of_real` those that are
    written otherwise for a real one. What has a value here is as NumPy has it.
    """

    name: str
    imports: str
    reserved: frozenset[str]
    special: str = ""  # the import of the module `special`, where functions are written with it
    functions: Mapping[str, str]
    branched: Mapping[str, str]
    of_real: Mapping[str, str] = field(default_factory=dict)

    # making arrays; `number` makes one of a number of Python where functions take arrays only, `device` names where
    arange: str
    arange_float: str
    zeros: str
    zeros_complex: str
    number: str = "{0}"
    number_complex: str = "{0}"
    choice: str = "{0}"  # a number that may stand for an array without axes, in functions too, and decides no type
    scalar_complex: str = ""  # a complex number of the library's own, where its real scalars are numbers of Python
    full: str = ""  # a fresh array of one number, where that is no array itself
    whole: str = (
        ""  # makes a floating-point number of an integer of any size, where functions take those of the library
    )
    device: str = ""

    # what loops write to and add to, of a shape and a type; none where arrays are not written to
    empty: str = ""
    zeros_of: str = ""
    types: str = ""  # the type of results made of these arrays; where it is left out, that of all real or complex ones
    float_type: str = "float"
    complex_type: str = "complex"
    integer_type: str = "int"
    fuses: bool = False  # whether loops are written where they pay, and not only where a limit of memory asks for them

    # entry by entry
    scalar_conj: str
    where: str
    power: str
    power_complex: str
    power_of_zero: str = ""  # the same with an array for an exponent, where 0^0 would be no number otherwise
    shares_exponentials: bool = False  # whether logistic functions of one argument are made of its exponential
    overwrite: str = ""  # a function, what it is of, and the array that its values are written to, if that is done
    elides: bool = False  # whether an expression is written over operands that nothing else holds
    conj: str = "{0}.conj()"
    copy: str = "{0}.copy()"
    tables: bool = False  # whether rows are taken once for each value of an index if that is less to do
    filters: bool = False  # whether a loop that is linear in its state is a call of a function among the solvers
    windows: bool = False  # whether arrays may be views in which parts of another one overlap
    fill_diagonal: str = ""  # a statement that writes a number into the diagonal of a matrix
    # whether `x if c else 0` may ask for the value of c
    eager: bool = True

    # a definition: name, operands, result, statements; none where every step is a call of its own
    kernel: str = ""

    # along axes: the array, the axes, a comma if there are any; of nothing they are −∞ and ∞, where that is known
    largest: str = "{0}.max({1})"
    least: str = "{0}.min({1})"

    # the extremum up to each entry: maximum or minimum, the array, the axis; a solver where it is empty
    accumulate: str = ""

    # axes and entries
    # a copy in C order, if the array does not lie so; nothing where memory is not the caller's concern
    laid: str = "{0}"
    roll: str
    broadcast: str
    transpose: str = "{0}.transpose({1})"
    reverse: str = "{0}.T"
    diagonal: str = "{0}.diagonal()"
    trace: str = "{0}.trace()"
    # empty: a slice with step −1
    flip: str = ""
    # several index arrays, or one of several axes, if brackets do not take them: their axes then come first
    points: str = ""
    # integers of the caller's, or that data decide, as those brackets take them
    concrete: str = "{0}"

    # a scatter, as statements: array, index in brackets, values, index; where the one that is needed is empty, values
    # are masked and summed
    put: str = "{0}[{3}] = {2}"
    join: str = ""  # arrays along an axis, where `put` is empty
    increase: str = "{0}[{3}] += {2}"
    decrease: str = "{0}[{3}] -= {2}"
    add_at: str
    add_flat: str = ""  # the same of all entries in a row, where that is quicker: array, one index array, values
    # how often each of the integers below a number is in a row, where that is quicker than to add 1 at each place
    counts: str = ""
    # the fast Fourier transform: fft or ifft, the array, options, among them an axis that is not the last
    fourier: str = ""
    fourier_axis: str = ", axis={0}"
    # a sparse matrix of values at rows and columns, of a shape, where that is quicker for rows that are added; `ones`
    # of a size, and the import of what it is written with
    sparse: str = ""
    ones: str = ""
    sparse_import: str = ""
    added_at: str = ""  # the function among the solvers that adds, where arrays are not written to
    # for integers that the caller gives: entries that are nan beyond an axis, and what makes a scatter nan if its
    # places, the second, are not below the third; both empty where an error is raised
    entries: str = ""
    kept: str = ""
    place: str = "{0}"  # one place among index arrays, where `add_at` takes arrays only

    # contractions; `inner` is of arrays of several axes, `real_inner` of real ones; `to_complex` a real operand of a
    # complex one, `to_real` an integer that is read as a number, where these are not mixed
    tensordot: str
    stack: str
    vdot: str
    inner: str = ""
    real_inner: str = ""
    einsum: str
    cross: str = ""  # the vector product of stacks of vectors; where it is left out, a function among the solvers
    to_complex: str = ""
    to_real: str = ""
    as_float: str = "{0}.astype(float)"  # entries of an array of integers that are read as numbers
    # whether joining axes is free, which it is not where arrays are cut in chunks or lie on several devices
    joins_axes: bool = True

    # packed arguments: rows put together, index arrays of NumPy's beside an array, an array that lies in order; not
    # packed where the first is empty
    concatenate: str = ""
    from_numpy: str = "{0}"
    contiguous: str = "{0}"

    # equations; `solvers` are the files of `solvers/` in which functions are sought, the library's own first; in others
    # `solver_words` are replaced
    solve: str
    linear_algebra: str = ""  # where functions of matrices are
    scan: bool = True  # whether there are loops whose states are kept
    loops: bool = True  # whether these are loops of Python
    watches: bool = False  # whether code looks at the states of loops after each step, for nan and infinity
    solvers: tuple[str, ...] = ("portable", "numpy")
    solver_words: Mapping[str, str] = field(default_factory=dict)
