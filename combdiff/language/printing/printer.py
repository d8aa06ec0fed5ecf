"""A term becomes a program: the language's own text, which parses back to the same term.

Operators bind as in the grammar, and parentheses stand only where they are needed. Bound variables keep their names;
where two that are in sight at once share a name, the inner one gets a subscript.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

from combdiff.language.printing.anchors import domains_of
from combdiff.language.printing.comparisons import condition_text
from combdiff.language.printing.document import (
    ATOM,
    ENTRYWISE,
    MAP,
    POSTFIX,
    PRODUCT,
    SIGN,
    SUM,
    Piece,
    placed,
    sum_text,
)
from combdiff.language.printing.loops import forwards
from combdiff.language.printing.names import unique_name, with_own_binders
from combdiff.language.printing.type_names import TypeNames
from combdiff.language.printing.vectors import vectors_of, without_index
from combdiff.language.printing.wrapping import WIDTH, wrapped
from combdiff.records import dataclass
from combdiff.terms.arithmetic import reads_from_the_end
from combdiff.terms.conditions.choices import Choice, with_choices
from combdiff.terms.conditions.comparing import (
    body_of_reduction,
    conditions_and_body,
    conditions_of_reduction,
    is_weighted,
)
from combdiff.terms.laws.matrices import MATRIX_FUNCTIONS, arguments_of, written_name
from combdiff.terms.listings import last_slots_listed, rows_of
from combdiff.terms.numerals import decimal
from combdiff.terms.recursion import deep_recursion
from combdiff.terms.terms import (
    IMAGINARY,
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
    Tuple,
    Var,
    bound_by,
    fresh,
    lam,
    same_recurrence,
    split_coefficient,
    subterms,
)
from combdiff.terms.types import Domain, Index, Map, Product, Type, is_complex


def program_text(term: Term, width: int = WIDTH) -> str:
    """A whole program: the declarations that its types need, then the expression, broken at about `width` columns.

    >>> from combdiff.language.inference.infer import infer
    >>> from combdiff.language.parsing.parser import parse
    >>> print(program_text(infer(parse("(A::Her) -> (x::CV) -> i -> 2*∑(j, A[i,j]*x[j])"))))
    (A::Her) -> (x::CV) -> i -> 2 * sum(j, A(i, j) * x(j))
    """
    with deep_recursion():
        term = with_own_binders(forwards(term))
        spelling = TypeNames(term)
        body = _opened(term, spelling).at(term)
        if spelling.integers:
            body = f"({', '.join(f'{d.name}::Int' for d in spelling.integers)}) -> {body}"
        return wrapped("\n".join([*spelling.declarations(), body]), width)


def expression_text(term: Term, names: Mapping[Var, str] | None = None) -> str:
    """One expression without declarations, for messages and steps; domains that are declared are named all the same.

    `names` are those that free variables have where the expression stands.

    >>> from combdiff.terms.terms import fresh, mul, number
    >>> from combdiff.terms.types import REAL
    >>> expression_text(mul(number(Fraction(-1, 2)), fresh("x", REAL)))
    '-1/2 * x'
    """
    with deep_recursion():
        return wrapped(opened(term, names or {}).at(forwards(term)))


def opened(term: Term, names: Mapping[Var, str] = MappingProxyType({})) -> Printer:
    """What prints an expression and its parts without declarations; `names` are as for `expression_text`."""
    term = forwards(term)
    spelling = TypeNames()
    for domain in (d for u in subterms(term) for var in bound_by(u) for d in domains_of(var.kind)):
        whole = domain.of or domain
        if whole.sized:
            spelling.sizes[whole] = whole.name
    for index in _declared(term):
        assert index.domain is not None
        spelling.domains[index.domain] = index.domain.name
    return _opened(term, spelling, names)


def _declared(term: Term) -> list[Index]:
    kinds = [var.kind for u in subterms(term) for var in bound_by(u)]
    return [kind for kind in kinds if isinstance(kind, Index) and kind.domain and kind.domain.declared]


def _opened(term: Term, spelling: TypeNames, names: Mapping[Var, str] = MappingProxyType({})) -> Printer:
    known = {var: names[var] for var in term.free if var in names}
    free = sorted(term.free - known.keys(), key=lambda var: var.uid)
    called = frozenset(u.primitive for u in subterms(term, Call))
    return Printer(spelling, known, called).binding(free)


@dataclass(frozen=True, slots=True)
class Printer:
    """What types are called, the names of the variables in sight, and the functions that no name may hide."""

    spelling: TypeNames
    names: dict[Var, str]
    called: frozenset[str]

    def binding(self, variables: Sequence[Var]) -> Printer:
        """The printer inside a binder of `variables`."""
        names = dict(self.names)
        taken = set(names.values())
        for var in variables:
            # an index may be called as the size that it runs to, nothing else
            others = [] if isinstance(var.kind, Index) else [*self.spelling.sizes.values()]
            names[var] = unique_name(var.name, taken.union(others, self.called, self.spelling.functions))
            taken.add(names[var])
        return Printer(self.spelling, names, self.called)

    def at(self, t: Term, level: int = MAP) -> str:
        """`t`, in parentheses if its place holds tighter than it does."""
        return placed(self.piece(t), level)

    def affine(self, t: Add) -> Sequence[Term]:
        """The terms of an index expression in reading order, those of one kind as their indices are bound."""
        if reads_from_the_end(t.terms):
            return t.terms
        bound = {v: n for n, v in enumerate(self.names) if v in t.free}
        return sorted(t.terms, key=lambda u: (_reading(u), min((bound.get(v, 0) for v in u.free), default=0)))

    def list(self, terms: Sequence[Term]) -> str:
        return ", ".join(self.at(t) for t in terms)

    def _by_name(self, item: Term) -> Term:
        """An item of a tuple, `y` for i ↦ y(i) where y says what i ranges over."""
        match item:
            case Lam(params, App(Var() as f, args)) if args == params and f not in params:
                indices = all(isinstance(p.kind, Index) and not self.spelling.annotates(p) for p in params)
                return f if indices else item
            case _:
                return item

    def piece(self, t: Term) -> Piece:
        match t:
            case Add():
                return self.sum(t)
            case Mul(factors):
                return self.product(factors), PRODUCT
            case Pow(base, exponent):
                return self.power(base, exponent)
            case Const():
                return _constant(t)
            case Lam() if (vector := without_index(t)) is not t:
                return self.atom(vector), ATOM
            case Lam(params, body):
                if (rows := rows_of(t)) is not None:
                    return f"[{'; '.join(map(self.list, rows))}]", ATOM
                inner = self.binding(params)
                return f"{inner.parameters(params)} -> {inner.at(body)}", MAP
            case Sum((Var(kind=Index(Domain(of=Domain())) as kind),), body) if body == ONE and self.count(kind):
                return self.count(kind), SUM
            case _:
                return self.atom(t), ATOM

    def atom(self, t: Term) -> str:
        match t:
            case Var(name):
                return self.names.get(t, name)
            case App(Reduce() as function, ()):
                return self.reduction(function)
            case App(function, args):
                return f"{self.at(function, ATOM)}({self.list(args)})"
            case Tuple(items):
                return f"({self.list([self._by_name(t) for t in items])})"
            case Conj(of):
                return f"{self.at(of, ATOM)}'"
            case Call(name, args):
                return f"{name}({self.list(args)})" if args else name
            case Sum((Var(kind=Index() as kind),), Const() as one) if one == ONE and self.count(kind):
                return self.count(kind)
            case Sum(indices, body):
                inner = self.binding(indices)
                written = ", ".join(map(inner.parameter, indices))
                return f"sum({written if len(indices) == 1 else f'({written})'}, {inner.at(body)})"
            case Reduce():
                return self.reduction(t)
            case Delta(left, right, body):
                return f"delta({self.list((left, right, body))})"
            case Indicator():
                parts, body = conditions_and_body(t)
                return f"where({condition_text(parts, self.side)}, {self.at(body)})"
            case Loop():
                return self.loop(t)
            case Diff(kind, of):
                return f"{kind}({self.at(of)})"
            case Let():
                return self.block(t)
            case Proj(item, App(Diff("grad" | "pullback" as kind, Var() | Diff() as of), args)):
                return f"{kind}({self.at(of)}, {item + 1})({self.list(args)})"
            case Proj(item, of):
                return self.item(item, of)
        raise AssertionError(f"unknown node {type(t).__name__}")

    def reduction(self, t: Reduce) -> str:
        """`maximum(j, j != i, x(j))`, `maximum(x)`, `norm(x)`."""
        whole = lam(t.indices, t.body)
        if t.kind in MATRIX_FUNCTIONS:
            # what marks these is an argument, which may be 1 for all entries
            return f"{written_name(t)}({self.list(arguments_of(t))})"
        if t.kind == "cross":
            return f"cross({self.list(vectors_of(t))})"
        if t.kind == "norm" or (isinstance(whole, Var) and t.mark == ONE):
            return f"{t.kind}({self.at(whole)})"
        inner = self.binding(t.indices)
        written = ", ".join(map(inner.parameter, t.indices))
        parts, body = ((), body_of_reduction(t)) if is_weighted(t) else conditions_of_reduction(t)
        condition = [condition_text(parts, inner.side)] if parts else [inner.at(t.mark)] if is_weighted(t) else []
        over = written if len(t.indices) == 1 else f"({written})"
        return f"{t.kind}({', '.join([over, *condition, inner.at(body)])})"

    def loop(self, t: Loop) -> str:
        """`iterate((s, t) -> e, s0, n)`, of several states `scan(((a, b), t) -> …, (a0, b0), n)`."""
        assert isinstance(t.step, Lam) and isinstance(t.start, Tuple), "a step, and the first states"
        inner = self.binding(t.step.params)
        *states, time = (inner.names[v] for v in t.step.params)
        named = states[0] if len(states) == 1 else f"({', '.join(states)})"
        starts = t.start.items[0] if len(states) == 1 else t.start
        word = "iterate" if t.kind == "last" else "scan"
        step = inner.at(_with_bare_state(t.step.body))
        return f"{word}(({named}, {time}) -> {step}, {self.at(starts)}, {self.steps(t.time)})"

    def steps(self, time: Var) -> str:
        """How many steps a loop has."""
        assert isinstance(time.kind, Index) and time.kind.domain is not None, "a loop runs over a domain"
        domain = time.kind.domain
        if domain.count is not None:
            return str(domain.count)
        if domain.of is not None:
            return f"{self.count(Index(domain.of))} {'-' if domain.less > 0 else '+'} {abs(domain.less)}"
        return self.count(time.kind)

    def count(self, index: Index) -> str:
        """How many values an index has, in words: the name of its size where no other thing has it."""
        name = self.spelling.domain(index)
        if name:
            return f"size({name})" if "size" not in self.names.values() else ""
        size = self.spelling.size(index)
        return "" if size in self.names.values() else size

    def side(self, t: Term) -> str:
        """What is compared."""
        return self.at(t, SUM)

    def parameters(self, params: Sequence[Var]) -> str:
        written = ", ".join(map(self.parameter, params))
        return written if len(params) == 1 and "::" not in written else f"({written})"

    def parameter(self, var: Var) -> str:
        """A bound variable, with its type unless it is an index whose range the slots tell."""
        if isinstance(var.kind, Index) and not self.spelling.annotates(var):
            return self.names[var]
        return f"{self.names[var]}::{self.spelling.kind(var.kind)}"

    def sum(self, t: Add) -> Piece:
        terms = self.affine(t) if isinstance(t.type, Index) else with_choices(t.terms)
        pieces = [self.choice(u) if isinstance(u, Choice) else self.at(u, PRODUCT) for u in terms]
        if len(pieces) == 1:
            return pieces[0], ATOM
        return sum_text((piece.startswith("-"), piece.removeprefix("-")) for piece in pieces), SUM

    def choice(self, t: Choice) -> str:
        """`where(i < j, a, where(j < k, b, c))`."""
        *rows, last = t.rows
        text = "" if last.value == ZERO else self.at(last.value)
        for row in reversed(rows):
            told = [condition_text(row.parts, self.side), self.at(row.value), text]
            text = f"where({', '.join(filter(None, told))})"
        return f"where({condition_text(t.around, self.side)}, {text})" if t.around else text

    def product(self, factors: Sequence[Term]) -> str:
        """Factors in their order; a divisor in front of all others stands behind the first: a / c, not 1 / c * a."""
        coefficient, rest = (factors[0], factors[1:]) if isinstance(factors[0], Const) else (None, factors)
        text = _coefficient(coefficient) if coefficient else ""
        above = next((n for n, factor in enumerate(rest) if not _is_below(factor)), 0)
        if above and len(self.at(rest[above], POSTFIX)) <= SHORT:
            rest = (rest[above], *rest[:above], *rest[above + 1 :])
        for factor in rest:
            match factor:
                case Pow(base, Const() as n) if _is_below(factor):
                    under = self.at(base, POSTFIX) if n.real == -1 else self.raised(base, Const(-n.real))
                    text += f"{'' if text and text != '-' else '1'} / {under}"
                case _:
                    text += f"{' * ' if text and text != '-' else ''}{self.at(factor, POSTFIX)}"
        return text

    def power(self, base: Term, exponent: Term) -> Piece:
        if isinstance(exponent, Const) and exponent.is_integer and exponent.real < 0:
            return self.product((Pow(base, exponent),)), PRODUCT
        return self.raised(base, exponent), POSTFIX

    def raised(self, base: Term, exponent: Term) -> str:
        return f"{self.at(base, ATOM)}^{self.at(exponent, ATOM)}"

    def block(self, t: Let) -> str:
        """`begin … end`, a line for each value; the items of a tuple are named where it is bound."""
        scope, lines, taken = self, [], set[Var]()
        for position, (var, value) in enumerate(t.bindings):
            if var in taken:
                continue
            if isinstance(value, Loop) and len(value.states) > 1:
                states = _states(var, value, t.bindings)
                taken.update(states)
                inner = scope.binding(states)
                lines.append(f"({', '.join(inner.names[item] for item in states)}) = {scope.at(value)}")
            elif isinstance(var.kind, Product):
                items = _items(var, t.bindings[position + 1 :])
                taken.update(items)
                inner = scope.binding([var, *items])
                lines.append(f"({', '.join(inner.names[item] for item in items)}) = {scope.at(value)}")
            else:
                inner = scope.binding([var])
                kind = f"::{'HPD' if is_complex(var.kind) else 'SPD'}" if _is_definite(var.kind) else ""
                lines.append(f"{inner.names[var]}{kind} = {scope.defined(value)}")
            scope = inner
        lines.append(scope.at(t.body))
        return "begin\n" + "\n".join("  " + line.replace("\n", "\n  ") for line in lines) + "\nend"

    def defined(self, value: Term) -> str:
        """The value of a definition; a tensor of vectors or matrices that list their entries maps indices to these."""
        if isinstance(value, Lam) and (slots := last_slots_listed(value)):
            before, last = value.params[:-slots], Lam(value.params[-slots:], value.body)
            inner = self.binding(before)
            return f"{inner.parameters(before)} -> {inner.at(last)}"
        return self.at(value)

    def item(self, item: int, of: Term) -> str:
        """One item of a tuple that has no names for its items yet."""
        assert isinstance(of.type, Product), "only tuples have items"
        taken, names = {*self.names.values()}, []
        for n in range(len(of.type.items)):
            names.append(unique_name(f"t{n + 1}", taken))
            taken.add(names[-1])
        return f"begin ({', '.join(names)}) = {self.at(of)}; {names[item]} end"


def _is_definite(kind: Type) -> bool:
    return isinstance(kind, Map) and kind.definite


def _with_bare_state(body: Term) -> Term:
    """What a step returns; the only state is no tuple."""
    match body:
        case Let(bindings, inner):
            return Let(bindings, _with_bare_state(inner))
        case Tuple((state,)):
            return state
        case _:
            return body


def _states(var: Var, loop: Loop, bindings: Sequence[tuple[Var, Term]]) -> list[Var]:
    """A name for each state of a loop of several: the one that a definition gives to it, or a new one."""
    loops = {v: e for v, e in bindings if isinstance(e, Loop) and e.kind == loop.kind}
    named = {e.item: v for v, e in reversed(loops.items()) if same_recurrence(e, loop)}
    named[loop.item] = var
    return [named.get(n) or fresh(state.name, state.kind) for n, state in enumerate(loop.states)]


def _items(var: Var, later: Sequence[tuple[Var, Term]]) -> list[Var]:
    """A name for each item of the tuple `var`: the one that a later binding gives to it, or a new one."""
    assert isinstance(var.kind, Product)
    items = [fresh(f"{var.name}{n}", kind) for n, kind in enumerate(var.kind.items, 1)]
    for name, value in reversed(later):
        match value:
            case Proj(item, of) if of == var:
                items[item] = name
    return items


def _reading(t: Term) -> tuple[bool, bool, bool]:
    """The order in which an index is read: k + b rather than b + k for a step b from a point k of a periodic domain."""
    coefficient, rest = split_coefficient(t)
    domains = [v.kind.domain for v in rest.free if isinstance(v.kind, Index)]
    return isinstance(t, Const), coefficient.real < 0, not any(d.periodic for d in domains if d)


def _constant(c: Const) -> Piece:
    if not c.imag:
        level = PRODUCT if "/" in _real(c.real) else SIGN if c.real < 0 else ATOM
        return _real(c.real), level
    imaginary = {1: "im", -1: "-im"}.get(c.imag.numerator if c.imag.denominator == 1 else 0, f"{_real(c.imag)} * im")
    if not c.real:
        level = ATOM if c == IMAGINARY else SIGN if c.imag == Fraction(-1) else PRODUCT
        return imaginary, level
    return f"{_real(c.real)} - {imaginary[1:]}" if c.imag < 0 else f"{_real(c.real)} + {imaginary}", SUM


def _real(value: Fraction) -> str:
    """1/2, 1e-9."""
    found = decimal(abs(value))
    if found is None:
        return str(value)
    digits, power = found
    return f"{'-' if value < 0 else ''}{digits}{f'e{power}' if power else ''}"


SHORT = 60
"""Characters of a factor that is written before its divisor, which else would stand on a line of its own."""


def _is_below(factor: Term) -> bool:
    """Whether a factor is written as a divisor."""
    return isinstance(factor, Pow) and isinstance(n := factor.exponent, Const) and n.is_integer and n.real < 0


def _coefficient(c: Const) -> str:
    """A number in front of a product, a bare sign for −1."""
    if c == Const(Fraction(-1)):
        return "-"
    return placed(_constant(c), ENTRYWISE)
