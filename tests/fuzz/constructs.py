"""The constructs that a program holds, by name: what the statistics count."""

from __future__ import annotations

from .kinds import Count, Function, Index, Integers, Law, Number, Range, Tensor, ranges_of
from .syntax import (
    Add,
    Affine,
    App,
    Block,
    Call,
    Compared,
    Conj,
    Constant,
    Definition,
    Delta,
    Derived,
    Expr,
    Indicator,
    Integral,
    Joined,
    Lam,
    Literal,
    Looked,
    Loop,
    Mul,
    Norm,
    Not,
    Power,
    Program,
    Reduced,
    Ref,
    Several,
    Size,
    Sum,
    Tuple,
    Var,
    Where,
    bound_by,
    children,
    walk,
)
from .walks import free, mentioned


def constructs(program: Program) -> set[str]:
    """Names of everything that stands in a program."""
    found = {f"asked: {program.mode}"}
    variables = [*program.params, *(v for e in walk(program.body) for v in bound_by(e))]
    for v in variables:
        found |= set(_of_type(v))
    if len(program.unknowns) > 1:
        found.add("several unknowns")
    if program.marked:
        found.add("derivative in the text")
    if isinstance(program.body.kind, Tensor):
        found.add("value is a tensor")
    for e in walk(program.body):
        found |= {*_of_expression(e), *_around_a_loop(e)}
    counts = {p.kind.range for p in program.params if isinstance(p.kind, Count)}
    for e in walk(program.body):
        if isinstance(e, Loop):
            found.add(_number_of_steps(e, counts))
    return found


def _of_type(v: Var) -> list[str]:
    kind = v.kind
    names = []
    for r in ranges_of(kind):
        names.append(
            {
                "ring": "periodic" if r.directions == 1 else "lattice",
                "plain": "size with a name" if r.named else "plain range",
            }.get(r.sort, r.sort)
        )
        if not r.contractable:
            names.append("contractable = false")
    match kind:
        case Integers():
            names.append("array of integers")
        case Count():
            names.append("T::Int")
        case Number(complex=c):
            names.append("complex number" if c else "real number")
        case Tensor(slots, c, space):
            names.append(f"{'complex' if c else 'real'} tensor of {len(slots)} slots")
            if space is not None:
                names.append(space.name if space.builtin else "declared space")
                names += ["positive"] if space.positive else []
                for law in space.laws if not space.builtin else ():
                    names.append(_law(law))
        case Function(params, result, linear):
            names.append(
                "linear map"
                if linear
                else f"function of {len(params)} to {'C' if getattr(result, 'complex', False) else 'R'}"
            )
    return names


def _law(law: object) -> str:
    assert isinstance(law, Law), "a law"
    if law.as_map:
        return "symmetry as a map"
    if any(c < 0 for row in law.rows for _, c in row):
        return ":inegc" if law.conj else ":ineg"
    return ":conj" if law.conj else ":neg" if law.sign < 0 else ":id"


def _of_expression(e: Expr) -> list[str]:
    match e:
        case Constant(name):
            return [name]
        case Call(name, _, piped):
            return [name, *(["▷"] if piped else [])]
        case Power():
            return [_of_power(e)]
        case Sum(indices, body):
            return _of_sum(indices, body)
        case Indicator(left, right, body):
            return _of_indicator(left, right, body)
        case App(function, args, brackets, _):
            return _of_entry(function, args, brackets)
        case Affine(terms) if any(isinstance(v, Looked) for _, v in terms):
            nested = any(_looks_up(a) for _, v in terms if isinstance(v, Looked) for a in v.args)
            return ["entry of integers", *(["J(K(e))"] if nested else [])]
        case Derived(how):
            return [f"{how} inside"]
        case Block(definitions, body):
            return _of_block(e, definitions, body)
        case Loop():
            return _of_loop(e)
    if isinstance(e, Where | Compared | Joined | Not | Reduced | Norm | Several | Size):
        return _of_newer(e)
    names = {Conj: "conj", Delta: "delta", Integral: "integral", Tuple: "tuple", Lam: "map"}
    return [names[type(e)]] if type(e) in names else []


def _of_newer(e: Expr) -> list[str]:
    """Conditions, reductions, functions of several numbers, sizes."""
    match e:
        case Where(_, _, otherwise):
            return ["where" if otherwise is None else "where with two values"]
        case Compared(sides, signs):
            return _of_comparison(sides, signs)
        case Joined(word):
            return [word]
        case Not():
            return ["not"]
        case Reduced(name, indices, _, condition):
            more = "vector" if name == "cross" else "weight" if e.weighted else "condition"
            guarded = [f"{name} with a {more}"] if condition is not None else []
            several = ["reduction over several"] if len(indices) > 1 else []
            return [name if name != "sum" else "guarded sum", *guarded, *several]
        case Several(name, args):
            return [name, *([f"{name} of three"] if name in ("max", "min") and len(args) > 2 else [])]
    return ["norm" if isinstance(e, Norm) else "size as number"]


def _of_comparison(sides: tuple[Expr, ...], signs: tuple[str, ...]) -> list[str]:
    whole = any(isinstance(u, Affine) and u.terms for u in sides)
    names = [f"{sign} of {'indices' if whole else 'reals'}" for sign in signs]
    names += ["chain of comparisons"] if len(signs) > 1 else []
    if whole and any(isinstance(u, Affine) and u.terms and u.bare is None and not _looks_up(u) for u in sides):
        names.append("index arithmetic in a condition")
    if whole and any(isinstance(u, Affine) and _looks_up(u) for u in sides):
        names.append("entry of integers in a condition")
    if sum(isinstance(u, Affine) and _looks_up(u) for u in sides) > 1:
        names.append("two entries of integers are compared")
    if any(isinstance(u, Size) for side in sides for u in walk(side)):
        names.append("size in a condition")
    return names


def _looks_up(e: Affine) -> bool:
    return any(isinstance(v, Looked) for _, v in e.terms)


def _of_power(e: Power) -> str:
    if not isinstance(e.exponent, Literal):
        return "unknown exponent"
    if e.exponent.value.denominator > 1:
        return "fractional power"
    return "negative power" if e.exponent.value < 0 else "integer power"


def _of_indicator(left: Expr, right: Expr, body: Expr) -> list[str]:
    names = [f"indicator of {'indices' if isinstance(left, Affine) and isinstance(right, Affine) else 'reals'}"]
    if any(
        isinstance(u, Power) or (isinstance(u, Call) and u.name in ("log", "sqrt", "log1p", "log2", "log10"))
        for u in walk(body)
    ):
        names.append("singular function under a guard")
    return names


def _of_entry(function: Expr, args: tuple[Expr, ...], brackets: bool) -> list[str]:
    names = ["brackets"] if brackets else []
    if isinstance(function.kind, Tensor):
        if any(isinstance(a, Affine) and a.terms and a.bare is None for a in args):
            names.append("index arithmetic")
            names += _beyond(function.kind, args)
        if any(isinstance(a, Affine) and not a.terms for a in args):
            names.append("number as index")
    return names


def _beyond(kind: Tensor, args: tuple[Expr, ...]) -> list[str]:
    """Arithmetic in a slot that would leave it without a condition."""
    pairs = [(a, r) for a, r in zip(args, kind.slots, strict=True) if isinstance(a, Affine) and r.sort == "plain"]
    # in a slot that has values to spare no condition is needed
    pairs = [(a, r) for a, r in pairs if all(isinstance(v.kind, Index) and v.kind.range is r for _, v in a.terms)]
    moved = [a for a, _ in pairs if a.terms and (a.constant or len(a.terms) > 1)]
    names = ["index arithmetic under a condition"] if any(not _looks_up(a) for a in moved) else []
    return names + (["J(e) + 1 under a condition"] if any(map(_looks_up, moved)) else [])


def _of_sum(indices: tuple[Var, ...], body: Expr) -> list[str]:
    names = ["sum"]
    if len(indices) > 1:
        names.append("sum over several")
    if any(isinstance(u, Sum) for u in walk(body)):
        names.append("nested sums")
    if any(i not in free(body) for i in indices):
        names.append("sum whose body has no index")
    if any(isinstance(u, Affine) for u in _numbers(body)):
        names.append("index as number")
    return names


def _of_loop(e: Loop) -> list[str]:
    kind = "numbers" if isinstance(e.states[0].kind, Number) else "tensors"
    names = ["loop", e.name, f"loop of {'tuples' if len(e.states) > 1 else kind}"]
    names += ["loop that stops early"] if e.stop is not None else []
    inside = list(walk(e.step))
    names += ["loop in a loop"] if any(isinstance(u, Loop) for u in inside) else []
    names += ["derivative in a loop"] if any(isinstance(u, Derived) for u in inside) else []
    moved = [a for u in inside if isinstance(u, App) for a in u.args if isinstance(a, Affine) and a.bare is None]
    names += ["x(t + 1) in a loop"] if any(v is e.time for a in moved for _, v in a.terms) else []
    return names


def _number_of_steps(e: Loop, counts: set[Range]) -> str:
    assert isinstance(e.time.kind, Index), "time is an index"
    r = e.time.kind.range
    if r.base is not None:
        return "T is a size less a number"
    return "T is an Int" if r in counts else "T is a size" if r.named else "T is a number"


def _around_a_loop(e: Expr) -> list[str]:
    """A loop that depends on the indices of a sum, or of a map."""
    if not isinstance(e, Sum | Reduced | Lam):
        return []
    own = {v for v in bound_by(e) if isinstance(v.kind, Index)}
    if not any(isinstance(u, Loop) and not own.isdisjoint(free(u)) for u in walk(e)):
        return []
    return ["loop in a map" if isinstance(e, Lam) else "loop in a sum"]


def _numbers(e: Expr) -> list[Expr]:
    """Index expressions that stand as numbers."""
    found = []
    for u in walk(e):
        if isinstance(u, Add | Mul | Power | Call):
            found += [c for c in children(u) if isinstance(c, Affine)]
    return found


def _of_block(e: Block, definitions: tuple[Expr, ...], body: Expr) -> list[str]:
    names = ["definition"]
    for d in definitions:
        assert isinstance(d, Definition), "a definition"
        if d.textual:
            names.append("abbreviation")
        if len(d.names) > 1:
            names.append("(a, b) = …")
        if isinstance(d.names[0].kind, Function):
            names.append("function of one's own")
        uses = sum(v in d.names for u in walk(e) if isinstance(u, Ref) for v in mentioned(u))
        names.append({0: "definition not used", 1: "definition used once"}.get(uses, "definition used twice"))
    return names
