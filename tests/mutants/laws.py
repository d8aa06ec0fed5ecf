"""Mutants of the laws in `rules/`: each law is left out, has a wrong right side, and loses each of its conditions.

A law is called by its name (`:name "…"`) where it has one, else by its left side. What is wrong about a right side is
general: a minus sign, a conjugate, a δ or a map over a multiset is lost, or two factors of a matrix product are
exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.mutants.mutant import ROOT, Mutant, source

TOKEN = re.compile(r'"[^"]*"|;[^\n]*|[()]|[^\s()";]+')

ALONE = {
    "matrix": ("tests/codegen/test_matrix_laws.py", "tests/codegen/test_tensor_laws.py"),
    "index": ("tests/simplify/test_index_laws.py",),
    "contract": ("tests/simplify/test_contract_laws.py",),
}
"""The tests of each law by itself, where they are not in """
TERMS = ("tests/simplify/test_laws.py",)
DIRECT = {
    "matrix": ("tests/codegen/test_matrix_programs.py", "tests/codegen/test_matrix.py", "tests/golden", "tests/paper"),
    "nest": ("tests/simplify/test_nest.py", "tests/golden", "tests/paper"),
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
    for form in law.items[2].within():
        wrong = _wrong(form, text)
        if wrong is not None:
            yield "wrong", text[: form.start] + wrong + text[form.end :]
            break
    for n, condition in enumerate(_conditions(law)):
        without = text[: condition.start] + text[condition.end :]
        yield f"without condition {n + 1}", without


def _wrong(form: Form, text: str) -> str | None:
    """The text of a form of the right side that means something else, for a form that has one."""

    def spelled(part: Form) -> str:
        return text[part.start : part.end]

    match form.head, form.items:
        case "bigint", (_, Form(atom="-1")):
            return "(bigint 1)"
        case "unstable-multiset-map" | "unstable-multiset-filter", (_, _, over):
            return spelled(over)
        case "Conj" | "Transpose" | "Adjoint" | "Conjugate" | "Subst" | "Delta" | "Sum" | "Call", (*_, last):
            return spelled(last)
        case "Where" | "Over" | "Ordered", (*_, last):
            return spelled(last)
        case "multiset-remove", (_, items, _):
            return spelled(items)
        case "Product" | "Power" | "At" | "KhatriRao" | "Kronecker", (head, first, second):
            return f"({head.atom} {spelled(second)} {spelled(first)})" if spelled(first) != spelled(second) else None
        case "Contraction" | "Applied", (_, _, second):
            return spelled(second)
        case _:
            return None


BINDING = re.compile(r"[a-z]\w*")


def _conditions(law: Form) -> list[Form]:
    """The premises of a rule that only restrict it: without one, every variable is still bound."""
    if law.head == "rewrite":
        marks = [b for a, b in zip(law.items, law.items[1:], strict=False) if a.atom == ":when"]
        return [condition for mark in marks for condition in mark.items]
    premises = law.items[1].items
    return [p for p in premises if not _binds(p)]


def _binds(premise: Form) -> bool:
    """Whether a premise says what a variable is: `(= x (Sum vs e))`, but not `(= 1 (abs q))` or `(!= v w)`."""
    match premise.head, premise.items:
        case "=", (_, left, right):
            return any(not side.items and BINDING.fullmatch(side.atom) for side in (left, right)) or any(
                side.head[:1].isupper() for side in (left, right)
            )
        case "!=" | ">" | "<" | "set-contains" | "set-not-contains" | "commutes" | "linear" | "aperiodic" | "Real", _:
            return False
        case "Symmetric" | "Hermitian" | "holds-entry" | "entry", _:
            return False
        case _:
            return True
