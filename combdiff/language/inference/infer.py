"""Elaborates syntax to a typed term: resolves names, types, index ranges and definitions.

One walk goes down with the type that is wanted and comes up with a term whose indices range over provisional domains;
`domains.py` says how those are joined, and a last walk (`resolution.py`) puts the resolved domains in. A definition
that is a value is bound by `Let`; one that is a function is read anew wherever it is called (`calls.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace

from combdiff.errors import BudgetError, CombDiffError, LanguageError, Span, UnsupportedError
from combdiff.language import habits
from combdiff.language.inference import calls, conditions, tensors
from combdiff.language.inference.constructs import listings
from combdiff.language.inference.constructs.hermitian import check_hermitian, without_products
from combdiff.language.inference.constructs.loops import with_last_apart
from combdiff.language.inference.constructs.reductions import check_ranges, refuse_values
from combdiff.language.inference.constructs.sharing import without_calls
from combdiff.language.inference.declarations import Kinds, bounds_of
from combdiff.language.inference.domains import Ranges
from combdiff.language.inference.fit import fit
from combdiff.language.inference.lattice import check_points
from combdiff.language.inference.resolution import resolved
from combdiff.language.inference.scope import Closure, Entry, Function, Ready, Scope, Textual
from combdiff.language.inference.size_names import check_names_of_sizes, is_integer
from combdiff.language.inference.slots import Asked, Slots
from combdiff.language.parsing.building import binds_nothing
from combdiff.language.parsing.syntax import (
    Apply,
    Binders,
    Block,
    Comparison,
    Compose,
    Definition,
    Expr,
    Junction,
    Lambda,
    Listed,
    Module,
    Name,
    Negation,
    Numeral,
    Param,
    Parens,
    Size,
    Summation,
    TypeExpr,
    TypeName,
    has_no_types,
    nodes_of,
)
from combdiff.language.vocabulary import CONSTANTS, FUNCTIONS, LOOPS, RESERVED, did_you_mean, in_words
from combdiff.records import dataclass
from combdiff.terms import terms
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.laws.inclusion import written_where_needed
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import App, Const, Let, Term, Tuple, Var
from combdiff.terms.types import Index, Map, Number, Product, Type, is_function, is_real, maps_in_turn

_DEEPEST = 6_000
_LARGEST = 100_000


def infer(module: Module, *, keep: Collection[str] = ()) -> Term:
    """The typed term of a program; the functions named by `keep` stay unknown.

    >>> from combdiff.language.parsing.parser import parse
    >>> term = infer(parse("(A::Her, x::CV) -> sum((i, j), x(i)' * A(i, j) * x(j))"))
    >>> [p.kind.space for p in term.params], term.params[1].kind.params[0].domain.name
    (['Her', 'CV'], 'A.1')
    """
    try:
        with deep_recursion():
            elaborator = Elaborator(module, frozenset((keep,) if isinstance(keep, str) else keep))
            check_names_of_sizes(module, elaborator.kinds.is_index)
            term = elaborator.expr(module.body, Scope())
            elaborator.slots.check()
            elaborator.kinds.check_sizes()
            term = without_calls(term, {v: f.term for v, f in elaborator.functions.items()})
            term = with_last_apart(resolved(term, elaborator.ranges))
            term = conditions.settled(term, elaborator.relations)
            term = written_where_needed(term)
            if any(d.directions > 1 for d in elaborator.kinds.domains.values()):
                check_points(term, elaborator.places)
            check_ranges(term, elaborator.places)
            check_hermitian(term, elaborator.places)
            return without_products(term)
    except CombDiffError as error:
        error.located(module.source)
        raise


def _leading(e: Expr) -> list[Param]:
    """The parameters of a program."""
    return [*e.params, *_leading(e.body)] if isinstance(e, Lambda) else []


@dataclass(slots=True, eq=False)
class Unfinished:
    """What the definitions of a block have left behind: bindings of its `Let`, functions that may never be called.

    `tensors` are what may be called as functions only, with their bindings and what is asked of their indices.
    """

    bindings: list[tuple[Var, Term]] = field(default_factory=list)
    functions: list[Closure] = field(default_factory=list)
    tensors: list[tuple[Closure, tuple[Var, ...], Asked]] = field(default_factory=list)

    def read_by(self, body: Term) -> set[Var]:
        """The variables that `body` reads, itself or through bindings."""
        found = set(body.free)
        for var, term in reversed(self.bindings):
            found |= term.free if var in found else frozenset()
        return found


class Elaborator:
    """The walk over one program's syntax; `calls.py` holds the part about calling functions."""

    def __init__(self, module: Module, keep: frozenset[str]) -> None:
        self.ranges = Ranges()
        self.kinds = Kinds(module.declarations, self.ranges)
        self.slots = Slots(self.ranges)
        self._counts: dict[tuple[str, bool], Term] = {}
        self.relations = conditions.relations()
        self.keep = keep
        self._body = module.body
        leading = _leading(module.body)
        ends = bounds_of(module.declarations, leading)
        self._ends = [p for p in leading if p.name in ends]
        self._depth = 0
        self.places: dict[Var, Span] = {}
        self.functions: dict[Var, Function] = {}  # what the variables mean that stand for functions of numbers
        self.called: tuple[str, ...] = ()  # what the definition of a loop that is read calls its states
        self.unshared: set[Term] = set()  # maps that stand for several definitions, and are written out
        self.untyped: dict[Term, Closure] = {}  # tensors whose definitions are functions of anything else, too
        self.points: dict[Term, int] = {}  # how many arguments of a pullback, or of an item of one, are no cotangents
        self._inlining = 0
        self._guards = 0
        self._facts: tuple[conditions.Fact, ...] = ()
        self._size = 0
        for name in sorted(keep):
            if name not in self.defined():
                raise LanguageError(
                    f"there is no definition {name} to keep",
                    remedy=did_you_mean(name, self.defined(), "name a function that the program defines"),
                )

    def defined(self) -> set[str]:
        """Every name that some definition of the program binds."""
        return {n.text for d in nodes_of(self._body) if isinstance(d, Definition) for n in d.names}

    # --- expressions ------------------------------------------------------------------------------------------------

    def expr(self, e: Expr | Ready, scope: Scope, wanted: Type | None = None) -> Term:
        """The term of an expression; `wanted` is the type that its place asks for, where that is known."""
        self._depth += 1
        if self._inlining:
            self.spend(1, e.span)
        if self._depth > _DEEPEST:
            raise BudgetError(
                f"the definitions nest more than {_DEEPEST} levels deep",
                span=e.span,
                remedy="bind intermediate values (`a = …`) instead of nesting functions",
            )
        term = self._expr(e, scope, wanted)
        self._depth -= 1
        return term

    def inlined(self, e: Expr, scope: Scope, wanted: Type | None = None) -> Term:
        """The term of an expression that is read once more, for one of many uses of a definition."""
        self._inlining += 1
        term = self.expr(e, scope, wanted)
        self._inlining -= 1
        return term

    def _expr(self, e: Expr | Ready, scope: Scope, wanted: Type | None) -> Term:
        match e:
            case Ready(term):
                return term
            case Name():
                return self._name(e, scope, wanted)
            case Numeral(value):
                return Const(value)
            case Apply(function, args):
                return self.applied(function, args, scope, e.span)
            case Lambda():
                return self.lambda_(e, scope, wanted)
            case Summation():
                return self._summation(e, scope)
            case Listed():
                return listings.array(self, e, scope)
            case Block():
                return self._block(e, scope, wanted)
            case Binders(_, span):
                raise binds_nothing(span)
            case Comparison(dotted=False) | Junction() | Negation():
                raise LanguageError(
                    "a condition is used as a value",
                    span=e.span,
                    remedy="write where(i < j, e), which is e if i < j, else 0",
                )
            case Parens(items):
                return Tuple(tuple([self.expr(item, scope) for item in items]))
            case Compose():
                return calls.compose(self, e, scope)
            case _:
                try:
                    return tensors.arithmetic(self, e, scope)
                except UnsupportedError as problem:  # a number of too many digits
                    problem.span = problem.span or e.span
                    raise

    def applied(self, function: Expr, args: Sequence[Expr | Ready], scope: Scope, span: Span) -> Term:
        """The term of `function(args)`."""
        return calls.call(self, calls.callee(self, function, scope, args), args, scope, span, function)

    @property
    def is_guarded(self) -> bool:
        """Whether what is read counts only under a condition."""
        return bool(self._guards)

    @property
    def is_unguarded(self) -> bool:
        """Whether no condition stands around what is read, on which the meaning of an index depends."""
        return not self._guards and not self._facts

    def guarded(
        self,
        e: Expr | Ready,
        scope: Scope,
        facts: Sequence[conditions.Fact] = (),
        applied: Callable[[int], str] | None = None,
    ) -> Term:
        """The term of a number that counts only under a condition: where that never holds, it may be no number."""
        self._guards += 1
        try:
            with self.holding(facts):
                return self.number(e, scope, applied)
        finally:
            self._guards -= 1

    @contextmanager
    def holding(self, facts: Sequence[conditions.Fact]) -> Iterator[None]:
        """What is read meanwhile counts only where these hold."""
        outer, self._facts = self._facts, (*self._facts, *facts)
        yield
        self._facts = outer

    def number(self, e: Expr | Ready, scope: Scope, applied: Callable[[int], str] | None = None) -> Term:
        """The term of an expression that has to be a number; an index is its integer value.

        `applied` says what to write instead for a tensor of so many slots, which a function of numbers is applied to.
        """
        term = self.expr(e, scope)
        if isinstance(term.type, Number | Index):
            return term
        name = e.text if isinstance(e, Name) else ""
        match term.type:
            case Map(params) as kind if kind.is_tensor:
                entry = f"{name or 'C'}({', '.join('ijklmnop'[: len(params)])})"
                remedy = applied(len(params)) if applied else f"write its entry: {entry}, conjugated {entry}'"
            case Map():
                remedy = f"apply it, {name or 'f'}(x); its derivative is grad({name or 'f'})(x)"
            case _ if not name and isinstance(term, Tuple) and self.kinds.has_lattice:
                remedy = "give each direction of a lattice its own domain, a::(X, Y) -> R, and shift one, a(x + 1, y)"
            case _:
                remedy = "take the tuple apart: `(a, b) = t`"
        subject = name or "this"
        raise LanguageError(f"{subject} is {in_words(term.type)}, not a number", span=e.span, remedy=remedy)

    def _name(self, e: Name, scope: Scope, wanted: Type | None) -> Term:
        if e.text == "im":
            return terms.IMAGINARY
        hidden = scope.find(e.text) is not None
        if e.text == "pi" or (e.text == "π" and not hidden and not self.kinds.names_size("π")):
            return terms.PI
        if e.text in SCALAR_FUNCTIONS and isinstance(wanted, Map) and not hidden:
            params = [terms.fresh("x", kind) for kind in wanted.params]
            args = tuple([Ready(p, e.span) for p in params])
            return terms.Lam(tuple(params), calls.call(self, calls.Builtin(e.text), args, scope, e.span, e))
        hidden = hidden or self.kinds.names_size(e.text)
        if e.text in FUNCTIONS and not hidden:
            raise LanguageError(
                f"{e.text} is a function of the language and has no arguments here",
                span=e.span,
                remedy=f"apply it: {e.text}(…)",
            )
        entry = self.lookup(e, scope)
        match entry:
            case Closure():
                entry.read = True
                return self.lambda_(entry.body, entry.scope, wanted)
            case Textual(value, before):
                return self.inlined(value, scope.child({e.text: before}), wanted)
            case Term():
                untyped = self.untyped.get(entry)
                if untyped is not None and wanted is not None and is_function(wanted):
                    return self.lambda_(untyped.body, untyped.scope, wanted)
                return entry

    def lookup(self, e: Name, scope: Scope) -> Entry:
        """What a name stands for, or an error that proposes another."""
        entry = scope.find(e.text)
        if entry is None and self.kinds.names_size(e.text):
            return self.count(TypeName("N", e.span, (Size(e.text, e.span),)))
        if entry is None:
            raise self.unknown(e, scope)
        return entry

    def count(self, domain: TypeName) -> Term:
        """How many values an index of a domain, or of a size, has."""
        key = domain.sizes[0].text if domain.sizes else domain.text
        if (key, bool(domain.sizes)) not in self._counts:
            index = terms.fresh("i", self.kinds.index(domain, f"index of {key}", domain.span))
            self._counts[key, bool(domain.sizes)] = terms.total((index,), terms.ONE)
        return self._counts[key, bool(domain.sizes)]

    @staticmethod
    def _is_index(entry: Entry | None) -> bool:
        return isinstance(entry, Var) and isinstance(entry.kind, Index)

    def unknown(self, e: Name, scope: Scope, args: Sequence[Expr | Ready] | None = None) -> LanguageError:
        """The error for a name that stands for nothing; `args` are what it is applied to as a function."""
        known = [*scope.names(), *FUNCTIONS, *CONSTANTS]
        if e.text in self.defined():
            remedy = "a definition is seen in the lines that follow it, not before and not in itself"
        elif args and all(isinstance(a, Name) and self._is_index(scope.find(a.text)) for a in args):
            kind = {1: "RV", 2: "RM"}.get(len(args), "T")
            otherwise = f"make it a parameter, `({e.text}::{kind}) -> …`, or define it before"
            written = [a for a in args if not isinstance(a, Ready)]
            remedy = habits.remedy_of_index(e.text, written) or did_you_mean(e.text, known, otherwise)
            remedy += f" As a tensor, {otherwise}" if remedy.removeprefix("did you mean ")[:-1] in FUNCTIONS else ""
        elif args is not None:
            written = [a for a in args if not isinstance(a, Ready)]
            missing = habits.remedy_of_missing_function(e.text, written)
            words = [*known, "sum"]
            remedy = habits.remedy_of_function(e.text, written) or did_you_mean(e.text, words, missing, cutoff=0.75)
        else:
            otherwise = f"make it a parameter, `({e.text}::R) -> …`, or define it before"
            remedy = habits.remedy_of_name(e.text, known) or did_you_mean(e.text, known, otherwise)
        return LanguageError(f"unknown name {e.text}", span=e.span, remedy=remedy)

    # --- binders ----------------------------------------------------------------------------------------------------

    def lambda_(self, e: Lambda, scope: Scope, wanted: Type | None = None) -> Term:
        """A map; parameters without a type are indices, unless the place wants a map of something else."""
        for p in filter(is_integer, e.params):
            self.check_free(p.name, p.span)
            self.kinds.note_size(p.name)
        written = [p for p in e.params if not is_integer(p)]
        if not written:
            return self.expr(e.body, scope, wanted)
        e = replace(e, params=tuple(written))
        expected: tuple[Type | None, ...] = (None,) * len(e.params)
        result: Type | None = None
        if isinstance(wanted, Map) and len(wanted.params) == len(e.params):
            expected, result = wanted.params, wanted.result
        params = tuple([self.bound(p, kind) for p, kind in zip(e.params, expected, strict=True)])
        entries: dict[str, Entry | None] = {p.name: p for p in params}
        return terms.Lam(params, self.expr(e.body, scope.child(entries), result))

    def bound(self, p: Param, expected: Type | None = None) -> Var:
        """The variable that a binder makes."""
        var = self._bound(p, expected)
        self.places[var] = p.span
        return var

    def _bound(self, p: Param, expected: Type | None) -> Var:
        self.check_single(p)
        self.check_free(p.name, p.span)
        if p.kind is None and expected is not None and not isinstance(expected, Index):
            return terms.fresh(p.name, expected)
        if self.kinds.is_index(p.kind):
            return terms.fresh(p.name, self.kinds.index(p.kind, f"index {p.name}", p.span))
        assert p.kind is not None, "an unannotated parameter is an index"
        if any(p is end for end in self._ends):
            return terms.end_named(p.name)
        return terms.fresh(p.name, self.kinds.read(p.kind, p.name, p.span))

    def check_single(self, p: Param) -> None:
        """A tuple of parameters stands in the step of a loop only."""
        if p.items:
            raise LanguageError(
                "only the step of a loop has a tuple of parameters",
                span=p.span,
                remedy="such a step is iterate(((a, b), t) -> (b, a + b), (0, 1), n)",
            )

    def check_free(self, name: str, span: Span) -> None:
        """Names that the language gives a meaning to stay as they are."""
        if name in RESERVED:
            raise LanguageError(f"{name} is a keyword of the language", span=span, remedy="choose another name")

    def _summation(self, e: Summation, scope: Scope) -> Term:
        if not e.params:
            return tensors.of_all_entries(self, e.body, scope)
        indices = tuple([self.bound(p) for p in e.params])
        entries: dict[str, Entry | None] = {index.name: index for index in indices}
        inner = scope.child(entries)
        for p in e.params:
            if p.kind is None:
                refuse_values("sum", Name(p.name, p.span), (e.condition, e.body), scope)
        for p, index in zip(e.params, indices, strict=True):
            if not isinstance(index.kind, Index | Map) and not is_real(index.kind):
                raise _not_summed(p, index)
        if e.condition is None:
            summand = self.number(e.body, inner)
        else:
            guard = conditions.conditional(self, e.condition, inner, among_indices=True)
            summand = guard(self.guarded(e.body, inner, guard.facts))
        given = {arg for t in terms.subterms(summand, App) for arg in t.args}
        for p, index in zip(e.params, indices, strict=True):
            # a sum over a space of functions is one of what a map makes of them (the C rule, section 5.2)
            if isinstance(index.kind, Map) and index not in given:
                raise _not_summed(p, index)
        return terms.total(indices, summand)

    # --- definitions ------------------------------------------------------------------------------------------------

    def _block(self, e: Block, scope: Scope, wanted: Type | None) -> Term:
        left = Unfinished()
        inner = scope.child()
        for definition in e.definitions:
            inner = self._define(definition, inner, left)
        body = self.expr(e.body, inner, wanted)
        for function in left.functions:
            if function.problem and not function.read:
                raise function.problem
            if not function.read:
                self.lambda_(function.body, function.scope)
        read = left.read_by(body) if left.tensors else set()
        for function, own, asked in left.tensors:
            if not (function.read and own and read.isdisjoint(own)):
                self.slots.ask(asked)
        return terms.let(left.bindings, body)

    def _define(self, d: Definition, scope: Scope, left: Unfinished) -> Scope:
        for name in d.names:
            self.check_free(name.text, name.span)
        if len(d.names) > 1:
            return self._destructure(d, scope, left)
        word = d.names[0].text
        if d.textual:
            return scope.extended(word, Textual(d.value, scope.find(word)))
        closure = self._closure(d.value, scope, word)
        if closure is None:
            return self._of_no_types(d, d.value, scope, left) if has_no_types(d.value) else self._bind(d, scope, left)
        if word in self.keep:
            closure.read = True
            found = self._shared(word, self.lambda_(closure.body, closure.scope), left)
            return scope.extended(word, found if d.kind is None else self._declared(d, d.kind, found, left))
        left.functions.append(closure)
        return scope.extended(word, closure)

    def _bind(self, d: Definition, scope: Scope, left: Unfinished) -> Scope:
        """A definition that is a value."""
        word = d.names[0].text
        found = self._shared(word, self._defined(d, scope), left)
        return scope.extended(word, found if d.kind is None else self._declared(d, d.kind, found, left))

    def _of_no_types(self, d: Definition, value: Lambda, scope: Scope, left: Unfinished) -> Scope:
        """A map whose parameters have no types is a tensor, and a function of what else it is called with.

        One that is no tensor, as y -> [y(1), -y(0)], is a function alone.
        """
        closure = Closure(value, scope, d.names[0].text)
        before = len(left.bindings)
        try:
            with self.attempt(), self.slots.apart() as asked:
                inner = self._bind(d, scope, left)
        except LanguageError as problem:
            if d.kind is not None:
                raise
            closure.problem = problem
            left.functions.append(closure)
            return scope.extended(closure.name, closure)
        found = inner.find(closure.name)
        if isinstance(found, Term):
            self.untyped[found] = closure
        left.tensors.append((closure, tuple([v for v, _ in left.bindings[before:]]), asked))
        return inner

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """What is read here may be read in another way, if it is an error: the walk then goes on from where it was."""
        before = self._depth, self._inlining, self._guards, self._facts
        try:
            yield
        except LanguageError:
            self._depth, self._inlining, self._guards, self._facts = before
            raise

    def _declared(self, d: Definition, kind: TypeExpr, var: Term, left: Unfinished) -> Term:
        """A definition whose type says that it is a definite matrix; `check_hermitian` sees whether it is Hermitian."""
        name = d.names[0]
        declared = self.kinds.read(kind, name.text, name.span, anchored=False)
        if not (isinstance(declared, Map) and declared.definite):
            raise LanguageError(
                "the type of a definition is that of its value",
                span=kind.span,
                remedy="leave it out; only SPD and HPD are written, for a matrix that is known to be positive definite",
            )
        own = [v for v, _ in left.bindings if v is var]
        if not own:
            raise LanguageError(
                f"{name.text} is another name of a matrix, and cannot be declared",
                span=name.span,
                remedy="declare the matrix that it names, as A::SPD",
            )
        fit(var.type, Map(declared.params, declared.result), self.ranges, d.value.span)
        assert isinstance(var, Var) and isinstance(var.type, Map), "a definition that fits a matrix"
        definite = terms.fresh(var.name, replace(var.type, definite=True))
        left.bindings[:] = [(definite if v is var else v, e) for v, e in left.bindings]
        self.places[definite] = name.span
        return definite

    def _defined(self, d: Definition, scope: Scope) -> Term:
        """The term of a definition; the states of a loop are called as it says."""
        match d.value:
            case Apply(Name(text), _) if text in LOOPS:
                self.called = tuple(name.text for name in d.names)
        return self.expr(d.value, scope)

    def _closure(self, e: Expr, scope: Scope, name: str) -> Closure | None:
        match e:
            case Lambda(params) if not all(self.kinds.is_index(p.kind) for p in params):
                return Closure(e, scope, name)
            case Name(text):
                entry = scope.find(text)
                return entry if isinstance(entry, Closure) else None
            case _:
                return None

    def _shared(self, name: str, term: Term, left: Unfinished) -> Term:
        """What the name of a definition stands for: values get a binding, mere names and functions do not."""
        match term:
            case Let(bindings, body):
                left.bindings.extend(bindings)
                return self._shared(name, body, left)
            case Var() | Const():
                return term
            case _ if term in self.unshared:
                return term
            case Tuple(items):
                return Tuple(tuple([self._shared(f"{name}{n}", item, left) for n, item in enumerate(items, start=1)]))
        kind = term.type
        if name not in self.keep and (slots := maps_in_turn(kind)):
            return self._tensor_of_maps(name, term, slots, left)
        value = isinstance(kind, Number | Product) or (isinstance(kind, Map) and (kind.is_tensor or name in self.keep))
        if not value:
            return term
        var = terms.fresh(name, kind)
        left.bindings.append((var, term))
        return var

    def _tensor_of_maps(self, name: str, term: Term, slots: Sequence[Map], left: Unfinished) -> Term:
        """A map of indices to vectors, n = f -> [a, b, c], is a tensor with the slots of both: n(f) is i -> n(f, i)."""
        params: list[tuple[Var, ...]] = []
        entry = term
        for one in slots:
            names = [p.name for p in entry.params] if isinstance(entry, terms.Lam) else ["i"] * len(one.params)
            params.append(tuple([terms.fresh(own, kind) for own, kind in zip(names, one.params, strict=True)]))
            entry = terms.apply(entry, *params[-1])
        every = tuple([p for own in params for p in own])
        var = terms.fresh(name, Map(tuple([p.type for p in every]), entry.type))
        left.bindings.append((var, terms.Lam(every, entry)))
        rows: Term = terms.apply(var, *every)
        for own in reversed(params):
            rows = terms.Lam(own, rows)
        return rows

    def _destructure(self, d: Definition, scope: Scope, left: Unfinished) -> Scope:
        term = self._defined(d, scope)
        while isinstance(term, Let):
            left.bindings.extend(term.bindings)
            term = term.body
        kind = term.type
        if not isinstance(kind, Product) or len(kind.items) != len(d.names):
            raise LanguageError(
                f"{len(d.names)} names are bound to {in_words(kind)}",
                span=d.value.span,
                also=("the names are here", d.names[0].span),
                remedy="give as many names as the tuple has items",
            )
        if not isinstance(term, Tuple):
            term = self._shared("t", term, left)
        for item, name in enumerate(d.names):
            scope = scope.extended(name.text, self._shared(name.text, terms.proj(item, term), left))
        return scope

    # --- types and budgets ------------------------------------------------------------------------------------------

    def checked(self, e: Expr | Ready, kind: Type, scope: Scope) -> Term:
        """The term of an argument in a place of type `kind`."""
        match kind:
            case Index(domain):
                assert domain is not None, "slots have ranges"
                term = self.expr(e, scope)
                self.slots.place(term, domain, e.span, self._facts)
            case Number():
                term = self.number(e, scope)
                if isinstance(term, Var) and isinstance(term.kind, Index) and term.kind.domain:
                    self.ranges.note_real(term.kind.domain)
                fit(term.type, kind, self.ranges, e.span)
            case _:
                term = self.expr(e, scope, kind)
                fit(term.type, kind, self.ranges, e.span)
        return term

    def spend(self, nodes: int, span: Span) -> None:
        """Inlining may multiply a program without end: count what it makes."""
        self._size += nodes
        if self._size > _LARGEST:
            raise BudgetError(
                f"inlining the functions makes more than {_LARGEST} expressions",
                span=span,
                remedy="bind values (`a = …`) that are shared, or keep the function unknown with keep=",
            )


def _not_summed(p: Param, index: Var) -> LanguageError:
    return LanguageError(
        f"a sum runs over an index or a real number, and {p.name} is {in_words(index.kind)}",
        span=p.span,
        remedy="sum over the indices of a tensor, or over x::R for an integral",
    )
