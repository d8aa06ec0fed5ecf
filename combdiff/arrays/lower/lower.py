"""Lowers terms to plans: Σ of products becomes pairwise contractions, all else becomes entry-by-entry operations.

The result of a derivation, `J -> C -> let …; (p, i) -> body`, becomes a `Plan`: its parameters are the arguments, its
bindings and bodies are arrays over their free indices, and equal arrays are computed once across all outputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from combdiff.arrays import ops
from combdiff.arrays.lower.argument_names import ArgumentNames
from combdiff.arrays.lower.arguments import Parameters, derivative
from combdiff.arrays.lower.arrays import Arrays, Labels, Value, domain_of
from combdiff.arrays.lower.components import by_components
from combdiff.arrays.lower.conditions import (
    Condition,
    Meeting,
    closed_form,
    common,
    compared_in,
    conditions_beside,
    conditions_of,
    distributed,
    inlined,
    meeting,
    mentions_delta,
    repeated_sums,
    solution,
    solution_at_entries,
    solution_within,
    terms_apart,
    unsaid,
    with_windows_apart,
)
from combdiff.arrays.lower.cumulative import cumulative, shares_apart
from combdiff.arrays.lower.factoring import declared, factored
from combdiff.arrays.lower.guarding import Guarding, comparisons
from combdiff.arrays.lower.indexing import affine, entry, scatter
from combdiff.arrays.lower.inner.looping import Looping, with_definitions_once
from combdiff.arrays.lower.inner.running import tied
from combdiff.arrays.lower.inner.solving import Solving, with_equations
from combdiff.arrays.lower.inner.sums_first import SumsFirst
from combdiff.arrays.lower.inverses import solved
from combdiff.arrays.lower.reducing import entry_of_ties, over_ties, place_of, reduced
from combdiff.arrays.lower.respelling.gammas import with_gammas_together
from combdiff.arrays.lower.respelling.groups import with_groups_apart
from combdiff.arrays.lower.respelling.respelled import respelled
from combdiff.arrays.lower.signature import (
    Result,
    check_supported,
    guessed_sizes,
    leaves_of,
    looped,
    result_of,
    slots,
)
from combdiff.arrays.numbers import check_power, has_positive_zeros, is_whole
from combdiff.arrays.passes.contractions.paths import WIDEST, Contractions, Network
from combdiff.arrays.passes.contractions.sharing import Shared
from combdiff.arrays.passes.entries import written_at
from combdiff.arrays.passes.other_orders import in_one_order
from combdiff.arrays.passes.outer_products import stacked
from combdiff.arrays.passes.roots import with_inverses_once, with_roots_shared
from combdiff.arrays.passes.scaling import scaled_early
from combdiff.arrays.passes.translations import translated
from combdiff.arrays.plan import Plan, Step, interned
from combdiff.arrays.ranges.cutting import cut
from combdiff.arrays.ranges.intervals import sizes_of_parts
from combdiff.calculus.demands import demanded
from combdiff.errors import UnsupportedError
from combdiff.terms.conditions.comparing import Relation
from combdiff.terms.conditions.guards import Condition as Guarded
from combdiff.terms.conditions.guards import Finite, Guard, both, reads_beyond, under, unguarded
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.laws.computed import computed_as, with_exponentials_together
from combdiff.terms.laws.rates import with_weights_seen
from combdiff.terms.laws.slopes import UNKNOWN
from combdiff.terms.terms import (
    ONE,
    ZERO,
    Add,
    App,
    Call,
    Conj,
    Const,
    Delta,
    Diff,
    Indicator,
    Lam,
    Let,
    Loop,
    Mul,
    Pow,
    Proj,
    Reduce,
    Sum,
    Term,
    Var,
    apply,
    body_of,
    conj,
    delta,
    fresh,
    holds,
    indicator,
    mul,
    refreshed,
    split_coefficient,
    substitute,
    total,
)
from combdiff.terms.types import Domain, Index, Map, Number, is_complex

__all__ = ["guessed_sizes", "lower"]


def lower(
    term: Term,
    sizes: Mapping[Domain, int] | None = None,
    unknowns: set[str] | None = None,
    names: ArgumentNames | None = None,
) -> Plan:
    """The plan of a derivation's result; `sizes` decide the order of contractions (guessed where they are missing).

    >>> from combdiff.terms.terms import fresh, mul, total
    >>> from combdiff.terms.types import COMPLEX, Map
    >>> i, j = (fresh(name, Index(Domain("A.1"))) for name in "ij")
    >>> A = fresh("A", Map((i.kind, j.kind), COMPLEX))
    >>> x = fresh("x", Map((j.kind,), COMPLEX))
    >>> body = Lam((i,), total((j,), mul(App(A, (i, j)), App(x, (j,)))))
    >>> plan = lower(Lam((A,), Lam((x,), body)))
    >>> [plan.kind(step) for step in plan.steps if step.operands]
    ['GEMV']

    `unknowns`: names in use by other equations; `names`: what the program around an equation calls its arguments.
    Raises `UnsupportedError` for an integral, which no array holds.
    """
    check_supported(term)
    term = with_groups_apart(with_weights_seen(respelled(term)))
    unknowns = set() if unknowns is None else unknowns
    of_equation = names is not None
    names = names or ArgumentNames(term)
    lowering = _Lowering(term, sizes or {}, set(unknowns), names, of_equation)
    plan = lowering.plan()
    shared = lowering.contractions.to_share()
    if shared:
        lowering = _Lowering(term, sizes or {}, set(unknowns), names, of_equation, shared)
        plan = lowering.plan()
    unknowns |= lowering.unknowns
    return plan


class _Lowering(Looping, Guarding, SumsFirst):
    def __init__(
        self,
        program: Term,
        sizes: Mapping[Domain, int],
        unknowns: set[str],
        names: ArgumentNames,
        of_equation: bool = False,
        shared: Shared | None = None,
    ) -> None:
        parts = by_components(program)
        term = with_exponentials_together(with_gammas_together(parts.term))
        self.result: Result = with_definitions_once(with_equations(result_of(term)))
        self.sizes = guessed_sizes(term) | dict(sizes)
        Solving.__init__(self, lambda f, taken: lower(f, self.sizes, taken, names), unknowns, names)
        Guarding.__init__(self)
        self.arrays = Arrays()
        self.arrays.placed = partial(place_of, self)
        self.names = self.arrays.names
        self.contractions = Contractions(self.arrays, self.sizes, shared)
        self.parameters = Parameters(self.arrays, parts, names, of_equation)
        self.known = self.parameters.known
        self.functions: dict[Var, Term] = {}
        self.memo: dict[tuple[Term, Guard], Value] = {}
        self.derivatives = names.derivatives_in(term)
        self.repeated = repeated_sums(term)
        self.has_delta = holds(term, Delta)
        SumsFirst.__init__(self, term)

    def plan(self) -> Plan:
        arguments = [self.parameters.take(v) for v in self.result.params]
        arguments += [derivative(*item, self.argument_names) for item in self.derivatives.items()]
        self.defined = self.result.bindings
        guards = demanded(self.result.bindings, self.result.outputs)
        for var, value in self.result.bindings:
            if not self.finite(value):
                self.partial.add(var)
            if isinstance(value, Loop):
                self.known[var] = self.looped(value)
                self.names.setdefault(self.known[var], var.name)
            elif isinstance(value, Lam) and not all(isinstance(p.kind, Index) for p in value.params):
                self.functions[var] = value
            else:
                # what exists and is finite anyhow is one array, whatever conditions it is read under
                everywhere = self.finite(value) and not reads_beyond(body_of(value))
                self.guards = () if everywhere else guards.get(var, ())
                self.known[var] = self.array(value)
                if not self.guards and (least := self.finite.least(body_of(value))) >= 0:
                    self.bounds[var] = least
                if self.known[var].operands:
                    self.names.setdefault(self.known[var], var.name)
        self.guards = ()
        outputs = tuple(self._of_numbers(t) for t in self.result.outputs)
        outputs, self.names = scaled_early(outputs, self.names, self.sizes)
        outputs, self.names = cut(outputs, self.names, self.sizes)
        outputs, self.names = translated(outputs, self.names, self.sizes)
        outputs, self.names = stacked(outputs, self.names, self.sizes)
        outputs, self.names = written_at(outputs, self.names, self.sizes)
        outputs, self.names = declared(outputs, self.names)
        outputs, self.names = solved(outputs, self.names, self.sizes)
        outputs, self.names = factored(outputs, self.names, self.sizes)
        outputs, self.names = in_one_order(*interned(outputs, self.names), self.sizes)
        outputs, self.names = with_inverses_once(*interned(outputs, self.names))
        outputs, self.names = with_roots_shared(*interned(outputs, self.names))
        taken = self.parameters.used(self.taken(arguments, outputs), outputs)
        sizes = self.sizes | sizes_of_parts(outputs, self.sizes)
        return Plan((*taken, *self.optional_starts()), outputs, self.result.tupled, sizes, self.names)

    def _of_numbers(self, t: Term) -> Step:
        """An output; an array of real numbers is one of floating point, though all of them are 0 and 1."""
        step = self.array(t)
        counts = isinstance(t.type, Map) and isinstance(t.type.result, Index)
        if not step.rank or counts or not is_whole(step):
            return step
        return self.arrays.builder.step(ops.AsFloat(), (step,), step.domains)

    # --- arrays ---------------------------------------------------------------------------------------------------

    def array(self, t: Term) -> Step:
        """A tensor (or a number) whose axes are its slots."""
        match t:
            case Lam():
                params: Labels = ()
                while isinstance(t, Lam):
                    params, t = (*params, *t.params), t.body
                value = self.scalar(t, params)
                if not set(value.labels) <= set(params):
                    raise looped(value.labels, params)
                return self.arrays.arranged(value, params)
            case Var() if t in self.known:
                return self.known[t]
            case App() | Proj():
                value = self._call(t)
            case Diff("root", _):
                return self.root(t)
            case Let():
                return self.array(inlined(t))
            case _ if isinstance(t.type, Number | Index):
                value = self.scalar(t)
            case _:
                raise UnsupportedError(
                    f"a {type(t).__name__} cannot be held in an array",
                    remedy="return numbers and tensors, several of them as separate results",
                )
        if value.labels:
            raise looped(value.labels, ())
        return value.step

    def scalar(self, t: Term, wanted: Sequence[Var] = ()) -> Value:
        """A number that depends on indices, as an array over these."""
        key = t, () if self.finite(t) else self.guards
        value = self.memo.get(key)
        if value is None:
            value = self.memo[key] = self._scalar(t, wanted)
        return value

    def _scalar(self, t: Term, wanted: Sequence[Var]) -> Value:
        match t:
            case Const():
                return self.arrays.number(t)
            case Var() if isinstance(t.kind, Index):
                return self.arrays.integers(t, ops.Numbers)
            case Var():
                return Value(self.known[t], ())
            case Diff("root", _):
                return Value(self.root(t), ())
            case App() | Proj():
                return self._number_of(t)
            case Add() if choice := comparisons(t):
                return self.chosen(choice, wanted)
            case Add(terms):
                pairs = [split_coefficient(u) for u in terms]
                return self.arrays.total([(c, self.scalar(u, wanted)) for c, u in pairs], wanted)
            case Mul() | Sum():
                return self._product(t, wanted)
            case Conj(u):
                return self.arrays.conj(self.scalar(u, wanted))
            case Call(name, ()):
                return self.arrays.named(name)
            case Pow() | Call():
                return self._function(t, wanted)
            case Reduce():
                return reduced(self, t, wanted)
            case Delta() | Indicator():
                return self.guarded(t, wanted)
            case Let():
                return self.scalar(inlined(t), wanted)
        raise UnsupportedError(
            f"a {type(t).__name__} is no number", remedy="write what is computed as a number or a tensor of numbers"
        )

    def _function(self, t: Pow | Call, wanted: Sequence[Var]) -> Value:
        """A power, or a function of the language, entry by entry."""
        if t == UNKNOWN:
            return self.arrays.named("nan")
        if (other := computed_as(t)) is not None:
            return self.scalar(other, wanted)
        if isinstance(t, Call):
            values = self.operands(t, t.args, wanted)
            if SCALAR_FUNCTIONS[t.primitive].has_cut:
                # the angle of a real number is 0 or π, and that of −0 would be π
                values = [self._off_cut(v, real=SCALAR_FUNCTIONS[t.primitive].is_angle) for v in values]
            return self.arrays.elementwise(ops.Call(t.primitive), values, wanted, is_complex(t.type))
        if isinstance(t.base, Const) and isinstance(t.exponent, Const):
            check_power(t.base, t.exponent)
        base, exponent = self.operands(t, (t.base, t.exponent), wanted)
        base = base if isinstance(t.exponent, Const) and t.exponent.is_integer else self._off_cut(base)
        return self.arrays.elementwise(ops.Power(), [base, exponent], wanted, is_complex(t.type))

    def _off_cut(self, value: Value, real: bool = False) -> Value:
        """The value without the negative zeros that arithmetic makes: on a cut a function has its value from above."""
        if not (value.step.complex or real) or has_positive_zeros(value.step):
            return value
        return self.arrays.elementwise(ops.Add((ONE, ONE)), [value, self.arrays.number(ZERO)], value.labels)

    # --- entries and calls ----------------------------------------------------------------------------------------

    def _number_of(self, t: App | Proj) -> Value:
        """An entry that is read as a number, in floating point."""
        value = self._call(t)
        if not isinstance(t.type, Index) or t.type.domain is None:
            return value
        return Value(self.arrays.builder.step(ops.AsFloat(), (value.step,), value.step.domains), value.labels)

    def _call(self, t: Term) -> Value:
        """An entry of a tensor, a value of an unknown function, an item of such a value."""
        match t:
            case Proj(item, of):
                value = self._call(of)
                domains = (*map(domain_of, value.labels), *slots(t.type))
                step = self.arrays.builder.step(ops.Item(item), (value.step,), domains, is_complex(t.type))
                return Value(step, value.labels)
            case App(Diff("inverse", Lam()), _):
                return self.solve(t)
            case App(Reduce() as places, ()):
                return place_of(self, places)
            case App(Reduce() as shares, args):
                return entry_of_ties(self, shares, args)
            case App(Var() as f, args) if f in self.functions:
                body = apply(self.functions[f], *args)
                return self.scalar(body) if isinstance(t.type, Number) else Value(self.array(body), ())
            case App(f, args) if f in self.known or (isinstance(f.type, Map) and f.type.is_tensor):
                return entry(self.arrays, self.array(f), [affine(a) for a in args])
            case App(f, args):
                return self._unknown(t, self.argument_names.of(f), args)
        raise UnsupportedError(
            f"a {type(t).__name__} is no entry of a tensor", remedy="apply tensors and functions of numbers only"
        )

    def _unknown(self, t: App, name: str, args: Sequence[Term]) -> Value:
        """A function of the user: element by element for numbers, on whole arrays for tensors; tuples item by item."""
        args = [item for a in args for item in leaves_of(a)]
        numbers = all(isinstance(a.type, Number | Index) for a in args)
        if numbers and not slots(t.type):
            values = self.operands(t, args)
            return self.arrays.elementwise(ops.Unknown(name), values, complex=is_complex(t.type))
        loose = sorted({v for a in args for v in a.free if isinstance(v.kind, Index)}, key=lambda v: v.uid)
        if loose:
            raise looped(loose, (), _user_name(t.function))
        operands = tuple(self.array(a) for a in args)
        op = ops.Unknown(name, arrays=True)
        step = self.arrays.builder.step(op, operands, slots(t.type), is_complex(t.type))
        return Value(step, ())

    # --- products and sums ----------------------------------------------------------------------------------------

    def _product(self, t: Mul | Sum, wanted: Sequence[Var]) -> Value:
        summed, body = (t.indices, t.body) if isinstance(t, Sum) else ((), t)
        spread = None if _is_chosen_by(body, summed) else distributed(summed, body)
        if spread is not None:
            return self.scalar(spread, wanted)
        apart = with_windows_apart(summed, body, self.finite)
        if apart is not None:
            return self._contracted(summed, apart, (), wanted)
        shares = tied(summed, body, self.sizes)
        if shares is not None:
            return over_ties(self, shares, wanted)
        if cumulative(summed, body, self.sizes, self.finite) is None:
            within = shares_apart(summed, body, self.sizes, self.finite) or self.summed_within(summed, body)
            within = within or self.before_reading(summed, body)
            if within is not None:
                return self.scalar(within, wanted)
        if self.has_delta:
            conditions, rest = conditions_of(body)
            if conditions:
                return self.constrained(list(summed), conditions, rest, wanted)
        return self._contracted(summed, body, (), wanted)

    def _contracted(self, summed: Sequence[Var], body: Term, stay: Sequence[Var], wanted: Sequence[Var]) -> Value:
        """Σ over `summed` of a product, indices in `stay` excepted."""
        remaining = [v for v in summed if v not in stay]
        body = with_windows_apart(remaining, body, self.finite) or body
        up_to = cumulative(remaining, body, self.sizes, self.finite)
        if up_to is not None:
            return self.cumulated(up_to, wanted)
        shares = tied(remaining, body, self.sizes)
        if shares is not None:
            return over_ties(self, shares, wanted)
        network = Network(remaining, wanted)
        self._collect(body, False, network)
        self.place_masks(network)
        operands = [v for v in network.operands if v.labels]
        factors = [v for v in network.operands if not v.labels]
        present = {x for v in operands for x in v.labels}
        kept = present.difference(network.summed)
        factors += [self.arrays.size(domain_of(v)) for v in network.summed if v not in present]
        if not network.summed or not operands:
            return self.arrays.product(network.coefficient, [*factors, *operands], wanted)
        summary = self.contractions.total(operands, kept, wanted)
        value = self.arrays.product(network.coefficient, [*factors, summary], wanted)
        if value.step.complex and not is_complex(body.type):
            value = self.arrays.elementwise(ops.Call("real"), [value], wanted, complex=False)
        return value

    def _collect(self, t: Term, conjugated: bool, network: Network) -> None:
        match t:
            case Const():
                network.scale(conj(t) if conjugated else t)
            case Mul(factors):
                for f in factors:
                    self._collect(f, conjugated, network)
            case Conj(u):
                self._collect(u, not conjugated, network)
            case Sum() if self._merges(t, network):
                inner = refreshed(t)
                assert isinstance(inner, Sum), "renaming keeps the node"
                network.summed += inner.indices
                self._collect(inner.body, conjugated, network)
            case Pow(base, Const() as n) if self._repeats(base, n, network):
                network.operands += [self._factor(base, conjugated, ())] * int(n.real)
            case Call("abs2", (base,)) if is_complex(base.type) and not base.free.isdisjoint(network.summed):
                network.operands += [self._factor(base, True, ()), self._factor(base, False, ())]
            case Delta() | Indicator() if network.summed and self.finite(t.body):
                network.masks.append(t)
                self._collect(t.body, conjugated, network)
            case Indicator(left, right, Mul(factors)) if network.summed and any(map(self.finite, factors)):
                # Σ_s [s ≤ t] X(s, a) e(t, s) is a product of matrices: only what may be infinite stays under the guard
                for f in filter(self.finite, factors):
                    self._collect(f, conjugated, network)
                guarded = indicator(left, right, mul(*(f for f in factors if not self.finite(f))))
                network.operands.append(self._factor(guarded, conjugated, network.order(guarded.free)))
            case _:
                network.operands.append(self._factor(t, conjugated, network.order(t.free)))

    def _factor(self, t: Term, conjugated: bool, wanted: Sequence[Var]) -> Value:
        value = self.scalar(t, wanted)
        return self.arrays.conj(value) if conjugated else value

    def _merges(self, t: Sum, network: Network) -> bool:
        """An inner sum joins the outer contraction, unless it is shared or stands alone."""
        if t.free.isdisjoint(network.summed) or distributed(t.indices, t.body) is not None:
            return False
        if (self.has_delta and mentions_delta(t)) or cumulative(t.indices, t.body, self.sizes, self.finite) is not None:
            return False
        if tied(t.indices, t.body, self.sizes) is not None:
            return False
        return len(network.operands) < WIDEST and closed_form(t) not in self.repeated

    def _repeats(self, base: Term, n: Const, network: Network) -> bool:
        return n.is_integer and 2 <= n.real <= 3 and not base.free.isdisjoint(network.summed)

    # --- conditions -----------------------------------------------------------------------------------------------

    def constrained(self, summed: list[Var], conditions: list[Condition], rest: Term, wanted: Sequence[Var]) -> Value:
        """Σ of δ(l, r, …): a δ is solved for a summed index, or for one that the result is then scattered along."""
        solved: list[tuple[Var, Term]] = []
        masks: list[Condition] = []
        guards = self.guards
        while conditions:
            left, right = conditions.pop()
            inside = under(guards, rest)
            compared = compared_in(inside, [*conditions, *masks])
            found = self._solved((left, right), summed, inside, compared, wanted)
            if found is None:
                masks.append((left, right))
                continue
            by, within = found
            said = {v for pair in [(left, right), *conditions, *masks, *solved] for side in pair for v in side.free}
            rest, done = self.before_solving(by, [v for v in summed if v not in said], rest)
            summed = [v for v in summed if v not in done]
            rest = under(unsaid(within, rest), rest)
            rest = substitute(rest, by)
            guards = tuple(c.at(by) for c in guards)
            conditions = [(substitute(a, by), substitute(b, by)) for a, b in conditions]
            masks = [(substitute(a, by), substitute(b, by)) for a, b in masks]
            free = [item for item in by.items() if item[0] not in summed]
            summed = [v for v in summed if v not in by]
            solved = [(v, substitute(f, by)) for v, f in solved] + free
        # values that have names are there, whatever stands around
        is_anywhere = not guards or Finite()(rest)
        if is_anywhere and (parts := terms_apart(masks, summed, rest)) is not None:
            every = [*masks, *solved]
            return self.arrays.total([(ONE, self.constrained([*summed], [*every], u, wanted)) for u in parts], wanted)
        forms = [(v, affine(f)) for v, f in solved]
        stay = tuple(dict.fromkeys(u for _, form in forms for u in form.variables))
        summed, rest = self._masked(masks, summed, rest, stay if is_anywhere else None)
        if any(isinstance(atom, App) for _, form in forms for atom, _ in form.coefficients):
            # rows of the values are added to rows of the result
            wanted = (*stay, *(v for v in wanted if v not in stay))
        with self.under(guards):
            value = self._masked_sum(summed, rest, stay, wanted)
        with self.under(both(guards, _held_at(stay, rest))):
            return scatter(self.arrays, value, forms, [v for v in stay if v not in summed]) if forms else value

    def _solved(
        self, condition: Condition, summed: list[Var], inside: Term, compared: set[Var], wanted: Sequence[Var]
    ) -> tuple[dict[Var, Term], Sequence[Guarded]] | None:
        """What indices are by a δ, and where they are in range; None if it is to be a mask.

        An index that two of them are made of is a further one that is summed over.
        """
        found = solution(condition, summed, inside, compared, wanted)
        if found is not None:
            return dict([found]), ()
        within = solution_at_entries(condition, summed, self.sizes)
        if within is None and (shared := common(condition)) is not None:
            summed.append(index := self._shared(shared[1]))
            return dict.fromkeys(shared[0], index), ()
        within = within or solution_within(condition, summed, self.sizes)
        return None if within is None else ({within[0]: within[1]}, within[2])

    def _masked(
        self, masks: Sequence[Condition], summed: list[Var], rest: Term, placed: Collection[Var] | None
    ) -> tuple[list[Var], Term]:
        """What is left to sum over, and of what: under the δ that are solved for nothing, or read where two meet.

        Sums over `placed` indices are none of these; where it is None, conditions around them decide.
        """
        waiting = [*dict.fromkeys(masks)]
        while waiting:
            left, right = waiting.pop(0)
            free = [v for v in summed if placed is not None and v not in placed]
            forms = dict.fromkeys((rest, conditions_beside(rest)))
            tried = (meeting((left, right), free, form, waiting, self.sizes) for form in forms)
            met = next(filter(None, tried), None)
            if met is None:
                rest = delta(left, right, rest)
            else:
                summed = [v for v in summed if v not in met.summed]
                waiting = [*met.others]
                rest = mul(self._read_at(met), met.rest)
        return summed, rest

    def _read_at(self, met: Meeting) -> Term:
        """Σ_e δ(J(e), K(f), w(e)) as an array over the values of J, taken at K(f)."""
        own = [fresh("j", at.type) for at in met.at if isinstance(at.type, Index)]
        assert len(own) == len(met.at), "entries of arrays of integers"
        array = fresh("t", Map((*(v.kind for v in own), *(v.kind for v in met.around)), met.of.type))
        value = met.of
        for at, index in zip(met.at, own, strict=True):
            value = delta(at, index, value)
        self.known[array] = self.array(Lam((*own, *met.around), total(met.summed, value)))
        return App(array, (*met.where, *met.around))

    def _shared(self, domain: Domain) -> Var:
        """An index over the values that are in several ranges."""
        self.sizes[domain] = min(self.sizes[part] for part in domain.common)
        return fresh("i", Index(domain))

    def _masked_sum(self, summed: list[Var], body: Term, stay: Sequence[Var], wanted: Sequence[Var]) -> Value:
        """A sum whose conditions are all left: as masks of the product, or round the whole of it."""
        if isinstance(body, Delta) and not self.finite(body.body):
            value = self.guarded(body, wanted)
            return self._summed(value, [v for v in summed if v not in stay])
        return self._contracted(summed, body, stay, wanted)

    def _summed(self, value: Value, summed: Sequence[Var]) -> Value:
        absent = [self.arrays.size(domain_of(v)) for v in summed if v not in value.labels]
        return self.arrays.product(ONE, [*absent, self.arrays.reduce(value, summed)])


def _held_at(places: Collection[Var], t: Term) -> Guard:
    """The conditions on what stands in certain places, under which numbers stand that decide them, as of an argmax."""
    return tuple(c for c in unguarded(t)[0] if all(v in places for v in c.free if isinstance(v.kind, Index)))


def _is_chosen_by(body: Term, summed: Sequence[Var]) -> bool:
    """Whether numbers with all summed indices choose between terms, so that no term alone is a smaller product."""
    choice = comparisons(split_coefficient(body)[1])
    asked = [part for row in choice.rows for part in row.parts] if choice else []
    sides = [side for part in asked if isinstance(part, Relation) for side in (part.left, part.right)]
    numbers = {v for side in sides if not isinstance(side.type, Index) for v in side.free}
    return bool(sides) and numbers.issuperset(summed)


def _user_name(function: Term) -> str:
    """The function of the user that a map is, or is made of: g of ∇g."""
    return _user_name(function.of) if isinstance(function, Diff) else function.name if isinstance(function, Var) else ""
