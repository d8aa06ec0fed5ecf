"""How wide a formula of LaTeX is, in signs of half an em, and where one that is too wide may be broken."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

WIDTH = 84
"""Signs in a line, 42 em: the width of a page."""

_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[-{}_^+=<:]|\s+|.", re.DOTALL)
_CASES = re.compile(r"\\begin\{(cases|pmatrix)\} ((?:(?!\\begin\{(?:cases|pmatrix)\}).)*?) \\end\{\1\}")
_ROWS = re.compile(r"\\\\\n?|\\(?:begin|end)\{aligned\}")
_WIDTHS = {r"\quad": 2.0, r"\qquad": 4.0, r"\,": 0.35, r"\!": -0.35, r"\ ": 0.5, ",": 0.9, r"\int": 1.8, "'": 0.5}
_WIDTHS |= dict.fromkeys("()[]|", 0.8) | dict.fromkeys("iljtfr", 0.75) | dict.fromkeys("mwMW", 1.7)
_WIDTHS |= dict.fromkeys(("=", "<", ":", r"\le", r"\in", r"\mapsto"), 2.7)
_WIDTHS |= dict.fromkeys(("+", "-", r"\circ", r"\oslash", r"\odot", r"\otimes", r"\cdot", r"\times"), 2.4)
_WIDTHS |= dict.fromkeys((r"\left", r"\right", r"\biggl", r"\biggr"), 0.5) | {"&": 0.0}
_WIDTHS |= {
    f"\\{name}": 1.0 + len(name) for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan")
}
_ACCENTS = frozenset((r"\bar", r"\hat", r"\tilde", r"\dot", r"\vec", r"\overline"))
_UPRIGHT = frozenset((r"\mathrm", r"\text", r"\mathbf", r"\mathsf", r"\mathcal", r"\phantom", r"\operatorname"))
_SCRIPT = 0.7


def columns(text: str) -> int:
    """About how many signs wide the widest line of a formula is; a Σ is as wide as the indices below it.

    >>> columns(r"x + \\frac{a}{b} \\\\ & y"), columns(r"\\sum_{i} x_{i}"), columns(r"\\sum_{abcdefgh} x")
    (5, 5, 8)
    """
    while _CASES.search(text):
        text = _CASES.sub(_widest_case, text)
    return max(round(_width(row.strip())) for row in _ROWS.split(text))


def _widest_case(cases: re.Match[str]) -> str:
    """The widest of cases, behind their brace, the conditions apart from the values; the widest entries of a matrix."""
    sides = zip(*(row.split(" & ") for row in cases[2].split(r" \\ ")), strict=True)
    return "(" + r"\quad ".join(max(side, key=_width) for side in sides)


def _width(text: str) -> float:
    return _run(iter(_TOKEN.findall(text)))


def _run(tokens: Iterator[str]) -> float:
    """The width of what stands side by side, up to the end or to a brace that closes."""
    width = script = 0.0
    for token in tokens:
        if token in "_^":
            script = max(script, _SCRIPT * _group(tokens))
        elif not token.isspace():
            width, script = width + script, 0.0
            if token == "}":
                break
            width += _single(token, tokens)
    return width + script


def _single(token: str, tokens: Iterator[str]) -> float:
    if token == "{":
        return _run(tokens)
    if token == r"\sum":
        next(tokens)
        return max(2.9, _SCRIPT * _group(tokens)) + 0.35
    if token == r"\frac":
        return max(_group(tokens), _group(tokens)) + 0.5
    if token == r"\sqrt":
        return _group(tokens) + 1.7
    if token in _ACCENTS:
        return _group(tokens)
    if token in _UPRIGHT:
        return _letters(tokens)
    if token in _WIDTHS:
        return _WIDTHS[token]
    return 1.5 if token.isupper() else 1.15


def _group(tokens: Iterator[str]) -> float:
    """The width of the next group or sign."""
    token = next(tokens, "")
    return _single(token, tokens) if token else 0.0


def _letters(tokens: Iterator[str]) -> float:
    """The width of words, whose spaces count."""
    depth, width = 0, 0.0
    for token in tokens:
        depth += {"{": 1, "}": -1}.get(token, 0)
        width += 0.0 if token in "{}" else 1.0 if len(token) == 1 else 2.0
        if not depth:
            break
    return width


# --- where to break -------------------------------------------------------------------------------------------------

_Places = dict[int, tuple[int, ...]]
_MARK = re.compile(
    r"\\begin\{(?:cases|pmatrix)\}|\\end\{(?:cases|pmatrix)\}|(?:\\!)?\\left\(|\\left.|\\right.|[(){}\[\]]| [-+] "
    r"|\\, (?!\\mathrm\{d\})"
)


def cut(text: str) -> list[str]:
    """`text` cut before the + and − in its outermost round brackets; brackets that are cut have a fixed size.

    >>> print(*cut(r"2 (A + B^{n + 1} - f(C + D)) E"), sep="\\n")
    2 (A
    + B^{n + 1}
    - f(C + D)) E
    >>> print(*cut(r"\\left(\\frac{a}{b} + c\\right) d"), sep="\\n")
    \\biggl(\\frac{a}{b}
    + c\\biggr) d

    A product without such brackets is cut before a factor in its middle.
    """
    marks = list(_MARK.finditer(text))
    signs, factors, closing = _places(text, marks)
    if not signs:
        shallow = [at for at, held in factors.items() if len(held) == min(map(len, factors.values()))]
        signs = {at: factors[at] for at in sorted(shallow, key=lambda at: abs(2 * at - len(text)))[:1]}
    if not signs:
        return [text]
    least = min(signs.values(), key=lambda brackets: (_is_called(text, marks, brackets), len(brackets)))
    key = (_is_called(text, marks, least), len(least))
    chosen = {at: held for at, held in signs.items() if (_is_called(text, marks, held), len(held)) == key}
    sized = {k for held in chosen.values() for k in held if "left" in marks[k].group() and k in closing}
    opening = {marks[k].span(): r"\biggl(" for k in sized}
    return _replaced(text, list(chosen), opening | {marks[closing[k]].span(): r"\biggr)" for k in sized})


def _places(text: str, marks: list[re.Match[str]]) -> tuple[_Places, _Places, dict[int, int]]:
    """Where + and − stand in round brackets and in which, where factors begin, and which marks close which."""
    open_: list[int] = []
    closing: dict[int, int] = {}
    signs: dict[int, tuple[int, ...]] = {}
    factors: dict[int, tuple[int, ...]] = {}
    for n, mark in enumerate(marks):
        sign = mark.group()
        if sign.startswith((r"\right", r"\end")) or sign in ")}]":
            if open_:
                closing[open_.pop()] = n
        elif "left" in sign or "begin" in sign or sign in "({[":
            open_.append(n)
        elif mark.start() and all(marks[k].group().endswith("(") for k in open_):
            (factors if sign == r"\, " else signs)[mark.start()] = tuple(open_)
    return signs, factors, closing


def _is_called(text: str, marks: list[re.Match[str]], brackets: tuple[int, ...]) -> bool:
    """Whether one of the brackets holds the arguments of a function."""
    starts = [marks[k].start() for k in brackets]
    return any(
        (text[at] == "\\" and text[at + 1] == "!") or text[at - 1 : at] not in ("", " ", "(", "l") for at in starts
    )


def _replaced(text: str, cuts: list[int], new: dict[tuple[int, int], str]) -> list[str]:
    """`text` with new signs at some places, in parts that begin at `cuts`."""
    parts = []
    for a, b in pairwise([0, *cuts, len(text)]):
        part, at = "", a
        for (start, end), sign in sorted(new.items()):
            if a <= start < b:
                part, at = part + text[at:start] + sign, end
        parts.append(re.sub(r"^\\, ", r"\\times ", (part + text[at:b]).strip()))
    return parts
