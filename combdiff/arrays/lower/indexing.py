"""Lowers index arithmetic: entries T(k, k + b) become gathers, and a δ that remains becomes a scatter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from combdiff.arrays import ops
from combdiff.arrays.lower.arrays import Arrays, Labels, Value, alignment, domain_of
from combdiff.arrays.plan import Step
from combdiff.errors import UnsupportedError
from combdiff.records import dataclass
from combdiff.terms.conditions.ordering import is_kept
from combdiff.terms.terms import App, Const, Mul, Reduce, Sum, Term, Var, add, mul, number, terms_of
from combdiff.terms.types import Domain, Index

Atom = Var | App | Sum


@dataclass(frozen=True, slots=True)
class Affine:
    """Σ coefficient · index + constant; an entry of an integer tensor, X(b, 0), or a size may stand for an index."""

    coefficients: tuple[tuple[Atom, int], ...]
    constant: int = 0

    @property
    def variables(self) -> Labels:
        return tuple(dict.fromkeys(v for atom, _ in self.coefficients for v in _indices(atom)))

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What the indices and entries that are added range over."""
        kinds = (atom.type for atom, _ in self.coefficients)
        return tuple(k.domain for k in kinds if isinstance(k, Index) and k.domain is not None)

    @property
    def bare(self) -> Var | None:
        """The variable, if the form is nothing else."""
        match self.coefficients:
            case ((Var() as var, 1),) if not self.constant:
                return var
            case _:
                return None

    @property
    def entry(self) -> App | None:
        """The entry of an integer tensor, if the form is nothing else."""
        match self.coefficients:
            case ((App() as entry, 1),) if not self.constant:
                return entry
            case _:
                return None

    def place(self, slot: Domain) -> int | None:
        """The constant that the form is; below 0 it counts from the end of the range, as n - 1 does."""
        match self.coefficients:
            case ():
                return self.constant
            case ((Sum() as size, 1),) if slot.from_zero and size.counted is not None:
                more = slot.fewer(size.counted)
                return None if more is None or self.constant + more >= 0 else self.constant + more
            case _:
                return None


def _indices(atom: Atom) -> Labels:
    match atom:
        case Var():
            return (atom,)
        case App(Reduce() as whole, ()):
            return tuple(sorted((v for v in whole.free if isinstance(v.kind, Index)), key=lambda v: v.uid))
        case App(_, args):
            return tuple(v for a in args for v in affine(a).variables)
        case _:
            return ()


def affine(t: Term) -> Affine:
    """The affine form of an index expression.

    >>> from combdiff.terms.terms import ONE, add, fresh
    >>> from combdiff.terms.types import Index
    >>> k = fresh("k", Index(Domain("K")))
    >>> affine(add(k, ONE)).constant
    1
    """
    coefficients: dict[Atom, int] = {}
    constant = 0
    for term in terms_of(t):
        match term:
            case Const() if term.is_integer:
                constant += int(term.real)
            case Sum() if term.counted is None:
                raise _not_affine()
            case Var() | App() | Sum():
                coefficients[term] = coefficients.get(term, 0) + 1
            case Mul((Const() as c, (Var() | App() | Sum()) as atom)) if c.is_integer:
                coefficients[atom] = coefficients.get(atom, 0) + int(c.real)
            case _:
                raise _not_affine()
    return Affine(tuple((v, c) for v, c in coefficients.items() if c), constant)


def _not_affine() -> UnsupportedError:
    return UnsupportedError(
        "an index is computed in a way that is not affine", remedy="use sums of indices with integer coefficients"
    )


def position(arrays: Arrays, form: Affine, slot: Domain | None) -> Value:
    """An integer array: where in an array's axis of domain `slot` the entry lies; the plain value if it is None."""
    bare = form.bare
    if bare is not None and (slot is None or slot in (domain_of(bare), *domain_of(bare).common)):
        return arrays.integers(bare, ops.Range if slot is None else ops.Place)
    if form.entry is not None and (slot is None or (form.entry.type == Index(slot) and slot.first(2) == 0)):
        return _integers(arrays, form.entry)
    if slot is None and not form.constant and len(form.coefficients) == 1 and form.coefficients[0][1] == 1:
        return _integers(arrays, form.coefficients[0][0])
    # one order of the variables, so that k + b and b + k are one index array
    form = Affine(tuple(sorted(form.coefficients, key=lambda pair: _rank(pair, slot))), form.constant)
    modulo = slot if slot is not None and (slot.periodic or leaves(form, slot)) else None
    shift = slot if slot is not None and slot.symmetric and slot.count is None else None
    lower = 0 if slot is None or slot.lower is None else slot.lower
    coefficients = tuple(c for _, c in form.coefficients)
    op = ops.Position(coefficients, form.constant - lower, modulo, shift)
    if not form.coefficients:
        return Value(arrays.builder.step(op, (), ()), ())
    values = [_integers(arrays, atom) for atom, _ in form.coefficients]
    steps_first = sorted(form.variables, key=lambda v: domain_of(v) == slot)
    value = arrays.elementwise(op, values, steps_first)
    if form.variables:
        arrays.names.setdefault(value.step, "".join(v.name for v in form.variables))
    return value


def leaves(form: Affine, slot: Domain) -> bool:
    """Whether an index may leave a plain range; where it does, it does not count, and wraps around."""
    if slot.periodic or slot.symmetric or slot.listed or len(slot.axes) > 1 or not form.coefficients:
        return False
    bare = form.bare
    if bare is not None and slot in (domain_of(bare), *domain_of(bare).common):
        return False
    if form.entry is not None:
        return form.entry.type != Index(slot)
    return not is_kept(as_term(form), slot, ())


def as_term(form: Affine) -> Term:
    """The index expression of an affine form."""
    return add(*(mul(number(c), v) for v, c in form.coefficients), number(form.constant))


def _integers(arrays: Arrays, atom: Atom) -> Value:
    """The values of an index, or of the entry of an integer tensor, or a size."""
    if isinstance(atom, Var):
        return arrays.integers(atom)
    if isinstance(atom, Sum):
        assert atom.counted is not None, "a size"
        return arrays.size(atom.counted)
    if isinstance(atom.function, Reduce):
        assert arrays.placed is not None, "what computes it"
        return arrays.placed(atom.function)
    assert isinstance(atom.function, Var), "an integer tensor"
    return entry(arrays, arrays.integer_tensors[atom.function], [affine(a) for a in atom.args])


def _rank(pair: tuple[Atom, int], slot: Domain | None) -> tuple[bool, bool, str]:
    atom, factor = pair
    if isinstance(atom, App):
        return factor < 0, True, atom.function.name if isinstance(atom.function, Var) else ""
    if isinstance(atom, Sum):
        return factor < 0, True, atom.counted.name if atom.counted is not None else ""
    return factor < 0, domain_of(atom) != slot, domain_of(atom).name


def shifted(arrays: Arrays, a: Value, old: Var, new: Var, by: int) -> Value:
    """The entries whose place along `old` is that of `new`, and `by` beyond it, modulo the number of places."""
    axis, domain = a.labels.index(old), domain_of(old)
    labels = tuple(new if v == old else v for v in a.labels)
    if domain == domain_of(new):
        return Value(arrays.builder.step(ops.Roll(axis, -by), (a.step,), a.step.domains) if by else a.step, labels)
    op = ops.Position((1,), by, domain, None)
    places = arrays.elementwise(op, [arrays.integers(new, ops.Place)])
    arrays.names.setdefault(places.step, new.name)
    slots = tuple((0,) if v == old else None for v in a.labels)
    return Value(arrays.builder.step(ops.Gather(slots, 1), (a.step, places.step), map(domain_of, labels)), labels)


# --- gather ---------------------------------------------------------------------------------------------------------


def entry(arrays: Arrays, array: Step, forms: Sequence[Affine]) -> Value:
    """T(form₁, form₂, …) as an array over the indices that stand in the forms.

    Bare indices cost nothing; constants, reversals and shifts are views or one copy; all else is one gather.
    """
    array, forms = _pick(arrays, array, forms)
    array, forms = _turn(arrays, array, forms)
    array, forms = _looked_through(arrays, array, forms)
    array, forms = _slid(arrays, array, forms)
    labels = tuple(v for f in forms if (v := f.bare) is not None)
    if len(labels) == array.rank and all(domain_of(v) == d for v, d in zip(labels, array.domains, strict=True)):
        if len(set(labels)) == len(labels):
            return Value(array, labels)
        if len(labels) == 2:
            return Value(arrays.builder.step(ops.Diagonal(), (array,), array.domains[:1]), labels[:1])
    return _gather(arrays, array, forms)


def _pick(arrays: Arrays, array: Step, forms: Sequence[Affine]) -> tuple[Step, Sequence[Affine]]:
    """Slots that hold a constant, or one that counts from the end."""
    found = [f.place(domain) for f, domain in zip(forms, array.domains, strict=True)]
    picked = tuple((axis, place, array.domains[axis]) for axis, place in enumerate(found) if place is not None)
    if not picked:
        return array, forms
    rest = [axis for axis, place in enumerate(found) if place is None]
    step = arrays.builder.step(ops.Pick(picked), (array,), [array.domains[axis] for axis in rest])
    return step, [forms[axis] for axis in rest]


def _turn(arrays: Arrays, array: Step, forms: Sequence[Affine]) -> tuple[Step, Sequence[Affine]]:
    """Slots that hold −b of a symmetric domain, n − 1 − i or k + c, where the index stands nowhere else."""
    turned = list(forms)
    for axis, (form, domain) in enumerate(zip(forms, array.domains, strict=True)):
        array, form = _reversed(arrays, array, form, axis)
        turned[axis] = form
        if len(form.coefficients) != 1:
            continue
        var, factor = form.coefficients[0]
        if not isinstance(var, Var) or domain_of(var) != domain or sum(var in f.variables for f in forms) > 1:
            continue
        if domain.symmetric and factor == -1 and not form.constant:
            array = arrays.builder.step(ops.Flip(axis), (array,), array.domains)
        elif factor == 1 and form.constant and (domain.periodic or leaves(form, domain)):
            array = arrays.builder.step(ops.Roll(axis, -form.constant), (array,), array.domains)
        else:
            continue
        turned[axis] = Affine(((var, 1),))
    return array, turned


def _reversed(arrays: Arrays, array: Step, form: Affine, axis: int) -> tuple[Step, Affine]:
    """The array read backwards along an axis that holds n − i + c, where it holds i − c − 1 then."""
    domain = array.domains[axis]
    match sorted(form.coefficients, key=lambda pair: pair[1]):
        case [(Var() as v, -1), (Sum() as size, 1)] if domain.plain and size.counted == domain == domain_of(v):
            step = arrays.builder.step(ops.Flip(axis), (array,), array.domains)
            return step, Affine(((v, 1),), -form.constant - 1)
        case _:
            return array, form


def _looked_through(arrays: Arrays, array: Step, forms: Sequence[Affine]) -> tuple[Step, Sequence[Affine]]:
    """Slots that hold an index, or k + c, of a part of their range, where the index stands nowhere else."""
    seen = list(forms)
    for axis, (form, domain) in enumerate(zip(forms, array.domains, strict=True)):
        if len(form.coefficients) != 1 or form.coefficients[0][1] != 1:
            continue
        var = form.coefficients[0][0]
        if (
            not isinstance(var, Var)
            or sum(var in f.variables for f in forms) > 1
            or not _is_part(var, form.constant, domain)
        ):
            continue
        own = domain_of(var)
        start = form.constant + (own.lower or 0) - (domain.lower or 0)
        domains = [own if n == axis else d for n, d in enumerate(array.domains)]
        array = arrays.builder.step(ops.Window(axis, start), (array,), domains)
        seen[axis] = Affine(((var, 1),))
    return array, seen


def _slid(arrays: Arrays, array: Step, forms: Sequence[Affine]) -> tuple[Step, Sequence[Affine]]:
    """Several slots that hold an index, or k + c, of a range with a few values more, each of them gathered by itself.

    Where a condition keeps the places in range, each of these gathers is a slice.
    """
    axes = [axis for axis, form in enumerate(forms) if _slides(form, array.domains[axis], forms)]
    if len(axes) < 2:
        return array, forms
    seen = list(forms)
    for axis in axes:
        var = forms[axis].variables[0]
        places = position(arrays, forms[axis], array.domains[axis])
        domains = [domain_of(var) if n == axis else d for n, d in enumerate(array.domains)]
        slots = tuple((0,) if n == axis else None for n in range(array.rank))
        array = arrays.builder.step(ops.Gather(slots, 1), (array, places.step), domains, array.complex)
        seen[axis] = Affine(((var, 1),))
    return array, seen


def _slides(form: Affine, domain: Domain, forms: Sequence[Affine]) -> bool:
    match form.coefficients:
        case ((Var() as v, 1),) if sum(v in f.variables for f in forms) == 1:
            return bool(domain_of(v).fewer(domain)) and leaves(form, domain)
        case _:
            return False


def _is_part(v: Var, by: int, domain: Domain) -> bool:
    """Whether k + `by` is, for all values of an index, in a range that is another one.

    Both have known bounds, or one has so many values fewer than the other.
    """
    own = domain_of(v)
    left = own.fewer(domain)
    if left:
        return 0 <= by <= left
    if own.lower is None or own.upper is None or domain.lower is None or domain.upper is None:
        return False
    plain = not (own.periodic or domain.periodic or domain.listed or own.listed) and len(domain.axes) == 1
    return plain and own != domain and domain.lower <= own.lower + by and own.upper + by <= domain.upper


def _gather(arrays: Arrays, array: Step, forms: Sequence[Affine]) -> Value:
    slots = list(zip(forms, array.domains, strict=True))
    advanced = _advanced(slots)
    order = _gathered(slots, advanced)
    if len(order) > 1 and len(advanced) < len(slots):
        array, forms = _led_by(arrays, array, forms, advanced, repeated=len(order) > len(advanced))
        slots = list(zip(forms, array.domains, strict=True))
        advanced = list(range(len(advanced)))
    places = {axis: position(arrays, forms[axis], slots[axis][1]) for axis in advanced}
    at = tuple(alignment(places[axis].labels, order) if axis in places else None for axis in range(len(slots)))
    op = ops.Gather(at, len(order))
    kept = dict(_untouched(forms, places))
    # NumPy puts the gathered axes where the index arrays stand if these are neighbours, and first otherwise
    before = [v for axis, v in kept.items() if op.neighbours and axis < advanced[0]]
    after = [v for axis, v in kept.items() if not op.neighbours or axis > advanced[-1]]
    labels = (*before, *order, *after)
    operands = (array, *(places[axis].step for axis in advanced))
    return Value(arrays.builder.step(op, operands, map(domain_of, labels), array.complex), labels)


def _gathered(slots: Sequence[tuple[Affine, Domain]], advanced: Sequence[int]) -> Labels:
    """The indices of a gather, steps before the points that they start from: for one step the result lies together."""
    variables = dict.fromkeys(v for axis in advanced for v in slots[axis][0].variables)
    own = {v for axis in advanced for v in slots[axis][0].variables if domain_of(v) == slots[axis][1]}
    return (*(v for v in variables if v not in own), *(v for v in variables if v in own))


def _led_by(
    arrays: Arrays, array: Step, forms: Sequence[Affine], first: Sequence[int], repeated: bool
) -> tuple[Step, Sequence[Affine]]:
    """The array with some axes first, so that a gather moves what the others hold together: one matrix for each point.

    Where it takes every entry more than once, the array is laid out so before.
    """
    turn = (*first, *(axis for axis in range(array.rank) if axis not in first))
    forms = [forms[axis] for axis in turn]
    if turn == tuple(range(array.rank)):
        return array, forms
    return (arrays.laid_out(array, turn) if repeated else arrays.permuted(array, turn)), forms


def _untouched(forms: Sequence[Affine], places: Collection[int]) -> Iterator[tuple[int, Var]]:
    """The slots that no index array stands in, and their bare indices."""
    for axis, form in enumerate(forms):
        if axis not in places and form.bare is not None:
            yield axis, form.bare


def _advanced(slots: Sequence[tuple[Affine, Domain]]) -> list[int]:
    """The slots that need index arrays: those with arithmetic, and those that share an index with another slot."""
    count: dict[Var, int] = {}
    for form, _ in slots:
        for v in form.variables:
            count[v] = count.get(v, 0) + 1
    return [
        axis
        for axis, (form, domain) in enumerate(slots)
        if (bare := form.bare) is None or count[bare] > 1 or domain_of(bare) != domain
    ]


# --- scatter --------------------------------------------------------------------------------------------------------


def solve(left: Affine, right: Affine, allowed: Sequence[Var]) -> tuple[Var, Affine] | None:
    """(i, form) with left = right exactly where i = form, in range for all values; None if there is no such i.

    Equality is modulo the size where a variable is periodic, also one that cancels: k = k + j says j = 0 modulo it.
    """
    mentioned = (*left.domains, *right.domains)
    for v in allowed:
        if abs(_difference(left, right).get(v, 0)) != 1:
            continue
        form = solved_for(v, left, right)
        if v not in form.variables and _in_range(v, form, mentioned):
            return v, form
    return None


def solved_for(v: Var, left: Affine, right: Affine) -> Affine:
    """What v is where left = right, in which it has the coefficient 1 or −1."""
    total = _difference(left, right)
    c = total[v]
    constant = left.constant - right.constant
    return Affine(tuple((u, -c * d) for u, d in total.items() if u != v), -c * constant)


def _difference(left: Affine, right: Affine) -> dict[Atom, int]:
    total = dict(left.coefficients)
    for v, c in right.coefficients:
        total[v] = total.get(v, 0) - c
    return {v: c for v, c in total.items() if c}


def _in_range(v: Var, form: Affine, mentioned: Sequence[Domain]) -> bool:
    domain = domain_of(v)
    if any(other.periodic and other != domain for other in mentioned):
        return False
    if domain.periodic:
        return True
    if not form.coefficients:
        if domain.lower is not None and domain.upper is not None:
            return domain.lower <= form.constant <= domain.upper
        return domain.symmetric and form.constant == 0
    if len(form.coefficients) != 1:
        return bool(form.variables) and is_kept(as_term(form), domain, ())
    u, c = form.coefficients[0]
    if isinstance(u, Var) and c == 1 and _is_part(u, form.constant, domain):
        return True
    if form.constant:
        return False
    return u.type == v.type and (c == 1 or (c == -1 and domain.symmetric))


def scatter(arrays: Arrays, a: Value, solved: Sequence[tuple[Var, Affine]], kept: Sequence[Var]) -> Value:
    """The array that holds a's entries where each solved index equals its form, and 0 elsewhere.

    Indices of the forms that are not in `kept` are summed over; where one is a solved index itself, places differ.
    """
    if len(solved) == 1:
        ((v, form),) = solved
        if len(form.coefficients) == 1 and form.coefficients[0][1] == 1:
            u = form.coefficients[0][0]
            if isinstance(u, Var) and u in a.labels and u not in kept and _is_part(u, form.constant, domain_of(v)):
                return _padded(arrays, a, u, v, form.constant)
    sources = _variables(solved)
    sources = (*(v for v in sources if v in kept), *(v for v in sources if v not in kept))
    stay = tuple(v for v in sources if v in kept)
    rest = tuple(v for v in a.labels if v not in sources)
    told = {form.bare for v, form in solved if form.bare and (form.bare.kind == v.kind or not domain_of(v).periodic)}
    adds = any(v not in stay and v not in told for v in sources)
    if adds and not set(sources) <= set(a.labels):
        # NumPy's add.at reads beyond values that it would have to repeat (seen in 2.4)
        a = Value(arrays.arranged(a, (*sources, *rest)), (*sources, *rest))
    return _placed(arrays, a, sources, stay, solved, partial(ops.Scatter, adds=adds))


def grouped(arrays: Arrays, kind: str, a: Value, groups: Sequence[tuple[Var, Affine]], indices: Labels) -> Value:
    """The maximum or the minimum over `indices` of the entries in each group, where forms are `groups`."""
    stay = tuple(v for v in _variables(groups) if v not in indices)
    labels = (*stay, *indices, *(v for v in a.labels if v not in (*stay, *indices)))
    a = Value(arrays.arranged(a, labels), labels)
    return _placed(arrays, a, (*stay, *indices), stay, groups, partial(ops.Grouped, kind=kind))


def _variables(solved: Sequence[tuple[Var, Affine]]) -> Labels:
    return tuple(dict.fromkeys(v for _, form in solved for v in form.variables))


def _placed(
    arrays: Arrays,
    a: Value,
    sources: Labels,
    stay: Labels,
    solved: Sequence[tuple[Var, Affine]],
    made: Callable[..., ops.Placing],
) -> Value:
    """What is made of the entries of an array at the places that forms say, for each value of the indices that stay."""
    rest = tuple(v for v in a.labels if v not in sources)
    places = [arrays.integers(v, ops.Place) for v in stay]
    places += [position(arrays, form, domain_of(v)) for v, form in solved]
    op = made(alignment(a.labels, (*sources, *rest)), tuple(alignment(p.labels, sources) for p in places), len(sources))
    out = (*stay, *(v for v, _ in solved), *rest)
    operands = (a.step, *(p.step for p in places))
    return Value(arrays.builder.step(op, operands, map(domain_of, out), a.step.complex), out)


def _padded(arrays: Arrays, a: Value, u: Var, v: Var, by: int) -> Value:
    """The array that holds a's entries for u at v = u + `by`, and 0 elsewhere."""
    axis = a.labels.index(u)
    labels = tuple(v if w == u else w for w in a.labels)
    start = by + (domain_of(u).lower or 0) - (domain_of(v).lower or 0)
    op = ops.Put(((),), (tuple(range(len(labels))),), False, (((axis, start),),))
    return Value(arrays.builder.step(op, (a.step,), map(domain_of, labels), a.step.complex), labels)
