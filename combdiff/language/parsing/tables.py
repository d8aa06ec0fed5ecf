"""The parser's tables, computed from `grammar/combdiff.lark` once: `grammar/combdiff.json`, which a parser starts from.

lark takes a tenth of a second for the tables, more than for most programs. The file says of which grammar and by which
version of lark its tables are; if either is another one, lark computes them again, and the parser is the same.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from combdiff.errors import CombDiffError
from combdiff.language.parsing.newlines import Newlines
from combdiff.resources import resource

if TYPE_CHECKING:
    from lark import Lark

_OWN = ("postlex", "transformer")
"""Options that are objects of ours; a parser gets them when it starts."""

_SHIFT = 0
"""How lark marks an action that leads to another state."""


def parser(rules: object = None) -> Lark:
    """A parser that calls the methods of `rules`, from the stored tables if they fit.

    >>> parser().parse("x").data == "module"
    True
    """
    import lark

    grammar = resource("grammar", "combdiff.lark")
    try:
        stored = json.loads(resource("grammar", "combdiff.json"), object_hook=_with_numbers)
    except (CombDiffError, ValueError):
        stored = {}
    if stored.get("of") == _origin(grammar):
        found: Lark = lark.Lark.__new__(lark.Lark)._load(stored, postlex=Newlines(), transformer=rules)
        return found
    return _computed(grammar, rules)


def tables() -> str:
    """What `grammar/combdiff.json` is to contain; `python -m tests.language.test_tables` writes it."""
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    grammar = resource("grammar", "combdiff.lark")
    content, memo = _computed(grammar, None).memo_serialize([TerminalDef, Rule])
    content["options"] = {name: value for name, value in content["options"].items() if name not in _OWN}
    content["parser"]["parser"] |= _in_order(**content["parser"]["parser"])
    return json.dumps({"of": _origin(grammar), "data": content, "memo": memo}, separators=(",", ":")) + "\n"


def _in_order(
    tokens: dict[int, str],
    states: dict[int, dict[int, tuple[int, Any]]],
    start_states: dict[str, int],
    end_states: dict[str, int],
    **_: object,
) -> dict[str, object]:
    """The automaton with tokens by name, and states as they are met from the first one, token by token.

    lark numbers both in the order of its sets, which is another one in each process.
    """
    names = sorted(tokens.values())
    token = {old: names.index(name) for old, name in tokens.items()}
    actions = {state: sorted((token[t], *action) for t, action in row.items()) for state, row in states.items()}
    met = list(start_states.values())
    for state in met:  # which grows meanwhile
        met += dict.fromkeys(to for _, kind, to in actions[state] if kind == _SHIFT and to not in met)
    number = {old: new for new, old in enumerate(met)}
    rows = {
        number[state]: {t: (kind, number[to] if kind == _SHIFT else to) for t, kind, to in actions[state]}
        for state in met
    }
    starts, ends = ({name: number[state] for name, state in of.items()} for of in (start_states, end_states))
    return {"tokens": dict(enumerate(names)), "states": rows, "start_states": starts, "end_states": ends}


def _computed(grammar: str, rules: object) -> Lark:
    import lark

    return lark.Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start="module",
        transformer=rules,
        postlex=Newlines(),
        keep_all_tokens=True,
        maybe_placeholders=False,
    )


def _origin(grammar: str) -> list[str]:
    """What tables depend on."""
    import lark

    return [lark.__version__, sha256(grammar.encode()).hexdigest()]


def _with_numbers(entries: dict[str, object]) -> dict[str | int, object]:
    """Keys of JSON are texts, also those that were numbers."""
    return {int(key) if key.isdecimal() else key: value for key, value in entries.items()}
