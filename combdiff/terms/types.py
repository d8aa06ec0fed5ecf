"""Types of the language: numbers, indices that range over domains, maps (tensors among them), tuples.

A tensor is a map from indices to numbers (paper, section 2), so `CM` is `(N, N) -> C`. A map's declared symmetries
are part of its type. After `infer` every index knows its domain: an anonymous `N` slot is named after the first
slot that it stands in ("C.1"), so that two indices range over the same values if and only if their domains are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import TypeVar

from combdiff.errors import ArrayError, CombDiffError
from combdiff.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Interval:
    """Real numbers, from `lower` to `upper`, over which an integral runs and a function is defined; None is ∓∞.

    An end may be a number of the program, which has the name `lower_name` or `upper_name`.
    """

    name: str
    lower: Fraction | None = None
    upper: Fraction | None = None
    lower_name: str = ""
    upper_name: str = ""

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return all(end is not None for end in self.ends)

    @property
    def has_end(self) -> bool:
        """Whether one is."""
        return any(end is not None for end in self.ends)

    @property
    def ends(self) -> tuple[Fraction | str | None, Fraction | str | None]:
        """The lower and the upper end, numbers or names.

        >>> Interval("Line", Fraction(0), upper_name="b").ends
        (Fraction(0, 1), 'b')
        """
        return self.lower_name or self.lower, self.upper_name or self.upper

    @property
    def names(self) -> tuple[str, ...]:
        """The numbers of the program that are its ends."""
        return tuple(filter(None, (self.lower_name, self.upper_name)))

    def at(self, numbers: Mapping[str, float]) -> Interval:
        """The interval whose ends are numbers.

        >>> Interval("Line", Fraction(0), upper_name="b").at({"b": 2.0})
        Interval(name='Line', lower=Fraction(0, 1), upper=Fraction(2, 1), lower_name='', upper_name='')

        Raises:
            CombDiffError: an end is no finite number, or the upper one is not above the lower one.
        """
        if not self.names:
            return self
        found = [float(numbers[end]) if isinstance(end, str) else end for end in self.ends]
        if all(end is None or isfinite(end) for end in found):
            lower, upper = (None if end is None else Fraction(end) for end in found)
            if lower is None or upper is None or lower < upper:
                return Interval(self.name, lower, upper)
        first, last = (
            far if end is None else f"{float(end):g}" for end, far in zip(found, ("-inf", "inf"), strict=True)
        )
        raise ArrayError(
            f"{self.name} runs from {first} to {last}", remedy="give finite bounds, the upper one above the lower one"
        )


@dataclass(frozen=True, slots=True)
class Domain:
    """A finite set of integers: 0…n−1, −M…M if `symmetric`, or lower…upper; arithmetic wraps round if `periodic`.

    `declared` tells a domain of the program's text (`@domain BZ`) from the range of an `N` slot, `sized` a range whose
    size the text names, `N{M}`. `contractable = False` forbids solving a δ for an index of this domain. With several
    `directions` an index is a point of a lattice, a vector of that many integers, each in the range that is said here.
    The values of a `listed` domain are offsets that are given when the program runs; `symmetric` then says that the
    list holds −b with b. With `common` it has the values that are in all of these domains, ranges from 0 on. With `of`
    it has the values 0, 1, …, and `less` fewer of them than this domain (more if below 0), but no less than none; its
    values with `per` number blocks of so many values. Its values may number the `nodes` of a rule for an interval.
    """

    name: str
    declared: bool = False
    periodic: bool = False
    symmetric: bool = False
    contractable: bool = True
    sized: bool = False
    lower: int | None = None
    upper: int | None = None
    directions: int = 1
    listed: bool = False
    common: tuple[Domain, ...] = ()
    of: Domain | None = None
    less: int = 0
    per: int = 1
    nodes: Interval | None = None

    def __hash__(self) -> int:
        # domains are keys wherever sizes are known, and in one program a name tells them apart
        return hash(self.name)

    @property
    def axes(self) -> tuple[Domain, ...]:
        """The axes of arrays that a slot has: one for each direction; a list has one, whose entries are its positions.

        Sizes are known of axes.

        >>> [axis.name for axis in Domain("BZ", periodic=True, directions=2).axes]
        ['BZ.1', 'BZ.2']
        """
        return _axes(self)

    @property
    def plain(self) -> bool:
        """Whether its values are 0 … n - 1, without arithmetic modulo n, and only arrays tell n."""
        special = self.periodic or self.symmetric or self.listed or self.directions > 1
        return not special and self.of is None and self.lower is None and self.upper is None

    @property
    def from_zero(self) -> bool:
        """Whether it is plain, or has so many values fewer or more than a plain range: only arrays tell how many."""
        return self.plain or (self.of is not None and self.per == 1 and self.of.plain)

    @property
    def count(self) -> int | None:
        """How many values an axis of a domain with bounds has; None if only arrays tell."""
        if self.of is not None:
            return None if self.of.count is None else self._left(self.of.count)
        return None if self.lower is None or self.upper is None else self.upper - self.lower + 1

    def extent(self, sizes: Mapping[Domain, int]) -> int:
        """How many values an axis has: as its bounds say, or `sizes`."""
        if self.of is not None:
            return self._left(self.of.extent(sizes))
        return sizes[self] if self.count is None else self.count

    def _left(self, whole: int) -> int:
        return max(0, -(-(whole - self.less) // self.per))

    @property
    def measured(self) -> tuple[Domain, ...]:
        """The domains whose sizes say how many values this one has."""
        if self.common:
            return tuple(dict.fromkeys(d for part in self.common for d in part.measured))
        return (self,) if self.of is None else self.of.measured

    def shortened(self, less: int) -> Domain:
        """The range that is left without so many values; below 0 that with more.

        >>> Domain("n").shortened(1).shortened(2).extent({Domain("n"): 7})
        4
        >>> Domain("n").shortened(-1).name
        'n + 1'
        """
        if not less:
            return self
        if self.of is not None and self.per == 1:
            return self.of.shortened(self.less + less)
        if self.sized and self.count is not None:
            return range_of(self.count - less)
        return Domain(f"{self.name} {'-' if less > 0 else '+'} {abs(less)}", of=self, less=less)

    def fewer(self, whole: Domain) -> int | None:
        """How many values it has fewer than `whole`, below 0 more; None if they are not ranges of one size.

        >>> n = Domain("n")
        >>> n.fewer(n.shortened(-2)), n.shortened(1).fewer(n), n.fewer(Domain("m")), range_of(3).fewer(range_of(5))
        (2, 1, None, 2)
        """
        if self.per > 1 or whole.per > 1:
            return None
        if self.sized and whole.sized and self.count is not None and whole.count is not None:
            return whole.count - self.count
        return self.less - whole.less if (self.of or self) == (whole.of or whole) else None

    def blocks(self, per: int) -> Domain:
        """The numbers of its blocks of `per` values; the last block may have fewer.

        >>> Domain("n").blocks(3).extent({Domain("n"): 7})
        3
        """
        return Domain(f"{self.name} / {per}", of=self, per=per)

    @property
    def half(self) -> Domain:
        """The numbers up to half of how many values it has.

        >>> [Domain("n").half.extent({Domain("n"): n}) for n in (1, 4, 5)]
        [1, 3, 3]
        """
        return Domain(f"half of {self.name}", of=self, less=-1, per=2)

    def first(self, size: int) -> int:
        """The value that entry 0 of an axis with `size` entries stands for."""
        if self.lower is not None:
            return self.lower
        return -(size // 2) if self.symmetric else 0


def range_of(count: int) -> Domain:
    """The range 0 … count - 1, `N{3}` for 3: the size is a number of the program.

    >>> range_of(3).count, range_of(3).shortened(-1) == range_of(4)
    (3, True)
    """
    return Domain(str(count), sized=True, lower=0, upper=count - 1)


@lru_cache(maxsize=4096)
def _axes(domain: Domain) -> tuple[Domain, ...]:
    if domain.listed:
        return (replace(domain, symmetric=False, directions=1, listed=False),)
    if domain.directions == 1:
        return (domain,)
    numbers = range(1, domain.directions + 1)
    return tuple(replace(domain, name=f"{domain.name}.{n}", directions=1) for n in numbers)


@dataclass(frozen=True, slots=True)
class Index:
    """An integer; `domain` is None for an expression such as `k + b`, which has no range of its own."""

    domain: Domain | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A real or a complex number; a real one may be a point of an `interval`."""

    complex: bool
    interval: Interval | None = None


REAL = Number(complex=False)
COMPLEX = Number(complex=True)
INTEGER = Index(None)


@dataclass(frozen=True, slots=True)
class Symmetry:
    """T(a₁…aₙ) = sign · conj? T(b₁…bₙ) with b_s = Σ coefficient · a_slot over the pairs of `rows[s]`, slots from 0.

    >>> Symmetry.permutation((2, 1), "conj") == HERMITIAN
    True

    `names` are those of the tensor and of its indices where the program wrote a map; they make no difference.
    """

    rows: tuple[tuple[tuple[int, int], ...], ...]
    sign: int = 1
    conj: bool = False
    names: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def identity(cls, rank: int) -> Symmetry:
        """T(a₁…aₙ) = T(a₁…aₙ)."""
        return cls(tuple(((slot, 1),) for slot in range(rank)))

    @classmethod
    def permutation(cls, slots: tuple[int, ...], action: str) -> Symmetry:
        """T(a₁…aₙ) = act T(a_π(1)…a_π(n)) for `:id`, `:conj`, `:neg`; slots count from 1, as in the paper."""
        if sorted(slots) != list(range(1, len(slots) + 1)):
            raise CombDiffError(
                f"{slots} is not a permutation of the slots 1…{len(slots)}",
                remedy="name every slot once, counted from 1",
            )
        rows = tuple(((slot - 1, 1),) for slot in slots)
        return cls(rows, -1 if action == "neg" else 1, action == "conj")

    @classmethod
    def reflection(cls, slots: tuple[int, ...], rank: int, action: str) -> Symmetry:
        """The indices in `slots` change sign: `:ineg`, and `:inegc`, which conjugates as well."""
        rows = tuple(((s, -1 if s + 1 in slots else 1),) for s in range(rank))
        return cls(rows, 1, action == "inegc")

    def after(self, first: Symmetry) -> Symmetry:
        """The composition: what T(a) = self T(…) says of what `first` says."""
        rows = []
        for row in first.rows:
            total: dict[int, int] = {}
            for slot, coefficient in row:
                for origin, factor in self.rows[slot]:
                    total[origin] = total.get(origin, 0) + coefficient * factor
            rows.append(tuple(sorted((s, c) for s, c in total.items() if c)))
        return Symmetry(tuple(rows), self.sign * first.sign, self.conj != first.conj)

    def image(self, args: Sequence[T], combined: Callable[[Sequence[tuple[int, T]]], T]) -> tuple[T, ...]:
        """The arguments b₁…bₙ for a₁…aₙ; `combined` makes Σ coefficient · a of pairs.

        >>> Symmetry((((1, 1),), ((0, 1), (1, -1)))).image((5, 2), lambda pairs: sum(c * a for c, a in pairs))
        (2, 3)
        """
        return tuple(
            args[row[0][0]] if len(row) == 1 and row[0][1] == 1 else combined([(c, args[slot]) for slot, c in row])
            for row in self.rows
        )

    @property
    def permutes(self) -> bool:
        """Whether it only exchanges slots (no sign changes of an index, no arithmetic)."""
        return all(len(row) == 1 and row[0][1] == 1 for row in self.rows)

    def __str__(self) -> str:
        """As written in a declaration: `((2, 1), :conj)`, or as a map where no action says it.

        >>> print(Symmetry((((1, 1),), ((0, 1), (1, -1))), -1, True))
        T -> (i, j) -> -T(j, i - j)'
        """
        if self.permutes and not (self.conj and self.sign < 0):
            action = "conj" if self.conj else "neg" if self.sign < 0 else "id"
            slots = [row[0][0] + 1 for row in self.rows]
        elif self.sign > 0 and all(len(row) == 1 and row[0] in ((s, 1), (s, -1)) for s, row in enumerate(self.rows)):
            action = "inegc" if self.conj else "ineg"
            slots = [s + 1 for s, row in enumerate(self.rows) if row[0][1] < 0]
        else:
            return self._as_map()
        inner = ", ".join(map(str, slots)) + ("," if len(slots) == 1 else "")
        return f"(({inner}), :{action})"

    def _as_map(self) -> str:
        rank = len(self.rows)
        usual = tuple("ijklmnpqrs"[:rank]) if rank <= 10 else tuple(f"i{n}" for n in range(1, rank + 1))
        tensor, *indices = self.names or ("T", *usual)
        image = ", ".join(affine_text(row, indices) for row in self.rows)
        prime = "'" if self.conj else ""
        written = indices[0] if rank == 1 else f"({', '.join(indices)})"
        return f"{tensor} -> {written} -> {'-' * (self.sign < 0)}{tensor}({image}){prime}"


def affine_text(row: tuple[tuple[int, int], ...], indices: Sequence[str]) -> str:
    """An index that is made of others, `k - 2 * b`, of its pairs (slot, coefficient) and what slots are called."""
    text = ""
    for slot, c in sorted(row, key=lambda pair: pair[1] < 0):
        piece = indices[slot] if abs(c) == 1 else f"{abs(c)} * {indices[slot]}"
        text += f"{' - ' if c < 0 else ' + '}{piece}" if text else f"{'-' * (c < 0)}{piece}"
    return text or "0"


SYMMETRIC = Symmetry.permutation((2, 1), "id")
HERMITIAN = Symmetry.permutation((2, 1), "conj")


@dataclass(frozen=True, slots=True)
class Map:
    """A map from `params` to `result`. `space` is the name that the program gave it (`@space T`, or `Her`).

    Types that differ in that name alone are equal. A `linear` map is declared to be so: its pullback is its adjoint.
    The entries of a `positive` tensor are declared to be above 0, the eigenvalues of a matrix that is `definite`; these
    are of the type of any other. Of a function on an interval `fixed` says which of its derivatives are given at the
    ends, 0 being its values, and do not vary there. An `increasing` function of a real number is strictly so, and takes
    all values. The `adjoint` of a linear map is declared to be "self", the map, or "neg", its negative.
    """

    params: tuple[Type, ...]
    result: Type
    symmetries: tuple[Symmetry, ...] = ()
    space: str = field(default="", compare=False, repr=False)
    linear: bool = False
    positive: bool = field(default=False, compare=False, repr=False)
    definite: bool = field(default=False, compare=False, repr=False)
    fixed: tuple[int, ...] = field(default=(), compare=False, repr=False)
    adjoint: str = ""
    increasing: bool = field(default=False, compare=False, repr=False)

    @property
    def is_tensor(self) -> bool:
        """Whether it maps indices to a number, and so can be held in an array."""
        return isinstance(self.result, Number) and self.is_array

    @property
    def is_array(self) -> bool:
        """Whether an array holds its values: those of a tensor, or whole numbers, as of i ↦ i + 1."""
        return isinstance(self.result, Number | Index) and all(isinstance(p, Index) for p in self.params)

    @property
    def is_integers(self) -> bool:
        """Whether it maps indices to an index, `J::(N) -> N{m}`, and so is held in an array of integers."""
        return isinstance(self.result, Index) and self.is_array


@dataclass(frozen=True, slots=True)
class Product:
    """A tuple of values."""

    items: tuple[Type, ...]


Type = Index | Number | Map | Product


def slot_types(t: Type) -> tuple[Type, ...]:
    """The types of the parameters of a map, the slots of a tensor; a number has none.

    >>> slot_types(Map((INTEGER,), REAL)), slot_types(REAL)
    ((Index(domain=None),), ())
    """
    return t.params if isinstance(t, Map) else ()


def maps_in_turn(t: Type) -> tuple[Map, ...]:
    """The maps one in the other of f ↦ (c ↦ n(f, c)), which maps indices to tensors; none of any other type.

    >>> [len(one.params) for one in maps_in_turn(Map((INTEGER, INTEGER), Map((INTEGER,), REAL)))]
    [2, 1]
    >>> maps_in_turn(Map((INTEGER,), REAL))
    ()
    """
    found: list[Map] = []
    while isinstance(t, Map) and all(isinstance(p, Index) for p in t.params):
        found.append(t)
        t = t.result
    return tuple(found) if len(found) > 1 and isinstance(t, Number) else ()


def is_value(t: Type) -> bool:
    """Whether it is the type of a number or of a tensor, which arrays hold, and not of a tuple or an unknown map."""
    return isinstance(t, Number) or (isinstance(t, Map) and t.is_tensor)


def is_function(t: Type) -> bool:
    """Whether it is the type of a map of something else than indices, which no array holds."""
    return isinstance(t, Map) and not all(isinstance(p, Index) for p in t.params)


def is_periodic(t: Type) -> bool:
    """Whether it is the type of indices of a periodic domain, k + N being k."""
    return isinstance(t, Index) and t.domain is not None and t.domain.periodic


def is_contractable(t: Type) -> bool:
    """Whether a δ may be solved for indices of this type, as `@domain` allows unless it says otherwise."""
    return isinstance(t, Index) and t.domain is not None and t.domain.contractable


def is_complex(t: Type) -> bool:
    """Whether values of `t` are complex numbers, or maps (tuples) of such."""
    match t:
        case Number():
            return t.complex
        case Map():
            return is_complex(t.result)
        case Product():
            return any(is_complex(item) for item in t.items)
        case _:
            return False


def is_real(t: Type) -> bool:
    """Whether values of `t` are real numbers, of an interval or any.

    >>> is_real(Number(complex=False, interval=Interval("Line"))), is_real(COMPLEX)
    (True, False)
    """
    return isinstance(t, Number) and not t.complex


def interval_of(t: Type) -> Interval | None:
    """The interval of which values of `t` are points; None for all else.

    >>> interval_of(Number(complex=False, interval=Interval("Line"))).name, interval_of(REAL)
    ('Line', None)
    """
    return t.interval if isinstance(t, Number) else None


def interval_of_rule(t: Type) -> Interval | None:
    """The interval for whose quadrature rule a parameter of this type stands; None for all others."""
    last = t.params[-1] if isinstance(t, Map) and t.params else None
    return last.domain.nodes if isinstance(last, Index) and last.domain is not None else None


def is_discrete(t: Type) -> bool:
    """Whether values of `t` are integers or arrays of integers, by which nothing is differentiated.

    >>> n = Index(Domain("n"))
    >>> is_discrete(n), is_discrete(Map((n,), n)), is_discrete(Map((n,), REAL))
    (True, True, False)
    """
    return isinstance(t, Index) or (isinstance(t, Map) and t.is_integers)


def entry_range(t: Type) -> Domain | None:
    """The domain of the entries of an array of integers; None for what is none.

    >>> entry_range(Map((Index(Domain("e")),), Index(Domain("n")))).name
    'n'
    """
    return t.result.domain if isinstance(t, Map) and t.is_integers and isinstance(t.result, Index) else None


def same_range(a: Type, b: Type) -> bool:
    """Whether indices of these types run over the same values: one domain, or two with the same bounds.

    >>> same_range(Index(Domain("Z", lower=0, upper=7)), Index(Domain("B", lower=0, upper=7)))
    True
    >>> same_range(Index(Domain("A.1")), Index(Domain("A.2")))
    False
    """
    if a == b or not (isinstance(a, Index) and isinstance(b, Index)) or a.domain is None or b.domain is None:
        return a == b
    return a.domain.count is not None and replace(a.domain, name=b.domain.name) == b.domain


def same_ranges(a: Sequence[Type], b: Sequence[Type]) -> bool:
    """The same for several indices, one after the other.

    >>> same_ranges([REAL], [])
    False
    """
    return len(a) == len(b) and all(map(same_range, a, b))
