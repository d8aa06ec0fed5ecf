"""What the names of a program stand for while it is read: a term, a function to be inlined, or text to be replaced.

A scope is a value: a definition makes a new one, and what has been defined before keeps seeing the old one, so that
there is no recursion and shadowing is harmless. All scopes of one block share a table, so 2,000 definitions stay cheap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from combdiff.errors import LanguageError, Span
from combdiff.language.parsing.syntax import Expr, Lambda
from combdiff.records import dataclass
from combdiff.terms.terms import Lam, Term
from combdiff.terms.types import Type


@dataclass(frozen=True, slots=True)
class Function:
    """What a variable means that stands for a function of numbers.

    `term` takes what the body reads outside, too. `uses` tells how often the body reads each parameter, `costs` whether
    computing it twice is worse than keeping it.
    """

    term: Lam
    uses: tuple[int, ...]
    costs: bool


@dataclass(slots=True, eq=False)
class Closure:
    """A function of the program, read anew at every call, so that one function serves tensors of many sizes.

    At numbers it is read once: `made` are the variables that stand for it by the types of its arguments, or by these
    themselves if they are constants, and `calls` its calls by their arguments; None where it binds something and is
    read anew. A chain of definitions that use the one before twice would double with each otherwise.

    A parameter without a type takes what it is called with. `problem` says why the function, of no types, is no tensor.
    """

    body: Lambda
    scope: Scope
    name: str = ""
    read: bool = False
    problem: LanguageError | None = None
    made: dict[tuple[Type | Term, ...], Term | None] = field(default_factory=dict)
    calls: dict[tuple[Term, ...], Term | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Textual:
    """`a := e`: e is read where `a` stands; `before` is what `a` meant until then, so that `a := a + 1` ends."""

    value: Expr
    before: Entry | None


@dataclass(frozen=True, slots=True)
class Ready:
    """A term in the place of an expression."""

    term: Term
    span: Span


Entry = Term | Closure | Textual


@dataclass(frozen=True, slots=True)
class Scope:
    """Names and their meanings, innermost first.

    >>> from combdiff.terms.terms import ONE, TWO
    >>> outer = Scope().child({"a": ONE})
    >>> later = outer.extended("a", TWO)
    >>> outer.find("a") is ONE, later.find("a") is TWO
    (True, True)
    """

    table: dict[str, list[tuple[int, Entry | None]]] = field(default_factory=dict)
    limit: int = 0
    parent: Scope | None = None

    def child(self, entries: Mapping[str, Entry | None] | None = None) -> Scope:
        """A scope inside this one."""
        table: dict[str, list[tuple[int, Entry | None]]] = {name: [(0, e)] for name, e in (entries or {}).items()}
        return Scope(table, 1, self)

    def extended(self, name: str, entry: Entry) -> Scope:
        """This scope with one more definition; to be called on the newest scope of a table only."""
        self.table.setdefault(name, []).append((self.limit, entry))
        return Scope(self.table, self.limit + 1, self.parent)

    def find(self, name: str) -> Entry | None:
        """What `name` means here, None if nothing."""
        scope: Scope | None = self
        while scope is not None:
            for serial, entry in reversed(scope.table.get(name, ())):
                if serial < scope.limit:
                    return entry
            scope = scope.parent
        return None

    def meanings(self, name: str) -> int:
        """In how many scopes, this one and those around it, `name` means something."""
        scope: Scope | None = self
        count = 0
        while scope is not None:
            count += any(serial < scope.limit for serial, _ in scope.table.get(name, ()))
            scope = scope.parent
        return count

    def names(self) -> Iterator[str]:
        """Every name that means something here."""
        scope: Scope | None = self
        while scope is not None:
            yield from (name for name, entries in scope.table.items() if entries[0][0] < scope.limit)
            scope = scope.parent
