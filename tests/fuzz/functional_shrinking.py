"""The smallest functional that has a complaint of the same kind: parts are left out as long as it stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.functional_programs import Node, Program, complete, constant, walk


def smallest(program: Program, wrong: Callable[[Program], bool], most: int = 300) -> Program:
    """`program` with parts left out, one after the other, while it is `wrong`."""
    tried = 0
    while True:
        for smaller in candidates(program):
            tried += 1
            if tried > most:
                return program
            if wrong(smaller):
                program = smaller
                break
        else:
            return program


def candidates(program: Program) -> Iterator[Program]:
    """Programs with one part less, the shortest first."""
    bodies = {b for b in _smaller(program.body) if _is_closed(b, frozenset()) and _has_names_once(b)}
    for body in sorted(bodies, key=lambda b: sum(1 for _ in walk(b))):
        smaller = _used(program, body)
        if smaller.unknowns or smaller.numbers:
            yield smaller
    for n, u in enumerate(program.unknowns):
        if u.fixed:
            free = (*program.unknowns[:n], replace(u, fixed=()), *program.unknowns[n + 1 :])
            yield replace(program, unknowns=free)
    if program.numbers and program.unknowns:
        yield replace(program, numbers=())


def _used(program: Program, body: Node) -> Program:
    """With another value, without functions and numbers that do not occur in it."""
    used = {n.args[0] for n in walk(body)}
    unknowns, given = (tuple(u for u in us if u.name in used) for us in (program.unknowns, program.given))
    numbers = tuple(n for n in program.numbers if n in used)
    return complete(Program(body, unknowns, numbers, given), program.lines)


def _smaller(node: Node) -> Iterator[Node]:
    """A part in the place of the whole, a number in the place of a part, fewer derivatives."""
    yield from node.children
    if node.op not in ("constant", "variable"):
        yield constant(1)
    if node.op == "function" and node.args[1]:
        yield Node("function", (node.args[0], node.args[1] - 1, node.args[2]))
    if node.op in ("local", "defined"):
        place = 1 if node.op == "local" else 2
        if node.args[place] > 1:
            yield Node(node.op, (*node.args[:place], node.args[place] - 1, *node.args[place + 1 :]))
    for n, child in enumerate(node.args):
        if isinstance(child, Node):
            for less in _smaller(child):
                yield Node(node.op, (*node.args[:n], less, *node.args[n + 1 :]))


def _has_names_once(body: Node) -> bool:
    """Whether a name is that of one definition."""
    definitions = {n if n.op == "named" else n.args[:2] + n.args[3:5] for n in walk(body) if n.op in _DEFINING}
    names = {n.args[0] for n in walk(body) if n.op in _DEFINING}
    return len(definitions) == len(names)


_DEFINING = ("named", "defined")


def _is_closed(node: Node, scope: frozenset[str]) -> bool:
    """Whether each variable stands below what binds it."""
    match node.op, node.args:
        case "variable", (name,):
            return name in scope
        case "integral", (_, at, body):
            return _is_closed(body, scope | {at})
        case "local", (_, _, at, body, a):
            return _is_closed(body, scope | {at}) and _is_closed(a, scope)
        case "defined", (_, _, _, at, body, a):
            return _is_closed(body, frozenset({at})) and _is_closed(a, scope)
        case "named", (_, value):
            return _is_closed(value, frozenset())
        case _:
            return all(_is_closed(c, scope) for c in node.children)
