"""Products, means, extrema, softmax, running sums, norms, and sums with a condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from .conditions import Conditions, is_counted, slots_of
from .expressions import told
from .functions import SINGLE
from .kinds import Index, Integers, Range, Tensor
from .sight import LARGEST_LOOP, Sight, bare
from .syntax import (
    MATRICES,
    OF_COMPLEX,
    PLACES,
    TENSORS,
    Add,
    Affine,
    App,
    Call,
    Compared,
    Delta,
    Div,
    Expr,
    Joined,
    Lam,
    Literal,
    Looked,
    Mul,
    Neg,
    Norm,
    Reduced,
    Ref,
    Sum,
    Var,
    Where,
    copied,
)
from .walks import free

WEIGHTS = {"reduction_of_any": 0.6, "norm": 0.1}
NAMES = ("sum", "sum", "prod", "mean", "maximum", "minimum", "logsumexp", "softmax", "ties", "cumsum")
OF_WEIGHTS = ("logsumexp", "softmax")
FEW = 12  # values of a product, which grows as a power


class Reductions(Conditions):
    """Draws reductions."""

    def newer(self, name: str, sight: Sight, budget: int) -> Expr | None:
        """A term of one of the newer constructs."""
        if name in SINGLE or name in ("max", "min", "clip", "atan2", "polygamma"):
            e = self.of_name(name, sight, budget)
            return e and Mul((e, self.leaf(sight)))
        match name:
            case "guarded":
                return self.reduction("sum", sight, budget)
            case "where" | "protected" | "shifted" | "sized" | "norm":
                found: Expr | None = getattr(self, f"_{name}")(sight, budget, ())
                return found
            case "reals":
                return self._where(sight, budget, (), name)
            case "indices" | "and" | "or":
                return self._over_one(sight, lambda i, s: self._where(s, budget, (i,), name))
            case "stable":
                return self._stable(sight, budget)
            case "weighted":
                return self.reduction(self.draw.one(OF_WEIGHTS), sight, budget, weighted=True)
            case "gathered":
                return self._gathered(sight, budget)
            case "argmax":
                return self._at_extremum(sight)
            case "matrix":
                return self._of_matrix(sight, budget)
            case "cross":
                e = self.cross(sight, budget)
                return e and self.entry_of(e, sight)
        return self.reduction(name, sight, budget)

    # --- reductions -------------------------------------------------------------------------------------------------

    def _reduction_of_any(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        return self.reduction(self.draw.one(NAMES), sight, budget, needed)

    def reduction(
        self, name: str, sight: Sight, budget: int, needed: tuple[Var, ...] = (), weighted: bool = False
    ) -> Expr | None:
        """A number made of the reduction of that name."""
        e = self.reduced(name, sight, budget, needed, weighted)
        return None if e is None else self.entry_of(e, sight)

    def reduced(
        self, name: str, sight: Sight, budget: int, needed: tuple[Var, ...] = (), weighted: bool = False
    ) -> Reduced | None:
        """The reduction of that name over new indices: a number, or a tensor."""
        if sight.depth > 4:
            return None
        indices: list[Var] = []
        inner = sight
        for _ in range(1 if name == "cumsum" else self.draw.one((1, 1, 1, 2))):
            i = self._new_index(inner)
            if i is not None and (name != "cumsum" or _has_order(i)):
                indices.append(i)
                inner = inner.within([i])
        if not indices or (name == "prod" and inner.loop > FEW * sight.loop):
            return None
        over = tuple(indices)
        condition = None
        if weighted or (name in OF_WEIGHTS and self.draw.odds(0.2)):
            condition = self.weight(inner, max(2, budget // 3), over)
            budget -= budget // 3
        elif name == "sum" or self.draw.odds(0.6):
            condition = self.condition(inner, max(2, budget // 3), over)
            budget -= budget // 3
        draw = self.number if name in OF_COMPLEX else self.real
        body = draw(inner, max(1, budget - 2), (*over, *needed))
        parts = (body,) if condition is None else (body, condition)
        return Reduced(name, over, body, condition) if told(over, parts) else None

    def weight(self, sight: Sight, budget: int, over: tuple[Var, ...]) -> Expr:
        """A number that is not negative: some weights are 0."""
        w = self.positive(sight, budget, over)
        if self.draw.odds(0.3):
            return Where(self.relation(sight, 2, over=over), w)
        return w

    def map_of_reduction(self, sight: Sight, budget: int) -> Expr | None:
        """A tensor: softmax, shares in a maximum, a running sum, an inverse."""
        name = self.draw.one(TENSORS)
        if name == "cross":
            return self.cross(sight, budget)
        return self.matrix(name, sight, budget) if name in MATRICES else self.reduced(name, sight, budget)

    def entry_of(self, e: Expr, sight: Sight) -> Expr:
        """A number made of a number or of a tensor."""
        if not isinstance(e.kind, Tensor):
            return e
        indices = []
        for r in e.kind.slots:
            known = sight.over(r)
            indices.append(self.draw.one(known) if known and self.draw.odds(0.8) else Var(Index(r)))
        new = tuple(i for i in indices if i not in sight.indices)
        entry: Expr = App(e, tuple(bare(i) for i in indices))
        if new and sight.within(new).loop <= LARGEST_LOOP and self.draw.odds(0.6):
            entry = Mul((entry, self.leaf(sight.within(new), new)))
        return Sum(new, entry) if new else entry

    def _norm(self, sight: Sight, budget: int, needed: tuple[Var, ...]) -> Expr | None:
        """The norm of a tensor, or of a map of an index."""
        if sight.tensors and self.draw.odds(0.4):
            return Norm(Ref(self.draw.one(sight.tensors)))
        i = self._new_index(sight)
        if i is None:
            return None
        body = self.number(sight.within([i]), budget - 3, (i, *needed))
        return Norm(Lam((i,), body)) if told((i,), (body,)) else None

    def _of_matrix(self, sight: Sight, budget: int) -> Expr | None:
        """A number made of a function of a matrix."""
        e = self.matrix(self.draw.one(("det", "logdet", "logabsdet", "inv", "inv", "adjugate")), sight, budget)
        return None if e is None else self.entry_of(e, sight)

    def cross(self, sight: Sight, budget: int) -> Reduced | None:
        """The product of two vectors, along a range of three values whose size is no name."""
        ranges = [r for r in sight.ranges() if r.count == 3 and not (r.declared or r.named or r.base)]
        if not ranges or sight.depth > 4 or sight.loop * 3 > LARGEST_LOOP:
            return None
        i = Var(Index(self.draw.one(ranges)))
        inner = sight.within([i])
        first, second = (self.number(inner, max(1, budget // 2 - 1), (i,)) for _ in range(2))
        return Reduced("cross", (i,), second, first) if told((i,), (first, second)) else None

    def matrix(self, name: str, sight: Sight, budget: int) -> Reduced | None:
        """A function of a matrix, which is regular if it has to be."""
        i = self._new_index(sight)
        if i is None or not _has_order(i):
            return None
        j = Var(i.kind)
        inner = sight.within([i, j])
        if inner.loop > LARGEST_LOOP:
            return None
        body = (self.number if name in OF_COMPLEX else self.real)(inner, max(2, budget - 3), (i, j))
        if name not in ("det", "adjugate") or self.draw.odds(0.6):
            body = Add((body, Delta(bare(i), bare(j), Literal(Fraction(self.draw.one((2, 3, 5)))))))
        return Reduced(name, (i, j), body) if told((i, j), (body,)) else None

    # --- naive texts that are computed in a stable form ---------------------------------------------------------------

    def _stable(self, sight: Sight, budget: int) -> Expr | None:
        """What people write for softplus, logistic functions, logarithms of sums of exponentials, shares, tanh."""
        one = Literal(Fraction(1))
        way = self.draw.one(("softplus", "logistic", "complement", "tanh", "sum", "sum", "mean", "shares", "shares"))
        if way in ("softplus", "logistic", "complement", "tanh"):
            t = Mul((Literal(Fraction(self.draw.one((1, 1, 2, 5)))), self.real(sight, max(2, budget - 4))))
            e, below = Call("exp", t), Call("exp", Neg(copied(t)))
            match way:
                case "softplus":
                    return Call("log", Add((one, e)))
                case "tanh":
                    return Div(Call("sinh", t), Call("cosh", copied(t)))
                case "complement":
                    return Call(self.draw.one(("log", "abs2")), Add((one, Neg(Div(one, Add((one, below)))))))
            return Div(e, Add((one, copied(e)))) if self.draw.odds(0.5) else Div(one, Add((one, below)))
        i = self._new_index(sight)
        if i is None:
            return None
        inner = sight.within([i])
        e = Call("exp", Mul((Literal(Fraction(self.draw.one((1, 1, 5, 40)))), self.real(inner, budget, (i,)))))
        weight = self.draw.one((self.positive, self.real))(inner, 2, (i,)) if self.draw.odds(0.5) else None
        total = self.summed((i,), e if weight is None else Mul((weight, e)))
        if total is None or way == "sum":
            return total and Call("log", total)
        if way == "mean":
            return Call("log", Mul((Literal(Fraction(1, 3)), total)))
        shares = self.summed((i,), Mul((self.real(inner, 3, (i,)), copied(e))))
        return shares and Div(copied(shares), total)

    # --- the index of an extremum -----------------------------------------------------------------------------------

    def placed(self, slot: Range, sight: Sight) -> Affine | None:
        i = Var(Index(slot))
        inner = sight.within([i])
        if sight.depth > 3 or not _has_order(i) or inner.loop > LARGEST_LOOP:
            return None
        condition = self.condition(inner, 2, (i,)) if self.draw.odds(0.4) else None
        body = self.real(inner, 2, (i,))
        parts = (body,) if condition is None else (body, condition)
        first = Reduced(self.draw.one(PLACES), (i,), body, condition)
        return Affine((), 0, first) if told((i,), parts) else None

    def _at_extremum(self, sight: Sight) -> Expr | None:
        """An index of an extremum as a number, in a slot, or compared with an index."""
        ranges = [r for r in sight.ranges() if r.directions == 1 and r.sort != "list"]
        first = self.placed(self.draw.one(ranges), sight) if ranges else None
        if first is None or self.draw.odds(0.3):
            return first
        assert isinstance(first.first, Reduced), "an argmax"
        kind = first.first.indices[0].kind
        assert isinstance(kind, Index), "an index"
        if self.draw.odds(0.5):
            i = Var(Index(kind.range))
            sides = (first, bare(i)) if self.draw.odds(0.7) else (bare(i), first)
            condition = Compared(sides, (self.draw.one(("==", "==", "!=", "<", ">=")),))
            body = Mul((self.leaf(sight.within([i]), (i,)), self.leaf(sight.within([i]))))
            return Reduced("sum", (i,), body, condition) if told((i,), (body, condition)) else None
        fitting = [t for t in sight.tensors if isinstance(t.kind, Tensor) and kind.range in t.kind.slots]
        t = self.draw.one(fitting)
        assert isinstance(t.kind, Tensor), "a tensor"
        at = t.kind.slots.index(kind.range)
        new = [Var(Index(r)) for n, r in enumerate(t.kind.slots) if n != at]
        args = [bare(i) for i in new]
        args.insert(at, first)
        return self.summed(tuple(new), App(Ref(t), tuple(args))) if new else App(Ref(t), tuple(args))

    # --- conditions on entries of arrays of integers ----------------------------------------------------------------

    def _gathered(self, sight: Sight, budget: int) -> Expr | None:
        """A value where J(e) is an index, or stands in some relation to one."""
        if not sight.integers:
            return None
        array = self.draw.one(sight.integers)
        if self.draw.odds(0.4) and (found := self._of_a_group(array, sight, budget)) is not None:
            return found
        if self.draw.odds(0.4) and (found := self._beside_an_entry(array, sight)) is not None:
            return found
        kind = array.kind
        assert isinstance(kind, Integers), "an array of integers"
        new = [Var(Index(r)) for r in (*kind.slots, kind.entry)]
        inner = sight.within(new)
        entry = self.looked(kind.entry, replace(inner, integers=(array,)))
        if entry is None or inner.loop > LARGEST_LOOP:
            return None
        sign = self.draw.one(("==", "==", "==", "!=", "<", ">="))
        sides = (bare(entry), bare(new[-1]))
        body = self.number(inner, budget - 3, tuple(new))
        condition = Compared(sides if self.draw.odds(0.7) else sides[::-1], (sign,))
        if sign == "==" and self.draw.odds(0.1):
            return self.summed(tuple(new), Delta(*sides, body))
        if self.draw.odds(0.5):
            return self.summed(tuple(new), Where(condition, body, self.leaf(inner) if self.draw.odds(0.3) else None))
        return Reduced("sum", tuple(new), body, condition) if told(new, (body, condition)) else None

    def _of_a_group(self, array: Var, sight: Sight, budget: int) -> Expr | None:
        """Σ of a reduction over the entries f that are in the group of e, J(f) = J(e), or in a group g."""
        kind = array.kind
        assert isinstance(kind, Integers), "an array of integers"
        over = tuple(Var(Index(r)) for r in kind.slots)
        one_group = self.draw.odds(0.4)
        around = tuple(Var(Index(r)) for r in ((kind.entry,) if one_group else kind.slots))
        if sight.depth > 2 or sight.within((*around, *over)).loop > LARGEST_LOOP:
            return None
        own, other = (
            Looked(Index(kind.entry), array=array, args=tuple(map(bare, v)))
            for v in (over, () if one_group else around)
        )
        sides = (bare(own), bare(around[0] if one_group else other))
        condition: Expr = Compared(sides if self.draw.odds(0.7) else sides[::-1], ("==",))
        outer, inner = sight.within(around), sight.within((*around, *over))
        if self.draw.odds(0.2):
            condition = Joined("and", (condition, self.relation(inner, 2, over=over)))
        name = self.draw.one(("logsumexp", "softmax", "maximum", "minimum", "ties", "mean", "sum"))
        draw = self.number if name in OF_COMPLEX else self.real
        body = draw(inner, max(1, budget // 2), over)
        if not told(over, (body, condition)):
            return None
        return self.summed(around, Mul((self.entry_of(Reduced(name, over, body, condition), outer), self.leaf(outer))))

    def _beside_an_entry(self, array: Var, sight: Sight) -> Expr | None:
        """x(J(e) + 1) under a condition that keeps it in range."""
        kind = array.kind
        assert isinstance(kind, Integers), "an array of integers"
        pairs = [(t, n) for t in sight.tensors for n, r in enumerate(slots_of(t)) if r is kind.entry and is_counted(r)]
        if not pairs:
            return None
        t, at = self.draw.one(pairs)
        new = tuple(Var(Index(r)) for r in (*kind.slots, *(r for n, r in enumerate(slots_of(t)) if n != at)))
        inner = sight.within(new)
        entry = self.looked(kind.entry, replace(inner, integers=(array,)))
        found = self.kept_entry(t, at, inner, entry) if entry is not None and inner.loop <= LARGEST_LOOP else None
        return None if found is None else self.under(new, *found, inner)

    def _over_one(self, sight: Sight, make: Callable[[Var, Sight], Expr | None]) -> Expr | None:
        """A sum over a new index of what is made with it."""
        i = self._new_index(sight)
        if i is None:
            return None
        body = make(i, sight.within([i]))
        if body is None:
            return None
        if i not in free(body):
            body = Mul((body, self.leaf(sight.within([i]), (i,))))
        return self.summed((i,), body)


def _has_order(i: Var) -> bool:
    assert isinstance(i.kind, Index), "an index"
    r: Range = i.kind.range
    return r.directions == 1 and r.sort != "list"
