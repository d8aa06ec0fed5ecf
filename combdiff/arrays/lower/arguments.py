"""The arguments of generated code: arrays and numbers, functions, lists of offsets, sizes that no array shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from combdiff.arrays import ops
from combdiff.arrays.lower.argument_names import ArgumentNames
from combdiff.arrays.lower.arrays import Arrays
from combdiff.arrays.lower.components import Components, offsets_kind
from combdiff.arrays.lower.signature import slots
from combdiff.arrays.plan import Argument, Step, ordered, plans_within, unseen_sizes
from combdiff.canon.moves import Move, MoveGroup
from combdiff.terms.terms import Diff, Term, Var
from combdiff.terms.types import Domain, Index, Map, Product, Type, interval_of_rule, is_complex


class Parameters:
    """The arguments of one lowering, and the steps that stand for them; `of_equation` is given sizes by its program."""

    def __init__(self, arrays: Arrays, parts: Components, names: ArgumentNames, of_equation: bool = False) -> None:
        self.arrays = arrays
        self.of_equation = of_equation
        self.names = names
        self.lists = {domain: name for name, domain in names.lists.items()}
        self.known: dict[Term, Step] = {}
        for domain, var in parts.offsets.items():
            self._tensor(var, self.offsets(domain))
        for domain, var in parts.opposite.items():
            step = arrays.builder.step(ops.Opposite(), (self.offsets(domain),), domain.axes)
            arrays.names[step] = "opposite"
            self._tensor(var, step)

    def _tensor(self, var: Var, step: Step) -> None:
        self.known[var] = self.arrays.integer_tensors[var] = step

    def offsets(self, domain: Domain) -> Step:
        """The list of offsets of a domain."""
        return self.arrays.builder.step(ops.Input(self.lists[domain]), (), slots(offsets_kind(domain)))

    def take(self, var: Var) -> Argument:
        """The argument for a parameter of the program."""
        of_integers = isinstance(var.kind, Map) and isinstance(var.kind.result, Index)
        if isinstance(var.kind, Map) and not (var.kind.is_tensor or of_integers):
            return Argument(var.name, var.kind, callable=True)
        step = self.arrays.builder.step(ops.Input(var.name), (), slots(var.kind), is_complex(var.kind))
        self.known[var] = step
        if of_integers:
            # a list of offsets, which an equation is given
            self.arrays.integer_tensors[var] = step
        if isinstance(var.kind, Map) and step.rank == len(var.kind.params):
            group = MoveGroup.exchanging(var.kind)
            # the transpose of a matrix costs nothing, so that only what is as plain is worth another image
            if group.order > 1 and (step.rank > 2 or Move((2, 1)) in group.moves):
                self.arrays.symmetries[step] = group
        return Argument(var.name, var.kind, step=step)

    def used(self, found: Sequence[Argument], outputs: Collection[Step]) -> list[Argument]:
        """What generated code takes: the arrays and functions `found`, then lists of offsets, then sizes."""
        steps = ordered(outputs)
        asked, given = _sizes_asked(steps, found), {a.step for a in found}
        lists = [
            Argument(name, offsets_kind(domain), step=self.offsets(domain), offsets=domain)
            for domain, name in self.lists.items()
            if self.offsets(domain) not in given
            and (self.offsets(domain) in steps or (domain.axes[0] in asked and not self.of_equation))
        ]
        sizes = [Argument(self.names.size(d), Index(d)) for d in _sizes_asked(steps, [*found, *lists])]
        return [*found, *lists, *sizes]


def _sizes_asked(steps: Sequence[Step], found: Sequence[Argument]) -> list[Domain]:
    """The domains whose sizes no array among the arguments shows, those that equations ask for among them."""
    shown = {part for a in found if a.step is not None for d in a.step.domains for part in d.measured}
    inner = [a.kind for plan in plans_within(steps) for a in plan.arguments]
    asked = [kind.domain for kind in inner if isinstance(kind, Index) and kind.domain is not None]
    return list(dict.fromkeys([*unseen_sizes(steps, found), *(d for d in asked if d not in shown)]))


def derivative(name: str, head: Diff, names: ArgumentNames) -> Argument:
    """The argument for a derivative, an adjoint or an inverse of a function of the user."""
    assert isinstance(head.type, Map), "what is made of a function is one"
    return Argument(name, head.type, callable=True, made=(head.kind, names.of(head.of)))


def argument_names(arguments: Iterable[Argument]) -> str:
    """The names of arguments in order, for messages."""
    return ", ".join(a.name for a in arguments)


def described_derivative(argument: Argument) -> str:
    """What a derivative or an adjoint is, where it is missing; one of several numbers is a tuple.

    >>> from combdiff.terms.types import REAL
    >>> described_derivative(Argument("grad_g", Map((REAL, REAL), REAL), callable=True, made=("grad", "g")))
    '; grad_g(x, y) is the derivative of g at (x, y), a tuple of those by x, y'
    """
    made, of = argument.made or ("", "")
    if interval_of_rule(argument.kind) is not None:
        return f"; {argument.name} is a quadrature rule, such as cd.quadrature.gauss(20), or (nodes, weights)"
    if made not in _TOLD:
        return ""
    letters = _letters(argument)
    at = [letter for letter in letters if letter != "k"] or ["x"]
    where, each = (at[0], "") if len(at) == 1 else (f"({', '.join(at)})", f", a tuple of those by {', '.join(at)}")
    return _TOLD[made].format(argument.name, of, ", ".join(letters), where) + each


def _letters(argument: Argument) -> list[str]:
    """What a function of the user is given: x, y, …, and the cotangent k of a pullback."""
    assert isinstance(argument.kind, Map), "a function"
    last = ["k"] if argument.made and argument.made[0] in ("pullback", "adjoint") else []
    return [*"xyzuvw"[: len(argument.kind.params) - len(last)], *last]


_TOLD = {
    "adjoint": "; {0}(k) is such that Re⟨{0}(k), x⟩ = Re⟨k, {1}(x)⟩ for all x",
    "pullback": "; {0}({2}) is the derivative of {1} at {3}, transposed, times k",
    "grad": "; {0}({2}) is the derivative of {1} at {3}",
}


def called(name: str, argument: Argument, names: Mapping[str, str]) -> str:
    """How a function of the user is called, in words; `names` are those of the arguments in the code."""
    kind, (made, of) = argument.kind, argument.made or ("", "")
    if not isinstance(kind, Map):
        return f"{name}(…)"
    of = names.get(of, of)
    if made == "adjoint":
        return f"{name}(k), with Re⟨{name}(k), x⟩ = Re⟨k, {of}(x)⟩"
    on_numbers = not any(isinstance(p, Map) for p in kind.params)
    if made == "solution":
        return f"{name}(y), the solution of {of} = y; by Newton's method if not given"
    what = f", the {_MADE[made]} of {of}" if made and name != f"{made}_{of}" else ""
    return f"{name}({', '.join(_letters(argument))}){what}" + (", on whole arrays of numbers" if on_numbers else "")


def grouped(kind: Type, given: Sequence[str]) -> str:
    """What a function of this type is given, as it is written: items of tuples stand in parentheses.

    >>> from combdiff.terms.types import REAL
    >>> grouped(Map((REAL, Product((REAL, REAL))), REAL), ["x", "a", "b"])
    'x, (a, b)'
    """
    rest = iter(given)

    def written(p: Type) -> str:
        return f"({', '.join(map(written, p.items))})" if isinstance(p, Product) else next(rest)

    assert isinstance(kind, Map), "functions are called"
    return ", ".join(map(written, kind.params))


_MADE = {"grad": "derivative", "pullback": "pullback", "inverse": "inverse"}


def described_offsets(domain: Domain) -> str:
    """What a list of offsets is, in words."""
    columns = "" if domain.directions == 1 else f" with {domain.directions} columns"
    return f"the offsets of the domain {domain.name}, an integer array{columns}, one row an offset"
