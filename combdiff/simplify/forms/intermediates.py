"""Values with a name: those that the user defined are recognised where they stand written out, others get a name.

    sum((r, s), V(p, r, q, s) * P(r, s))   becomes   K(p, q)   after K = (p, q) -> sum((r, s), V(p, r, q, s) * P(r, s))

Equal are values of one closed form (`closed.py`), so that names of indices, the order of factors and declared
symmetries play no role; multiples and conjugates are recognised too.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from combdiff.budget import Budget
from combdiff.canon.canonical import Symmetries
from combdiff.canon.closed import ClosedForm, closed_form, inverse
from combdiff.canon.skeleton import NOTHING
from combdiff.simplify.choose import Binding, is_cheap
from combdiff.simplify.products import Look, content, look
from combdiff.terms.terms import (
    Lam,
    Term,
    Var,
    apply,
    conj,
    fresh,
    mul,
    number,
    reciprocal,
    substitute,
    subterms,
)
from combdiff.terms.types import Index, Number, is_complex

LETTERS = {0: "tsac", 1: "vwuyz"}
MATRICES = "PQSWYZ"
"""What a new value is called by its rank: the first letter that is free, then the first one with a number."""


@dataclass(frozen=True, slots=True)
class Value:
    """A named value; its closed form is found when it is first asked for."""

    var: Var
    params: tuple[Var, ...]
    entry: Term
    forms: dict[Var, ClosedForm]

    def form(self, named: Intermediates) -> ClosedForm:
        """The closed form of the value."""
        if self.var not in self.forms:
            self.forms[self.var] = named.closed(self.params, self.entry)
        return self.forms[self.var]

    def at(self, own: ClosedForm, form: ClosedForm, opens: Sequence[Var]) -> Term:
        """What has the closed form `form`, with the key of its `own`, at the indices `opens`."""
        # t = c · V K and var = c₀ · V₀ K, so that t = (c / c₀) V V₀⁻¹ var; c₀ is conjugated with what it divides
        view = form.view.after(inverse(own.view))
        args = [mul(number(row[0][1]), opens[row[0][0]]) for row in view.rows]
        entry = mul(reciprocal(number(own.coefficient)), apply(self.var, *args) if args else self.var)
        return mul(number(form.coefficient), number(view.sign), conj(entry) if view.conj else entry)


def _number(v: Var) -> int:
    return v.uid


@dataclass(slots=True)
class Intermediates:
    """The values that have a name, and new ones with names that nothing else carries (`taken`).

    `captured` are the variables that are known everywhere, the values that have been `computed` among them; only what
    holds no others but indices can have a name. `mentioning` has the values by the newest variable in them, `collected`
    what became of sums of terms, by their form: None of those that stayed.
    """

    captured: set[Var]
    taken: set[str]
    symmetries: Symmetries
    unused: Collection[Var]
    budget: Budget
    values: dict[Var, Value] = field(default_factory=dict)
    looks: dict[Look, list[Value]] = field(default_factory=dict)
    forms: dict[Var, ClosedForm] = field(default_factory=dict)
    named: list[Binding] = field(default_factory=list)
    mentioning: dict[Var | None, list[Var]] = field(default_factory=dict)
    computed: set[Var] = field(default_factory=set)
    collected: dict[Hashable, tuple[Sequence[Var], Term | None]] = field(default_factory=dict)

    def define(self, var: Var, value: Term) -> None:
        """`value` is called `var` from now on; plain products are not worth looking for."""
        self.captured.add(var)
        self.computed.add(var)
        params, entry = (value.params, value.body) if isinstance(value, Lam) else ((), value)
        if not isinstance(entry.type, Number) or is_cheap(entry) or not all(p in entry.free for p in params):
            return
        if all(v in self.captured or isinstance(v.kind, Index) for v in entry.free):
            self.values[var] = Value(var, params, entry, self.forms)
            self.mentioning.setdefault(max(value.free, key=_number, default=None), []).append(var)
            self.looks.setdefault(look(entry), []).append(self.values[var])

    def known(self, t: Term) -> Term | None:
        """An entry of a named value that `t` equals up to a number, or None: a real `t` is none of a complex one."""
        alike = self.looks.get(look(t), ())
        if not alike or not self.is_nameable(t):
            return None
        form = self.form(t)
        for value in alike:
            own = value.form(self)
            if own.key == form.key and NOTHING not in (own.coefficient, form.coefficient):
                found = value.at(own, form, self.open_indices(t))
                # tanh(a) would be -im * b for b = im * tanh(a), and its type would no longer say that it is real
                if is_complex(t.type) or not is_complex(found.type):
                    return found
        return None

    def form(self, t: Term) -> ClosedForm:
        """The closed form of `t` over the indices that are bound around it."""
        return self.closed(self.open_indices(t), t)

    def closed(self, params: Sequence[Var], entry: Term) -> ClosedForm:
        """The closed form of a map."""
        return closed_form(Lam(tuple(params), entry), self.symmetries, self.unused, self.budget)

    def name(self, t: Term) -> Term:
        """`t` as an entry of a value, a number in front; of a new value if need be, `t` itself if it can have none."""
        if not self.is_nameable(t):
            return t
        size, t = content(t)
        known = self.known(t)
        if known is not None:
            return mul(size, known)
        if self.form(t).coefficient == NOTHING:
            return mul(size, t)
        opens = self.open_indices(t)
        params = tuple(fresh(v.name, v.kind) for v in opens)
        value = Lam(params, substitute(t, dict(zip(opens, params, strict=True)))) if params else t
        var = fresh(self._free_name(len(params)), value.type)
        self.define(var, value)
        self.named.append((var, value))
        return mul(size, apply(var, *opens) if opens else var)

    def _free_name(self, rank: int) -> str:
        letters = LETTERS.get(rank, MATRICES)
        numbered: Iterator[str] = (f"{letters[0]}{n}" for n in range(1, 1 << 30))
        chosen = next(name for names in (letters, numbered) for name in names if name not in self.taken)
        self.taken.add(chosen)
        return chosen

    def properties(self, v: Var) -> Hashable:
        """What matters of a variable besides its type."""
        return v in self.captured, v in self.unused, self.symmetries.get(v, ())

    def alone(self, var: Var) -> Intermediates:
        """The same with `var` as the only value that is known."""
        return self._only([self.values[var]] if var in self.values else [])

    def within(self, t: Term) -> Intermediates:
        """The same with those values only that can stand in `t`, which mention nothing that `t` does not."""
        near = [self.values[w] for v in (*t.free, None) for w in self.mentioning.get(v, ()) if w in self.values]
        return self._only([v for v in near if v.entry.free - set(v.params) <= t.free])

    def _only(self, values: Sequence[Value]) -> Intermediates:
        looks: dict[Look, list[Value]] = {}
        for v in values:
            looks.setdefault(look(v.entry), []).append(v)
        return replace(self, values={v.var: v for v in values}, looks=looks, named=[])

    def open_indices(self, t: Term) -> list[Var]:
        """The indices of `t` that are bound around it, in the order in which it mentions them."""
        mentioned = dict.fromkeys(u for u in subterms(t) if isinstance(u, Var) and isinstance(u.kind, Index))
        return [v for v in mentioned if v in t.free and v not in self.captured]

    def is_nameable(self, t: Term) -> bool:
        """Whether nothing is bound around `t` but indices."""
        return all(v in self.captured or isinstance(v.kind, Index) for v in t.free)
