"""A program as text, in one of the many ways to write it: spaces, brackets, fractions or decimals, types, line ends."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from .kinds import Count, Function, Index, Integers, Law, Number, Range, Space, Tensor, Type, ranges_of
from .naming import Names, anchored
from .syntax import (
    OF_MATRICES,
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
    Div,
    Expr,
    Indicator,
    Integral,
    Joined,
    Lam,
    Literal,
    Looked,
    Loop,
    Mul,
    Neg,
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
    walk,
)

# how tightly a text binds
ARROW, OR, AND, NOT, RELATION, PIPE, SUM, PRODUCT, UNARY, CARET, POSTFIX, ATOM = range(12)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_SHORT = {"<=": "≤", ">=": "≥", "!=": "≠"}
_ALIASES = {(1, False): "RV", (1, True): "CV", (2, False): "RM", (2, True): "CM"}
_FUNCTIONS = {
    ((False,), False): "RF",
    ((False,), True): "CF",
    ((False, False), False): "RO",
}


def text_of(program: Program, plain: bool = False) -> str:
    """The program's text; `plain` is the simplest way to write it, else the program's seed chooses one."""
    return Writer(program, plain).text()


def names_of(program: Program, plain: bool = False) -> dict[Var, str]:
    """What the parameters are called in that text."""
    return {v: name for v, name in Writer(program, plain).names.of.items() if v in program.params}


class Writer:
    """One way to write one program."""

    def __init__(self, program: Program, plain: bool) -> None:
        self.program = program
        self.plain = plain
        self.rng = Random(program.seed * 7919 + 1)
        self.sized: set[Range] = set()
        self.told = _kept_in_range(program)
        self.tight = not plain and self.rng.random() < 0.2
        self.parens = 0.0 if plain else self.rng.choice((0.0, 0.0, 0.05))
        self.typed = 0.0 if plain else self.rng.choice((0.0, 0.3, 0.8))
        self.lists: dict[Range, str] = {}
        self.domains = _declared_ranges(program)
        self.spaces = _declared_spaces(program)
        self.titles = self._titles()
        self.names = Names(program, self.rng, plain, self.titles.values())

    def odds(self, chance: float) -> bool:
        return not self.plain and self.rng.random() < chance

    # --- the whole --------------------------------------------------------------------------------------------------

    def text(self) -> str:
        groups = [self.group(g) for g in self.program.groups]
        body = self.expr(self.program.body, ARROW)
        if self.program.marked:
            word = "grad" if self.program.mode == "grad" else "pullback"
            groups, last = groups[:-1], f"{word}({groups[-1]} -> {body})"
            written = " -> ".join([*groups, last])
        else:
            line = "\n  " if self.odds(0.2) else " "
            written = f" ->{line}".join([*groups, body])
        heads = [self.domain(d) for d in self.domains] + [self.space(s) for s in self.spaces]
        comment = ["# " + self.rng.choice(("an energy", "∑ x'", "@domain end", "f(x) ->"))] if self.odds(0.05) else []
        return "\n".join([*comment, *heads, written])

    def group(self, params: tuple[Var, ...]) -> str:
        return "(" + self.comma().join(f"{self.names.of[p]}::{self.type(p.kind, True)}" for p in params) + ")"

    def comma(self) -> str:
        return "," if self.tight else ", "

    # --- declarations -----------------------------------------------------------------------------------------------

    def _titles(self) -> dict[object, str]:
        """Names of domains and spaces, which are apart from those of values."""
        titles: dict[object, str] = {}
        pool = ["Z", "BZ", "X", "K", "L", "Ring", "Q2", "Γ", "S", "D1", "E1"]
        if not self.plain:
            self.rng.shuffle(pool)
        for r in self.domains:
            titles[r] = pool.pop(0) if pool else f"Dom{len(titles)}"
        spaces = ["T", "V", "Skew", "W", "Kern", "Gauge", "Amp", "F3"]
        if not self.plain:
            self.rng.shuffle(spaces)
        for s in self.spaces:
            titles[s] = spaces.pop(0) if spaces else f"Space{len(titles)}"
        return titles

    def domain(self, r: Range) -> str:
        settings = ["base = I" if r.directions == 1 else f"base = ({', '.join('I' * r.directions)})"]
        match r.sort:
            case "ring":
                settings.append("periodic = true")
            case "symmetric":
                settings.append("symmetric = true")
            case "bounded":
                settings += [f"lower = {r.lower}", f"upper = {r.lower + r.sizes[0] - 1}"]
            case "list":
                settings += ["list = true", *(["symmetric = true"] if r.reflected else [])]
        if not r.contractable:
            settings.append("contractable = false")
        between = "; " if self.odds(0.5) or self.plain else "\n  "
        return f"@domain {self.titles[r]} begin {between.join(settings)} end"

    def space(self, s: Space) -> str:
        kind = next(p.kind for p in self.parameters() if isinstance(p.kind, Tensor | Function) and p.kind.space is s)
        if isinstance(kind, Function):
            return (
                f"@space {self.titles[s]} begin type = {self.arrow(kind.params, kind.result, False)}; linear = true end"
            )
        slots = self.comma().join(self.slot(r, True) for r in kind.slots)
        lone = "," if len(kind.slots) == 1 and self.odds(0.5) else ""
        settings = [f"type = ({slots}{lone}) -> {'C' if kind.complex else 'R'}"]
        if s.laws:
            laws = [self.law(law) for law in s.laws]
            settings.append(f"symmetries = ({', '.join(laws)}{',' if len(laws) == 1 else ''})")
        if s.positive:
            settings.append("positive = true")
        between = "; " if self.odds(0.5) or self.plain else "\n  "
        return f"@space {self.titles[s]} begin {between.join(settings)} end"

    def law(self, law: Law) -> str:
        if law.as_map:
            names = ["a", "b", "c", "d"][: len(law.rows)]
            args = ", ".join(_affine_text([(c, names[s]) for s, c in row]) for row in law.rows)
            entry = f"M({args})" + ("'" if law.conj else "")
            return f"M -> ({', '.join(names)}) -> {'-' if law.sign < 0 else ''}{entry}"
        flipped = [n + 1 for n, row in enumerate(law.rows) if row == ((n, -1),)]
        if flipped:
            slots = ", ".join(map(str, flipped)) + ("," if len(flipped) == 1 else "")
            return f"(({slots}), {':inegc' if law.conj else ':ineg'})"
        order = ", ".join(str(row[0][0] + 1) for row in law.rows)
        return f"(({order}), {':conj' if law.conj else ':neg' if law.sign < 0 else ':id'})"

    # --- types ------------------------------------------------------------------------------------------------------

    def type(self, kind: Type, anchoring: bool) -> str:
        match kind:
            case Number(complex=c):
                return "C" if c else "R"
            case Index(r):
                return self.slot(r, anchoring)
            case Tensor(slots, c, space):
                if space is not None and not space.builtin:
                    return self.titles[space]
                return self.tensor_type(slots, c, space, anchoring)
            case Function(params, result, _, space):
                if space is not None:
                    return self.titles[space]
                return self.function_type(params, result)
            case Integers(slots, entry):
                # its size may be that of no tensor
                own = self.titles[entry] if entry.declared else f"N{{{self.names.size(entry)}}}"
                return f"({self.comma().join(self.slot(r, anchoring) for r in slots)}) -> {own}"
            case Count():
                return "Int"
        raise AssertionError(f"no spelling for {kind}")

    def tensor_type(self, slots: tuple[Range, ...], c: bool, space: Space | None, anchoring: bool) -> str:
        alias = space.name if space else _ALIASES.get((len(slots), c))
        if space or (alias and all(r.sort == "plain" for r in slots) and not self.odds(0.15)):
            each = slots[:1] if space else slots
            wanted = [r for r in each if r.named]
            if (
                wanted
                and len(wanted) == len(each)
                and (any(r not in self.sized for r in each) or self.plain or self.odds(0.8))
            ):
                if anchoring:
                    self.sized.update(r for r in each if r not in self.told)
                return f"{alias}{{{self.comma().join(self.names.size(r) for r in each)}}}"
            if not any(r.named and r not in self.sized for r in each) or not anchoring or space:
                return str(alias)
        return f"({self.comma().join(self.slot(r, anchoring) for r in slots)}) -> {'C' if c else 'R'}"

    def slot(self, r: Range, anchoring: bool) -> str:
        if r.declared:
            return self.titles[r]
        if r.named and (r not in self.sized or not self.odds(0.2)):
            if anchoring and r not in self.told:
                self.sized.add(r)
            return f"N{{{self.names.size(r)}}}"
        return "N"

    def function_type(self, params: tuple[Type, ...], result: Type) -> str:
        if all(isinstance(p, Number) for p in params) and isinstance(result, Number):
            key = tuple(isinstance(p, Number) and p.complex for p in params), result.complex
            if key in _FUNCTIONS and not self.odds(0.1):
                return _FUNCTIONS[key]
        return self.arrow(params, result, True)

    def arrow(self, params: tuple[Type, ...], result: Type, anchoring: bool) -> str:
        def inner(k: Type) -> str:
            text = self.type(k, anchoring)
            return f"({text})" if "->" in text and not anchoring else text

        texts = [inner(p) for p in params]
        return f"({self.comma().join(texts)}) -> {self.type(result, anchoring)}"

    # --- expressions ------------------------------------------------------------------------------------------------

    def expr(self, e: Expr, level: int) -> str:
        text, own = self.bare(e)
        if own < level or (self.odds(self.parens) and not isinstance(e, Lam | Tuple | Ref)):
            return f"({text})"
        return text

    def bare(self, e: Expr) -> tuple[str, int]:
        match e:
            case Literal(value):
                return self.literal(value)
            case Constant(name):
                return name, ATOM
            case Ref(var):
                return self.names.of[var], ATOM
            case Affine():
                return self.affine(e)
            case Add(terms):
                return self.addition(terms), SUM
            case Mul(factors):
                star = self.operator("*")
                return star.join(self.expr(f, UNARY) for f in factors), PRODUCT
            case Div(top, below):
                return f"{self.expr(top, PRODUCT)}{self.operator('/')}{self.expr(below, UNARY)}", PRODUCT
            case Neg(of):
                return f"{'−' if self.odds(0.02) else '-'}{self.expr(of, UNARY)}", UNARY
            case Power(base, exponent):
                return f"{self.expr(base, POSTFIX)}^{self.expr(exponent, UNARY)}", CARET
            case Conj(of):
                if self.odds(0.2):
                    return f"conj({self.expr(of, ARROW)})", ATOM
                return f"{self.expr(of, POSTFIX)}'", POSTFIX
            case Call(name, of, piped):
                if piped:
                    return f"{self.expr(of, SUM)} ▷ {name}", PIPE
                return f"{name}({self.expr(of, ARROW)})", ATOM
            case _:
                return self.binder(e)

    def binder(self, e: Expr) -> tuple[str, int]:
        match e:
            case Sum(indices, body):
                word = "∑" if self.odds(0.2) else "sum"
                names = [self.index(i, (body,)) for i in indices]
                listed = names[0] if len(names) == 1 else f"({self.comma().join(names)})"
                return f"{word}({listed}{self.comma()}{self.expr(body, ARROW)})", ATOM
            case Indicator(left, right, body) if self.odds(0.5):
                sides, sign = [self.expr(x, SUM) for x in (left, right)], "<="
                if self.odds(0.3):
                    sides, sign = sides[::-1], ">="
                return f"where({sides[0]} {sign} {sides[1]}{self.comma()}{self.expr(body, ARROW)})", ATOM
            case Delta(left, right, body) | Indicator(left, right, body):
                word = "delta" if isinstance(e, Delta) else "indicator"
                return f"{word}({self.comma().join(self.expr(x, ARROW) for x in (left, right, body))})", ATOM
            case Integral(var, slope, at, body):
                return self.integral(var, slope, at, body), ATOM
            case Lam(params, body):
                return self.lam(params, body), ARROW
            case Tuple(items):
                return f"({self.comma().join(self.expr(item, ARROW) for item in items)})", ATOM
            case App():
                return self.application(e)
            case Derived(how, of, which):
                second = f"{self.comma()}{which}" if which else ""
                return f"{how}({self.expr(of, ARROW)}{second})", ATOM
            case Block(definitions, body):
                return self.block(definitions, body), ATOM
            case Compared() | Joined() | Not():
                return self.condition(e)
            case Reduced():
                return self.reduction(e), ATOM
            case Loop():
                return self.loop(e), ATOM
        return self.function_of_several(e), ATOM

    def condition(self, e: Expr) -> tuple[str, int]:
        """A condition: a chain may be turned around."""
        match e:
            case Not(of):
                return f"not {self.expr(of, NOT)}", NOT
            case Joined(word, items):
                level = AND if word == "and" else OR
                return f" {word} ".join(self.expr(item, level + 1) for item in items), level
            case Compared(sides, signs):
                texts = [self.expr(s, PIPE) for s in sides]
                if self.odds(0.1):
                    texts, signs = texts[::-1], tuple(_TURNED[s] for s in reversed(signs))
                text = texts[0]
                for sign, side in zip(signs, texts[1:], strict=True):
                    text += self.operator(_SHORT.get(sign, sign) if self.odds(0.1) else sign) + side
                return text, RELATION
        raise AssertionError(f"{type(e).__name__} is no condition")

    def reduction(self, e: Reduced) -> str:
        parts = (e.body,) if e.condition is None else (e.body, e.condition)
        names = [self.index(i, parts) for i in e.indices]
        listed = names[0] if len(names) == 1 else f"({self.comma().join(names)})"
        if e.name in OF_MATRICES:
            return f"{e.name}({listed} -> {self.expr(e.body, ARROW)})"
        if e.name == "cross":
            return f"cross({self.comma().join(f'{listed} -> {self.expr(v, ARROW)}' for v in parts[::-1])})"
        condition = [] if e.condition is None else [self.expr(e.condition, ARROW)]
        word = "∑" if e.name == "sum" and self.odds(0.2) else e.name
        return f"{word}({self.comma().join([listed, *condition, self.expr(e.body, ARROW)])})"

    def loop(self, e: Loop) -> str:
        names = [self.names.of[s] for s in e.states]
        several = len(names) > 1
        state = f"({self.comma().join(names)})" if several else names[0]
        starts = [self.expr(s, ARROW) for s in e.starts]
        start = f"({self.comma().join(starts)})" if several else starts[0]
        step = f"({state}{self.comma()}{self.names.of[e.time]}) -> {self.expr(e.step, ARROW)}"
        stop = [f"{state} -> {self.expr(e.stop, ARROW)}"] if e.stop is not None else []
        return f"{e.name}({self.comma().join([step, start, self.steps(e.time), *stop])})"

    def steps(self, time: Var) -> str:
        """The number of steps: of a literal, a size, or a size and a number."""
        assert isinstance(time.kind, Index), "time is an index"
        r = time.kind.range
        base = r.base or r
        if base not in self.names.sizes and not base.named:
            return str(r.count)
        more = f"{self.operator('+' if r.more > 0 else '-')}{abs(r.more)}" if r.more else ""
        return self.names.size(base) + more

    def function_of_several(self, e: Expr) -> str:
        """A function whose arguments are written one after another."""
        match e:
            case Where(condition, body, otherwise):
                name, args = "where", [condition, body, *([otherwise] if otherwise is not None else [])]
            case Several(name, given):
                args = list(given)
            case Norm(of):
                name, args = "norm", [of]
            case Size(of):
                assert isinstance(of.kind, Index), "an index"
                r = of.kind.range
                return f"size({self.titles[r]})" if r.declared else self.names.size(r)
            case _:
                raise AssertionError(f"no spelling for {type(e).__name__}")
        return f"{name}({self.comma().join(self.expr(a, ARROW) for a in args)})"

    def application(self, e: App) -> tuple[str, int]:
        args = self.comma().join(self.expr(a, ARROW) for a in e.args)
        if e.piped and len(e.args) == 1:
            return f"{self.expr(e.args[0], SUM)} ▷ {self.expr(e.function, SUM)}", PIPE
        left, right = "[]" if e.brackets else "()"
        return f"{self.expr(e.function, POSTFIX)}{left}{args}{right}", POSTFIX

    def operator(self, sign: str) -> str:
        return sign if self.tight or self.odds(0.1) else f" {sign} "

    def addition(self, terms: tuple[Expr, ...]) -> str:
        text = self.expr(terms[0], PRODUCT)
        for t in terms[1:]:
            if isinstance(t, Neg):
                text += self.operator("-") + self.expr(t.of, PRODUCT if not isinstance(t.of, Neg) else ATOM)
            else:
                text += self.operator("+") + self.expr(t, PRODUCT)
        return text

    def literal(self, value: Fraction) -> tuple[str, int]:
        if value.denominator == 1:
            return (str(value), ATOM) if value >= 0 else (str(value), UNARY)
        decimal = Fraction(str(float(value))) == value and not self.plain
        if decimal and self.odds(0.5):
            return f"{float(value)}", ATOM
        return f"{value.numerator}/{value.denominator}", PRODUCT

    def affine(self, e: Affine) -> tuple[str, int]:
        named = [(c, self.entry(v) if isinstance(v, Looked) else self.names.of[v]) for c, v in e.terms]
        named += [(1, self.expr(e.first, ATOM))] if e.first is not None else []
        text = _affine_text(named, e.constant)
        if e.bare is not None:
            return text, ATOM
        return text, SUM if len(named) + bool(e.constant) > 1 else UNARY if text.isdigit() else SUM

    def entry(self, v: Looked) -> str:
        assert v.array is not None, "an array"
        return f"{self.names.of[v.array]}({self.comma().join(self.affine(a)[0] for a in v.args)})"

    def index(self, i: Var, body: tuple[Expr, ...]) -> str:
        """An index where it is bound: with its type if nothing else tells it."""
        assert isinstance(i.kind, Index), "an index"
        name, r = self.names.of[i], i.kind.range
        free = anchored(i, body)
        if free and not self.odds(self.typed):
            return name
        if r.declared:
            return f"{name}::{self.titles[r]}"
        if r.named and (not free or self.odds(0.7)):
            return f"{name}::N{{{self.names.size(r)}}}"
        return f"{name}::N"

    def lam(self, params: tuple[Var, ...], body: Expr) -> str:
        listed = [
            self.index(p, (body,)) if isinstance(p.kind, Index) else f"{self.names.of[p]}::{self.type(p.kind, False)}"
            for p in params
        ]
        head = (
            listed[0]
            if len(listed) == 1 and "::" not in listed[0] and not self.odds(0.3)
            else f"({self.comma().join(listed)})"
        )
        return f"{head} -> {self.expr(body, ARROW)}"

    def integral(self, var: Var, slope: Fraction, at: Expr, body: Expr) -> str:
        name = self.names.of[var]
        moved = name if slope == 1 else f"{self.literal(slope)[0]} * {name}"
        sides = [moved, self.expr(at, ARROW)]
        if self.odds(0.4):
            sides.reverse()
        return f"sum({name}::R, delta({sides[0]}, {sides[1]}, {self.expr(body, ARROW)}))"

    def block(self, definitions: tuple[Definition, ...], body: Expr) -> str:
        between = "\n" if self.odds(0.7) else "; "
        lines = []
        for d in definitions:
            names = (
                self.names.of[d.names[0]]
                if len(d.names) == 1
                else f"({self.comma().join(self.names.of[v] for v in d.names)})"
            )
            lines.append(f"{names} {':=' if d.textual else '='} {self.expr(d.value, ARROW)}")
        lines.append(self.expr(body, ARROW))
        word = "let" if self.odds(0.2) else "begin"
        return (
            f"{word}{between if between != '; ' else ' '}{between.join(lines)}{between if between != '; ' else ' '}end"
        )

    def parameters(self) -> list[Var]:
        return _parameters(self.program)


def _affine_text(terms: list[tuple[int, str]], constant: int = 0) -> str:
    text = ""
    for c, name in terms:
        size = name if abs(c) == 1 else f"{abs(c)} * {name}"
        text += (" - " if c < 0 else " + ") + size if text else ("-" if c < 0 else "") + size
    if constant or not text:
        text += f" {'-' if constant < 0 else '+'} {abs(constant)}" if text else str(constant)
    return text


def _parameters(program: Program) -> list[Var]:
    """Everything that has a written type: parameters of the program and of the functions in it."""
    bound = [v for e in walk(program.body) for v in ((e.of,) if isinstance(e, Size) else bound_by(e))]
    return [*program.params, *bound]


def _kept_in_range(program: Program) -> set[Range]:
    """The ranges of slots whose arithmetic a condition keeps in range: no index alone says there which size it is."""
    found: set[Range] = set()
    for e in walk(program.body):
        if isinstance(e, App) and isinstance(e.function.kind, Tensor):
            pairs = zip(e.args, e.function.kind.slots, strict=True)
            found.update(r for a, r in pairs if isinstance(a, Affine) and a.terms and a.bare is None and not r.declared)
    return found


def _declared_ranges(program: Program) -> list[Range]:
    found: dict[Range, None] = {}
    for v in _parameters(program):
        for r in ranges_of(v.kind):
            if r.declared:
                found[r] = None
    return list(found)


def _declared_spaces(program: Program) -> list[Space]:
    found: dict[Space, None] = {}
    for v in _parameters(program):
        kind = v.kind
        if isinstance(kind, Tensor | Function) and kind.space is not None and not kind.space.builtin:
            found[kind.space] = None
    return list(found)
