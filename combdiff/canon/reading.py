"""Reads scalar terms without `let` into the trees of `skeleton.py`.

Integer powers up to four are products, δ and the ≤ of indices are factors, an index read as a number is a factor that
is odd in it, and real(z), abs(z) … are the least of what they are for z and for z'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import lru_cache, reduce

from combdiff.canon.skeleton import (
    EMPTY,
    LAMBDA,
    NOTHING,
    UNIT,
    Coefficient,
    Combination,
    Either,
    Expression,
    Factor,
    Head,
    Node,
    Operation,
    Product,
    Total,
    Variant,
    combined,
    conjugated,
    content,
    plus,
    product,
    scaled,
    times,
)
from combdiff.canon.slotgroup import SlotGroup
from combdiff.records import dataclass
from combdiff.terms.functions import SCALAR_FUNCTIONS
from combdiff.terms.nodes import TURNING
from combdiff.terms.schema import label
from combdiff.terms.terms import (
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
    apply,
    call,
    domains_compared,
    fresh,
    holds,
    holds_entries,
    is_integer_valued,
    mul,
    power,
    size,
    split_coefficient,
    substitute,
    total,
)
from combdiff.terms.types import HERMITIAN, REAL, SYMMETRIC, Domain, Index, Map, Number, Symmetry, Type, is_complex

_SHORT_POWER = 4
_WIDEST = 1 << 12
"""The most parameters of a λ-term: each nesting level has a range of so many symbols."""
# so many images are looked at of an entry that is taken where arrays of integers say
_MOST_IMAGES = 24


class Unreadable(Exception):
    """A term outside the scalar, let-free ones; it is its own canonical form."""


@dataclass(slots=True)
class Reader:
    """One reading; `bound[n]` is the kind of the bound index numbered n; `ask` is called often, may raise to stop.

    `laws` says whether the matrix of a function of matrices is symmetric or Hermitian, as its inverse is then.
    """

    symmetries: Mapping[Var, tuple[Symmetry, ...]] = field(default_factory=dict)
    unused: frozenset[Var] = frozenset()
    bound: list[Type] = field(default_factory=list)
    names: dict[Var, int] = field(default_factory=dict)
    level: int = 0
    ask: Callable[[], None] = lambda: None
    laws: Callable[[Reduce], Sequence[Symmetry]] = lambda _: ()

    def read(self, t: Term) -> tuple[Coefficient, Node]:
        """(c, node) with t = c · node."""
        self.ask()
        match t:
            case App(Reduce("cross") as whole, (place,)):
                # what is known of ε is known of vector products: u × v = −v × u, and Σ u (v × w) = Σ w (u × v)
                return self.read(_by_signs(whole, place))
            case App():
                node = self._application(t)
                return (NOTHING, EMPTY) if isinstance(node, Factor) and _is_zero(node) else (UNIT, node)
            case Mul(parts):
                return self._product(parts)
            case Conj(u):
                (a, b), node = self.read(u)
                return (a, -b), conjugated(node)
            case Sum(indices, body):
                return self._total(indices, body)
            case Const(a, b):
                return (a, b), EMPTY
            case Add(terms):
                return self._combination([(UNIT, u) for u in terms])
            case Pow(base, exponent):
                return self._power(t, base, exponent)
            case Call(name, args):
                return self._call(t, name, args)
            case Delta(left, right, body) | Indicator(left, right, body):
                c, node = self._at_either(left, right, body) if isinstance(t, Delta) else self.read(body)
                return (NOTHING, EMPTY) if c == NOTHING else (c, product([self._condition(t, left, right), node]))
            case Var():
                return UNIT, self._scalar(t)
            case _:
                return UNIT, self._whole(t)

    def _at_either(self, left: Term, right: Term, body: Term) -> tuple[Coefficient, Node]:
        """What a δ of two indices selects, at one of them: d(i) δ(i, j) is d(j) δ(i, j), so that it is symmetric.

        Of two bound ones the search finds the least.
        """
        if not (isinstance(left, Var) and isinstance(right, Var) and _is_plain(left.kind)):
            return self.read(body)
        if left.kind != right.kind or body.free.isdisjoint((left, right)):
            return self.read(body)
        (n, one), (_, other) = sorted(((self.names.get(v, -v.uid), v) for v in (left, right)), key=lambda e: e[0])
        if n < 0:
            return self.read(substitute(body, {other: one}))
        if holds(body, Delta):
            return self.read(body)
        (c, node), (d, mirrored) = (self.read(substitute(body, {a: b})) for a, b in ((one, other), (other, one)))
        if NOTHING in (c, d):
            return NOTHING, EMPTY
        return UNIT, Either(((1, scaled(c, node)), (1, scaled(d, mirrored))))

    def _product(self, parts: Sequence[Term]) -> tuple[Coefficient, Node]:
        for d in parts:
            if isinstance(d, Delta) and _is_plain(d.left.type):
                beside = [u for u in parts if u is not d and not u.free.isdisjoint((d.left, d.right))]
                if beside:
                    selected = Delta(d.left, d.right, mul(d.body, *beside))
                    return self._product([selected, *(u for u in parts if u is not d and u not in beside)])
        c = UNIT
        nodes = []
        for part in parts:
            k, node = self.read(part)
            c = times(c, k)
            if c == NOTHING:
                return NOTHING, EMPTY
            nodes.append(node)
        return c, product(nodes)

    def _total(self, indices: Sequence[Var], body: Term) -> tuple[Coefficient, Node]:
        numbers = []
        shadowed = {i: self.names.get(i) for i in indices}
        for i in indices:
            numbers.append(len(self.bound))
            self.names[i] = len(self.bound)
            self.bound.append(i.kind)
        c, node = self.read(body)
        for i, outer in shadowed.items():
            if outer is None:
                del self.names[i]
            else:
                self.names[i] = outer
        if c == NOTHING:
            return NOTHING, EMPTY
        if isinstance(node, Total):
            return c, Total((*numbers, *node.indices), node.body)
        return c, Total(tuple(numbers), node)

    def _combination(self, terms: Sequence[tuple[Coefficient, Term]]) -> tuple[Coefficient, Node]:
        entries: list[tuple[Coefficient, Node]] = []
        for k, u in terms:
            c, node = self.read(u)
            c = times(k, c)
            inner = node.entries if isinstance(node, Combination) else ((UNIT, node),)
            entries += [(times(c, d), part) for d, part in inner if c != NOTHING]
        constants = [c for c, node in entries if node is EMPTY]
        if len(constants) > 1:
            entries = [e for e in entries if e[1] is not EMPTY]
            entries += [(c, EMPTY) for c in (reduce(plus, constants),) if c != NOTHING]
        if not entries:
            return NOTHING, EMPTY
        if len(entries) == 1:
            return entries[0]
        common = content([c for c, _ in entries])
        whole = (common, Fraction(0))
        return whole, Combination(tuple(((a / common, b / common), part) for (a, b), part in entries))

    def _power(self, t: Pow, base: Term, exponent: Term) -> tuple[Coefficient, Node]:
        if not (isinstance(exponent, Const) and exponent.is_integer):
            parts = (self._plain(base), self._plain(exponent))
            return UNIT, Operation("^", parts, real=not is_complex(t.type))
        n = int(exponent.real)
        c, node = self.read(base)
        if c == NOTHING and n < 0:
            return UNIT, Operation(f"^{n}", (Combination(()),))
        if c == NOTHING:
            return NOTHING, EMPTY
        raised = power(Const(*c), exponent)
        if not isinstance(raised, Const):
            c, raised, node = UNIT, Const(*UNIT), scaled(c, node)
        if 2 <= n <= _SHORT_POWER:
            again = [self.read(base)[1] if isinstance(node, Total) else node for _ in range(n - 1)]
            return (raised.real, raised.imag), product([node, *again])
        bases = node.parts if isinstance(node, Product) else (node,)
        parity = -1 if n % 2 else 1
        powers: list[Node] = [Operation(f"^{n}", (part,), parity, commutes=True) for part in bases]
        return (raised.real, raised.imag), product(powers)

    def _call(self, t: Call, name: str, args: Sequence[Term]) -> tuple[Coefficient, Node]:
        if not args:
            return UNIT, Factor((7, 0, 0, name), ((False, (), 1),))
        row = SCALAR_FUNCTIONS.get(name)
        if len(args) > 1:
            return UNIT, Operation(name, tuple(scaled(*self.read(a)) for a in args), 0, real=not is_complex(t.type))
        c, node = self.read(args[0])
        outside = UNIT
        if c == NOTHING and row is not None and row.parity and name not in ("cos", "cosh"):
            return NOTHING, EMPTY
        if name in ("real", "imag") and not c[1]:
            outside, c = c, UNIT
        inner = scaled(c, node)
        real = not is_complex(t.type)
        parity = row.parity_of(complex_=is_complex(args[0].type)) if row is not None else 0
        made = Operation(name, (inner,), parity, commutes=row is not None and row.commutes, real=real)
        if name in ("real", "imag", "abs", "abs2") and is_complex(args[0].type):
            other = Operation(name, (conjugated(inner),), parity, real=True)
            return outside, Either(((1, made), (-1 if name == "imag" else 1, other)))
        return outside, made

    def _condition(self, t: Delta | Indicator, left: Term, right: Term) -> Node:
        affine = all(is_integer_valued(u) for u in (left, right))
        if not affine or holds_entries(left, right):
            c, difference = self._combination([(UNIT, right), ((Fraction(-1), Fraction(0)), left)])
            name, parity = ("δ", 1) if isinstance(t, Delta) else ("≤", 0)
            moduli = sorted({d.name for d in domains_compared(left, right) if d.periodic})
            name += f" modulo {', '.join(moduli)}" if moduli and isinstance(t, Delta) and affine else ""
            return Operation(name, (scaled(c, difference),), parity, real=True)
        d = combined([(1, self._affine(right)), (-1, self._affine(left))])
        if isinstance(t, Indicator):
            return Factor((4, 0, 0, ""), ((False, (d,), 1),), moduli=(None,))
        periodic = {v.kind.domain for v in left.free | right.free if isinstance(v.kind, Index) and v.kind.domain}
        rings = sorted((r for r in periodic if r.periodic), key=lambda r: r.name)
        variants: tuple[Variant, ...] = ((False, (d,), 1), (False, (combined([(-1, d)]),), 1))
        return Factor((3, 0, 0, repr(rings)), variants, moduli=(rings[0] if len(rings) == 1 else None,))

    def _plain(self, t: Term) -> Node:
        c, node = self.read(t)
        return scaled(c, node)

    def _scalar(self, v: Var) -> Node:
        number = self.names.get(v, -v.uid)
        if isinstance(v.kind, Index):
            return self._integer(number)
        if not isinstance(v.kind, Number):
            return self._whole(v)
        if number >= 0:
            return Factor((6, 0, 0, ""), ((False, ((0, ((number, 1),)),), 1),), moduli=(None,))
        real = not v.kind.complex or any(s.conj and s.sign > 0 for s in self.symmetries.get(v, ()))
        return Factor((0, number, 0, ""), ((False, (), 1),), real=real)

    def _integer(self, number: int) -> Node:
        """An index in an arithmetic place."""
        variants: tuple[Variant, ...] = ((False, ((0, ((number, 1),)),), 1),)
        if number >= 0 and _is_symmetric(self.bound[number]):
            variants += ((False, ((0, ((number, -1),)),), -1),)
        return Factor((2, 0, 0, ""), variants, moduli=(None,))

    def _application(self, t: App) -> Node:
        kind = t.function.type
        assert isinstance(kind, Map), "only maps are applied"
        expressions = self._places(t, kind)
        if expressions is None:
            arguments = [self._argument(a, k) for a, k in zip(t.args, kind.params, strict=True)]
            return self._read_at(t, arguments, kind)
        f = t.function
        assert isinstance(f, Var), "a tensor, or a function of numbers"
        group = SlotGroup.of(kind, self.symmetries.get(f, ()), declared=f not in self.unused)
        variants: dict[Variant, None] = {}
        for places, sign, mirrored in group.images(expressions, combined):
            variants[mirrored, places, sign] = None
            if group.zero:
                variants[mirrored, places, -sign] = None
        moduli = tuple(map(_modulus, kind.params))
        head: Head = (0, self.names.get(f, -f.uid), 0, "")
        return Factor(head, tuple(variants), group.blocks, group.signs, moduli, group.real)

    def _read_at(self, t: App, arguments: Sequence[Node], kind: Map) -> Node:
        """An entry of a tensor at entries of arrays of integers, the least of its images; a value of another map."""
        f, real = t.function, not is_complex(t.type)
        plain = Operation("()", (self._whole(f), *arguments), real=real)
        if isinstance(f, Reduce) and (f.kind in TURNING or _is_of_real_values(f)):
            turned = Operation("()", (plain.parts[0], *arguments[::-1]), real=real)
            images = {SYMMETRIC: turned, HERMITIAN: conjugated(turned)}
            return Either(((1, plain), *((1, images[law]) for law in self.laws(f))))
        if not (isinstance(f, Var) and kind.is_tensor):
            return plain
        group = SlotGroup.of(kind, self.symmetries.get(f, ()), declared=f not in self.unused)
        moves = group.moves(_MOST_IMAGES)
        if moves is None or moves.order <= 1 or group.zero:
            return plain
        ways = []
        for image in moves.images(tuple(range(1, len(arguments) + 1)), False):
            if min(image.labels) < 0:
                continue  # an index that is reversed
            moved = Operation("()", (self._whole(f), *(arguments[n - 1] for n in image.labels)), real=real)
            ways.append((image.sign, conjugated(moved) if image.conj else moved))
        return Either(tuple(ways))

    def _places(self, t: App, kind: Map) -> tuple[Expression, ...] | None:
        """Where an entry of a tensor or of a function of real numbers is taken; None for other maps."""
        entries = isinstance(kind.result, Number) and all(isinstance(p, Index | Number) for p in kind.params)
        if not (isinstance(t.function, Var) and entries):
            return None
        try:
            return tuple(map(self._affine, t.args))
        except Unreadable:
            if kind.is_tensor and not holds_entries(*t.args):
                raise
            return None

    def _argument(self, t: Term, kind: Type) -> Node:
        if isinstance(t.type, Index) and isinstance(kind, Index) and not holds_entries(t):
            return Factor((5, 0, 0, ""), ((False, (self._affine(t),), 1),), moduli=(_modulus(kind),))
        return self._plain(t)

    def _affine(self, t: Term) -> Expression:
        match t:
            case Var():
                return 0, ((self.names.get(t, -t.uid), 1),)
            case Const() if t.is_integer:
                return int(t.real), ()
            case Sum() if t.counted is not None:
                # the index that it counts stands for a size: nothing else can hold it
                return 0, ((-size(t.counted).indices[0].uid, 1),)
            case Add(terms):
                return combined([(1, self._affine(u)) for u in terms])
            case Mul():
                c, u = split_coefficient(t)
                if c.is_integer and u != t:
                    return combined([(int(c.real), self._affine(u))])
        raise Unreadable

    def _whole(self, t: Term) -> Node:
        """What is no number: unknown maps, their derivatives, tuples, λ-terms as arguments."""
        match t:
            case Var() if not isinstance(t.kind, Number | Index):
                return Factor((8, self.names.get(t, -t.uid), 0, ""), ((False, (), 1),), real=not is_complex(t.kind))
            case Reduce("norm", Lam(params, Tuple((mark, body)))):
                # ‖x‖ is the root of a sum of squares, and is ‖−x‖ and ‖x'‖
                squares = Lam(params, Tuple((mark, call("abs2", body))))
                return Operation("norm", (self._whole(squares),), real=True)
            case Diff(kind, of) | Reduce(kind, of):
                # the determinant of a Hermitian matrix is real
                is_hermitian = isinstance(t, Reduce) and kind == "det" and HERMITIAN in self.laws(t)
                return Operation(kind, (self._whole(of),), real=is_hermitian or not is_complex(t.type))
            case Loop(_, _, _, step, start):
                return Operation(
                    f"loop {label(t)}", (self._whole(step), self._whole(start)), real=not is_complex(t.type)
                )
            case Let():
                raise Unreadable
            case Proj(item, of):
                return Operation(f"item {item}", (self._whole(of),), real=not is_complex(t.type))
            case Tuple(items):
                return Operation("tuple", tuple(map(self._whole, items)), real=not is_complex(t.type))
            case App():
                return self._application(t)
            case Lam(params, body):
                return self._lambda(params, body)
            case _ if isinstance(t.type, Number | Index):
                return self._plain(t)
            case _:
                raise Unreadable

    def _lambda(self, params: Sequence[Var], body: Term) -> Node:
        symbols = tuple(-LAMBDA - self.level * _WIDEST - n for n in range(len(params)))
        outer = dict(self.names)
        self.names.update(zip(params, symbols, strict=True))
        self.level += 1
        node = self._whole(body)
        self.level -= 1
        self.names = outer
        kinds = repr(tuple(p.kind for p in params))
        return Operation(f"λ{kinds}", (node,), commutes=True, real=not is_complex(body.type), binds=symbols)


def _by_signs(whole: Reduce, place: Term) -> Term:
    """An entry of u × v as Σ_jk ε(i, j, k) u(j) v(k), with a tensor ε that is known to be antisymmetric, no more."""
    (index,) = whole.indices
    j, k = fresh(index.name, index.kind), fresh(index.name, index.kind)
    vectors = (substitute(entry, {index: at}) for entry, at in ((whole.mark, j), (whole.body, k)))
    assert isinstance(index.kind, Index), "a vector has an index"
    return total((j, k), mul(apply(_signs(index.kind), place, j, k), *vectors))


@lru_cache(maxsize=64)
def _signs(slot: Index) -> Var:
    laws = (Symmetry.permutation((2, 1, 3), "neg"), Symmetry.permutation((2, 3, 1), "id"))
    return fresh("ε", Map((slot, slot, slot), REAL, laws))


def _is_plain(kind: Type) -> bool:
    """Whether it is an index that nothing stands for: on a ring or a lattice x may be spelled -y, or y - z."""
    domain = kind.domain if isinstance(kind, Index) else None
    return domain is not None and not (domain.periodic or domain.symmetric)


def _is_of_real_values(f: Reduce) -> bool:
    """Whether it is a matrix of eigenvectors and real numbers, so that it is Hermitian where the first one is."""
    return f.kind == "spectral" and not any(is_complex(k.type) for k in f.marks)


def _is_zero(f: Factor) -> bool:
    """Whether an entry is its own negative whatever its indices are, as A(i, i) for an antisymmetric A."""
    for block, flip in zip(f.blocks, f.signs, strict=True):
        if flip < 0 and any(len({es[s] for s in block}) < len(block) for _, es, _ in f.variants):
            return True
    return len(f.variants) > 1 and any((c, es, -s) in f.variants for c, es, s in f.variants)


def _modulus(kind: Type) -> Domain | None:
    return kind.domain if isinstance(kind, Index) and kind.domain and kind.domain.periodic else None


def _is_symmetric(kind: Type) -> bool:
    return isinstance(kind, Index) and kind.domain is not None and kind.domain.symmetric
