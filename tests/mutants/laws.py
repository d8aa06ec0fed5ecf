"""Mutants of the laws in `rules/`: each law is left out, has a wrong right side, and loses each of its conditions.

A law is called by its name (`:name "…"`) where it has one, else by its left side. What is wrong about a right side is
general: a minus sign, a conjugate, a δ or a map over a multiset is lost, or two factors of a matrix product are
exchanged. A condition is a premise that says nothing of what the left side is made of: `(!= v w)`, `(kind v "dense")`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from tests.mutants.mutant import ROOT, Mutant, source

TOKEN = re.compile(r'"[^"]*"|;[^\n]*|[()]|[^\s()";]+')

ALONE = {
    "matrix": ("tests/notation/test_matrix_laws.py", "tests/notation/test_tensor_laws.py"),
    "index": ("tests/simplify/test_index_laws.py",),
    "contract": ("tests/simplify/test_contract_laws.py",),
}
"""The tests of each law by itself, where they are not in """
TERMS = ("tests/simplify/test_laws.py",)
DIRECT = {
    "matrix": (
        "tests/notation/test_matrix_programs.py",
        "tests/notation/test_matrix.py",
        "tests/golden",
        "tests/paper",
    ),
}
"""The tests of a family of laws, and for all others: """
GENERAL = ("tests/simplify/test_contract.py", "tests/golden", "tests/paper", "tests/simplify", "tests/test_api.py")


@dataclass(frozen=True, slots=True)
class Form:
    """An S-expression: an atom, or a list of forms; `start` and `end` are its place in the text."""

    start: int
    end: int
    atom: str = ""
    items: tuple[Form, ...] = ()

    @property
    def head(self) -> str:
        return self.items[0].atom if self.items else ""

    def within(self) -> Iterator[Form]:
        """The form and all forms in it."""
        yield self
        for item in self.items:
            yield from item.within()


def forms(text: str) -> list[Form]:
    """The forms of a file of laws, comments left out.

    >>> [form.head for form in forms("(a (b c)) ; d\\n(e)")]
    ['a', 'e']
    """
    stack: list[tuple[int, list[Form]]] = [(0, [])]
    for found in TOKEN.finditer(text):
        token = found.group()
        if token == "(":
            stack.append((found.start(), []))
        elif token == ")":
            start, items = stack.pop()
            stack[-1][1].append(Form(start, found.end(), items=tuple(items)))
        elif not token.startswith(";"):
            stack[-1][1].append(Form(found.start(), found.end(), token))
    ((_, top),) = stack
    return top


def mutants() -> Iterator[Mutant]:
    """All mutants of all laws."""
    for path in sorted((ROOT / "rules").glob("*.egg")):
        family, text = path.stem, source(f"rules/{path.name}")
        tests = (*ALONE.get(family, TERMS), *DIRECT.get(family, GENERAL))
        for law in forms(text):
            if law.head in ("rewrite", "rule"):
                name = f"{family}: {called(law, text)}"
                for fault, changed in faults(law, text):
                    yield Mutant(f"{name} [{fault}]", f"rules/{path.name}", changed, tests)


def called(law: Form, text: str) -> str:
    """The name of a law: its own, or its left side."""
    after = [b.atom for a, b in zip(law.items, law.items[1:], strict=False) if a.atom == ":name"]
    if after:
        return after[0].strip('"')
    left = law.items[1]
    return " ".join(text[left.start : left.end].split())


def faults(law: Form, text: str) -> Iterator[tuple[str, str]]:
    """What is wrong with each mutant of a law, and the file's text with that fault."""
    yield "left out", text[: law.start] + text[law.end :]
    made = [law.items[2]] if law.head == "rewrite" else [a for a in law.items[2].items if a.head != "subsume"]
    for form in chain.from_iterable(action.within() for action in made):
        wrong = _wrong(form, text)
        if wrong is not None:
            yield "wrong", text[: form.start] + wrong + text[form.end :]
            break
    for condition in _conditions(law):
        spelled = " ".join(text[condition.start : condition.end].split())
        yield f"without {spelled}", text[: condition.start] + text[condition.end :]


def _wrong(form: Form, text: str) -> str | None:
    """The text of a form of the right side that means something else, for a form that has one."""

    def spelled(part: Form) -> str:
        return text[part.start : part.end]

    match form.head, form.items:
        case "bigint", (_, Form(atom="-1")):
            return "(bigint 1)"
        case "unstable-multiset-map" | "unstable-multiset-filter" | "unstable-vec-map", (_, _, over):
            return spelled(over)
        case "Conj" | "Transpose" | "Adjoint" | "Conjugate" | "Subst" | "Delta" | "Sum" | "Call", (*_, last):
            return spelled(last)
        case "Where" | "Over" | "Ordered" | "Met", (*_, last):
            return spelled(last)
        case "multiset-remove", (_, items, _):
            return spelled(items)
        case "Product" | "Power" | "KhatriRao" | "Kronecker", (head, first, second):
            return f"({head.atom} {spelled(second)} {spelled(first)})" if spelled(first) != spelled(second) else None
        case "Contraction" | "Applied", (_, _, second):
            return spelled(second)
        case _:
            return None


VARIABLE = re.compile(r"[a-z][\w-]*")
COMPUTED = re.compile(r"multiset-.*|set-.*|map-.*|unstable-.*|big.*|abs|denom|[-+*/&|<>]|!=")
"""Heads of what is computed from known values, rather than looked up."""


def _conditions(law: Form) -> list[Form]:
    """The premises that restrict a law: without one, it still has its left side, and every variable is bound."""
    if law.head == "rewrite":
        marks = [b for a, b in zip(law.items, law.items[1:], strict=False) if a.atom == ":when"]
        return [condition for mark in marks for condition in mark.items]
    premises = law.items[1].items
    known = set().union(*map(_variables, premises))
    found = []
    for premise in premises:
        others = [p for p in premises if p is not premise]
        used = _variables(law.items[2]).union(*map(_variables, others))
        if not _is_left_side(premise) and used & known <= _bound(others):
            found.append(premise)
    return found


def _is_left_side(premise: Form) -> bool:
    """Whether a premise says what a term is, or is made of: `(= x (Sum vs e))`, `(= i (part es e))`."""
    return premise.head == "=" and any(
        side.head[:1].isupper() or side.head in ("part", "addend") for side in premise.items[1:]
    )


def _variables(form: Form) -> set[str]:
    """The variables in a form: a head is none."""
    if not form.items:
        return {form.atom} if VARIABLE.fullmatch(form.atom) else set()
    items = form.items[1:] if form.items[0].atom else form.items
    return set().union(*map(_variables, items))


def _bound(premises: Sequence[Form]) -> set[str]:
    """The variables that some premises bind: those of terms and facts, and what is computed from them."""
    bound: set[str] = set()
    before = None
    while before != bound:
        before = set(bound)
        for premise in premises:
            sides = premise.items[1:] if premise.head == "=" else (premise,)
            for side in sides:
                if side.items and not COMPUTED.fullmatch(side.head):
                    bound |= _variables(side)
            if any(_variables(side) <= bound for side in sides):
                bound |= {side.atom for side in sides if VARIABLE.fullmatch(side.atom)}
    return bound
