"""What generated code takes: arrays and numbers, the user's functions, lists of offsets, sizes that no array shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from combdiff.codegen.arrays import Arrays
from combdiff.codegen.layouts import exchanges
from combdiff.codegen.plan import Argument, Step, ordered, unseen_sizes
from combdiff.codegen.signature import slots
from combdiff.language.anchors import domains_of
from combdiff.language.components import Components, offsets_kind
from combdiff.language.terms import Term, Var, bound_by, subterms
from combdiff.language.types import Domain, Map, is_complex


def lists_in(term: Term) -> dict[str, Domain]:
    """The lists of offsets of a program, by the names under which generated code takes them.

    A list is called what its domain is, with an ending where an argument has that name already.
    """
    variables = [v for u in subterms(term) for v in (*bound_by(u), *([u] if isinstance(u, Var) else []))]
    listed = dict.fromkeys(d for v in variables for d in domains_of(v.kind) if d.listed)
    taken = {v.name for v in variables if isinstance(v.kind, Map)}
    found: dict[str, Domain] = {}
    for domain in listed:
        name = domain.name
        while name in taken:
            name = f"{name}_offsets"
        found[name] = domain
    return found


class Parameters:
    """The arguments of one lowering, and the steps that stand for them."""

    def __init__(self, arrays: Arrays, parts: Components, lists: Mapping[str, Domain]) -> None:
        self.arrays = arrays
        self.names = {domain: name for name, domain in lists.items()}
        self.known: dict[Term, Step] = {}
        for domain, var in parts.offsets.items():
            self._tensor(var, self.offsets(domain))
        for domain, var in parts.opposite.items():
            step = arrays.builder.step("opposite", (self.offsets(domain),), None, domain.axes)
            arrays.names[step] = "opposite"
            self._tensor(var, step)

    def _tensor(self, var: Var, step: Step) -> None:
        self.known[var] = self.arrays.integer_tensors[var] = step

    def offsets(self, domain: Domain) -> Step:
        """The list of offsets of a domain."""
        return self.arrays.builder.step("input", (), self.names[domain], slots(offsets_kind(domain)))

    def take(self, var: Var) -> Argument:
        """The argument for a parameter of the program."""
        if isinstance(var.kind, Map) and not var.kind.is_tensor:
            return Argument(var.name, var.kind, callable=True)
        step = self.arrays.builder.step("input", (), var.name, slots(var.kind), is_complex(var.kind))
        self.known[var] = step
        if isinstance(var.kind, Map) and step.rank == len(var.kind.params):
            # the transpose of a matrix costs nothing, so that only what is as plain is worth another image
            images = [s for s in exchanges(var.kind) if step.rank > 2 or (s.sign > 0 and not s.conj)]
            self.arrays.symmetries[step] = tuple(images)
        return Argument(var.name, var.kind, step=step)

    def used(self, found: Sequence[Argument], outputs: Collection[Step]) -> list[Argument]:
        """What generated code takes: the arrays and functions `found`, then lists of offsets, then sizes."""
        steps = ordered(outputs)
        asked = {a.kind for a in unseen_sizes(steps, found)}
        lists = [
            Argument(name, offsets_kind(domain), step=self.offsets(domain), offsets=domain)
            for domain, name in self.names.items()
            if self.offsets(domain) in steps or offsets_kind(domain).params[0] in asked
        ]
        return [*found, *lists, *unseen_sizes(steps, [*found, *lists])]


def argument_names(arguments: Iterable[Argument]) -> str:
    """The names of arguments in order, for messages."""
    return ", ".join(a.name for a in arguments)


def told(argument: Argument) -> str:
    """What a derivative or an adjoint is, where it is missing."""
    for kind, text in _TOLD.items():
        if argument.callable and argument.name.startswith(kind):
            return text.format(argument.name, argument.name.removeprefix(kind))
    return ""


_TOLD = {
    "adjoint_": "; {0}(k) is such that Re⟨{0}(k), x⟩ = Re⟨k, {1}(x)⟩ for all x",
    "pullback_": "; {0}(x, k) is the derivative of {1} at x, transposed, times k",
    "grad_": "; {0}(x) is the derivative of {1} at x",
}


def described_offsets(domain: Domain) -> str:
    """What a list of offsets is, in words."""
    columns = "" if domain.directions == 1 else f" with {domain.directions} columns"
    return f"the offsets of the domain {domain.name}, an integer array{columns}, one row an offset"
