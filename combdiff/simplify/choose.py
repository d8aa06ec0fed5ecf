"""Chooses which values of a result keep a name, and the names of its indices: stage c without the graph.

The user's definitions stay (Eq. 58 keeps ρ̂). A cotangent that differentiation introduced stays only where it is used
more than once and is more than a product of numbers and entries; otherwise it is put where it is used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from combdiff.canon.both_orders import orders_of
from combdiff.canon.repeats import Repeats
from combdiff.terms.terms import (
    Add,
    App,
    Call,
    Diff,
    Lam,
    Let,
    Loop,
    Mul,
    Sum,
    Term,
    Tuple,
    Var,
    body_of,
    bound_by,
    children,
    fresh,
    held_whole,
    holds_entries,
    neg,
    numbers_read,
    rebuild,
    split_coefficient,
    substitute,
    subterms,
    wraps,
)
from combdiff.terms.types import Index, Map, Type

Binding = tuple[Var, Term]

_SLOT = re.compile(r"d\d*")

LONGEST = 60
"""Nodes of a value that is still put where it is used; a longer one is easier to read under its name."""


def uses(var: Var, terms: Sequence[Term]) -> int:
    """How often `var` is written in `terms`."""

    known: dict[Term, int] = {}

    def count(t: Term) -> int:
        if var not in t.free:
            return 0
        if t not in known:
            known[t] = 1 if t == var else sum(count(c) for c in children(t))
        return known[t]

    return sum(count(t) for t in terms)


def is_cheap(value: Term) -> bool:
    """Whether `value` is a plain product of numbers and entries, which costs nothing to write twice."""
    body = body_of(value)
    return not any(_is_work(t) for t in subterms(body))


def _is_work(t: Term) -> bool:
    match t:
        case Sum(counted=None) | Call() | Diff() | Lam():
            return True
        case Add():
            return not isinstance(t.type, Index)
        case App(Var(_, Map() as kind), _):
            return not kind.is_array
        case _:
            return False


def _is_of_one_order(value: Term) -> bool:
    """Whether it is 0 but where one of its indices is less than another: its uses in both orders may be one."""
    return isinstance(value, Lam) and next(orders_of(value.body), None) is not None


def place(
    bindings: Sequence[Binding],
    results: Sequence[Term],
    kept: Collection[Var],
    ask: Callable[[], None] = lambda: None,
) -> tuple[list[Binding], list[Term]]:
    """Values that are not in `kept` go to where they are used, if they are cheap, short and used once, or of one order.

    Those that stay have no minus sign in front if their uses may have it. `ask` is called often, and may raise to stop.
    """
    placing = _Placing(dict(bindings), list(results))
    movable = [var for var, _ in bindings if var not in kept]
    for var in movable:
        value = placing.values[var]
        if (is_cheap(value) or (_is_of_one_order(value) and _is_short(value))) and not placing.wraps(var):
            ask()
            placing.put(var, _with_copies)
    for var in movable:
        ask()
        if var not in placing.values or not placing.is_used_once(var) or not _is_short(placing.values[var]):
            continue
        if not placing.wraps(var) and not placing.is_gathered(var) and not placing.is_in_loop(var):
            placing.put(var, _with)
    for var in movable:
        if var in placing.values and not placing.wraps(var):
            placing.take_sign_out(var)
    return list(placing.values.items()), placing.results


class _Placing:
    """Values and results, and which values use which."""

    def __init__(self, values: dict[Var, Term], results: list[Term]) -> None:
        self.values, self.results = values, results
        self.users: dict[Var, dict[Var, None]] = {var: {} for var in values}
        for var in values:
            self._note(var)

    def _note(self, user: Var) -> None:
        for v in self.values[user].free & self.users.keys():
            self.users[v][user] = None

    def _forget(self, user: Var) -> None:
        for v in self.values[user].free & self.users.keys():
            del self.users[v][user]

    def is_used_once(self, var: Var) -> bool:
        return _is_used_once(var, [*(self.values[v] for v in self.users[var]), *self.results])

    def wraps(self, var: Var) -> bool:
        """Whether it is taken where an index counts modulo the size of its domain, and is read as a number."""
        value = self.values[var]
        if not isinstance(value, Lam) or numbers_read(value.body).isdisjoint(value.params):
            return False
        users = [*(self.values[v] for v in self.users[var]), *(t for t in self.results if var in t.free)]
        uses = (u.args for t in users for u in subterms(t, App) if u.function == var)
        return any(wraps(p, a, value.body) for args in uses for p, a in zip(value.params, args, strict=True))

    def is_gathered(self, var: Var) -> bool:
        """Whether it is taken at entries of arrays of integers: it is computed once for each index, and then read.

        Or at sums of several indices, s(d + j), if it sums itself: each value would be computed for many pairs.
        """
        users = [*(self.values[v] for v in self.users[var]), *(t for t in self.results if var in t.free)]
        uses = [u.args for t in users for u in subterms(t, App) if u.function == var]
        sums = any(u.counted is None for u in subterms(self.values[var], Sum))
        pairs = sums and any(isinstance(a, Add) and len(a.free) > 1 for args in uses for a in args)
        return pairs or any(holds_entries(*args) for args in uses)

    def is_in_loop(self, var: Var) -> bool:
        """Whether it is used in the step of a loop, which computes anew each time what stands in it."""
        loops = (value for v in self.users[var] if isinstance(value := self.values[v], Loop))
        return any(var in loop.step.free for loop in loops)

    def take_sign_out(self, var: Var) -> None:
        """Name -u u where it is an entry in each use and no more signs are written; what is used as a whole stays."""
        value = self.values[var]
        params, body = (value.params, value.body) if isinstance(value, Lam) else ((), value)
        c, _ = split_coefficient(body)
        users = [*(self.values[v] for v in self.users[var]), *(t for t in self.results if var in t.free)]
        if c.imag or c.real >= 0 or isinstance(value, Loop) or any(var in held_whole(t) for t in users):
            return
        turned = neg(App(var, params)) if params else neg(var)
        turning = {var: Lam(params, turned) if params else turned}
        if sum(_signs(substitute(t, turning)) - _signs(t) for t in users) > 0:
            return
        self.values[var] = Lam(params, neg(body)) if params else neg(body)
        for v in self.users[var]:
            self.values[v] = substitute(self.values[v], turning)
        self.results = [substitute(t, turning) for t in self.results]

    def put(self, var: Var, into: Callable[[Term, Var, Term], Term]) -> None:
        """Put the value of `var` where it is used."""
        self._forget(var)
        value = self.values.pop(var)
        for v in list(self.users[var]):
            self._forget(v)  # what else it used may go with a factor 0
            self.values[v] = into(self.values[v], var, value)
            self._note(v)
        self.results = [into(t, var, value) for t in self.results]


def _signs(t: Term) -> int:
    """How many products have a minus sign."""
    return sum(split_coefficient(u)[0].real < 0 for u in subterms(t, Mul))


def _with_copies(t: Term, var: Var, value: Term) -> Term:
    return substitute(t, {var: value})


def _with(t: Term, var: Var, value: Term) -> Term:
    """`t` with `value` in the one place where it is used, so that its binders need no renaming."""
    if var not in t.free:
        return t
    match t:
        case App(function, args) if function == var and isinstance(value, Lam):
            return substitute(value.body, dict(zip(value.params, args, strict=True)))
        case Var():
            return value
        case _:
            return rebuild(t, [_with(c, var, value) for c in children(t)])


def _is_short(value: Term) -> bool:
    return sum(1 for _ in subterms(value)) <= LONGEST


def _is_used_once(var: Var, terms: Sequence[Term]) -> bool:
    users = [t for t in terms if var in t.free]
    return len(users) == 1 and uses(var, users) == 1


# --- names ----------------------------------------------------------------------------------------------------------


def rename_indices(
    result: Term,
    names: dict[Type, list[str]],
    others: Collection[str] = (),
    ask: Callable[[], None] = lambda: None,
) -> Term:
    """Bound indices get names of `names` (the user's, by type) that nothing around them carries, and no `others`.

    Nor does one get the name of a definition, or that of a size that is a number where the index would hide it. `ask`
    is called often, and may raise to stop.
    """

    defined = frozenset(v.name for v in bound_by(result)) if isinstance(result, Let) else frozenset[str]()

    def go(t: Term, taken: frozenset[str]) -> Term:
        ask()
        bound = [v for v in bound_by(t) if not isinstance(t, Let)]
        taken = taken | _sizes_read(t) if bound and read else taken
        renaming: dict[Var, Term] = {}
        wanted = _in_order(bound, names) if isinstance(t, Sum) else {}
        for v in bound:
            # a state has the name of the definition that it is the value of
            near = taken | defined if isinstance(v.kind, Index) else taken
            name = _free_name(wanted.get(v) or _name(v, t, near, names), v.kind, near, names)
            taken = taken | {name}
            if name != v.name:
                renaming[v] = fresh(name, v.kind)
        parts = [go(substitute(c, renaming) if renaming else c, taken) for c in children(t)]
        if not bound:
            return rebuild(t, parts) if not isinstance(t, Tuple | Let) else _regrouped(t, parts)
        chosen = tuple(renaming.get(v, v) for v in bound)
        variables = tuple(v for v in chosen if isinstance(v, Var))
        return Sum(variables, parts[0]) if isinstance(t, Sum) else Lam(variables, parts[0])

    read = _sizes_read(result)
    outer = frozenset((*others, *_steps_counted(result), *(v.name for v in result.free)))
    once = Repeats(lambda t: go(t, outer))
    if isinstance(result, Let):
        return _regrouped(result, [*map(once, children(result))])
    return go(result, outer)


def _sizes_read(t: Term) -> frozenset[str]:
    """The names of the sizes that are numbers in `t`."""
    counted = [u.counted for u in subterms(t, Sum)]
    return frozenset(d.name for d in counted if d is not None and d.sized)


def _steps_counted(t: Term) -> frozenset[str]:
    """The names of the sizes that are numbers of steps: a loop that runs backwards is printed with T - 1 - t."""
    times = [u.time.kind for u in subterms(t, Loop)]
    domains = [kind.domain.of or kind.domain for kind in times if isinstance(kind, Index) and kind.domain is not None]
    return frozenset(d.name for d in domains if d.sized)


def _regrouped(t: Term, parts: list[Term]) -> Term:
    if isinstance(t, Let):
        return Let(tuple((var, value) for (var, _), value in zip(t.bindings, parts, strict=False)), parts[-1])
    return Tuple(tuple(parts))


def _in_order(bound: Sequence[Var], names: dict[Type, list[str]]) -> dict[Var, str]:
    """The names of the indices of one sum, dealt anew: the user's first name of a type to the first index of it."""
    dealt: dict[Var, str] = {}
    for kind in {v.kind for v in bound}:
        ours = [v for v in bound if v.kind == kind]
        known = names.get(kind, [])
        order = sorted((v.name for v in ours), key=lambda name: known.index(name) if name in known else len(known))
        dealt.update(zip(ours, order, strict=True))
    return dealt


def _name(v: Var, t: Term, taken: Collection[str], names: dict[Type, list[str]]) -> str:
    """The name of an index that `t` binds; of one that only differentiation calls d, a user's name that is free."""
    known = names.get(v.kind, [])
    if not known or v.name in known or not _SLOT.fullmatch(v.name):
        return v.name
    # what is counted is the size of a range, and is written without its index
    written = (u for u in subterms(t) if not isinstance(u, Sum) or u.counted is None)
    inside = {w.name for u in written for w in bound_by(u)}
    return next((name for name in known if name not in taken and name not in inside), v.name)


def _free_name(name: str, kind: Type, taken: frozenset[str], names: dict[Type, list[str]]) -> str:
    if name not in taken:
        return name
    for other in names.get(kind, []):
        if other not in taken:
            return other
    return next(f"{name}{n}" for n in range(1, len(taken) + 2) if f"{name}{n}" not in taken)


def index_names(program: Term) -> dict[Type, list[str]]:
    """The names that the user gave to indices, by the type of the index, in reading order."""
    found: dict[Type, Counter[str]] = {}
    for t in subterms(program):
        for v in bound_by(t):
            if isinstance(v.kind, Index):
                found.setdefault(v.kind, Counter())[v.name] += 1
    return {kind: list(names) for kind, names in found.items()}
