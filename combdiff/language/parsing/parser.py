"""Parses the text of a program to its surface tree; the syntax is that of Listings 1–5 of the paper.

The syntax is `grammar/combdiff.lark`; `layout.py` decides where newlines separate, `building.py` makes the nodes,
`settings.py` reads declarations. Here lark is set up, and its complaints are put into words.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

from combdiff.errors import LanguageError, Source, Span
from combdiff.language.habits import CHOICE, LOOP, MODULES, SIZE, remedy_of_attribute
from combdiff.language.habits import FUNCTIONS as OTHERS
from combdiff.language.inference.settings import BUILTIN_TYPES
from combdiff.language.parsing import tables
from combdiff.language.parsing.building import Builder, Piece, expression, in_order
from combdiff.language.parsing.layout import span_of
from combdiff.language.parsing.session import taken_out
from combdiff.language.parsing.syntax import DomainClause, Module, Space
from combdiff.language.vocabulary import FUNCTIONS

if TYPE_CHECKING:
    from lark import Lark, Token, UnexpectedCharacters, UnexpectedToken


def parse(text: str, name: str = "<text>", *, limit: int = 1_000_000) -> Module:
    """The program that `text` writes; `name` is what messages call it, `limit` the most characters that are read.

    >>> parse("(x::RV) -> sum(i, x(i)^2)").body.params[0].name
    'x'
    >>> print(parse("1 + $"))
    Traceback (most recent call last):
    ...
    combdiff.errors.LanguageError: <text>:1:5: '$' is not a character of the language
      1 | 1 + $
        |     ^
    remedy: remove it
    """
    if len(text) > limit:
        raise LanguageError(
            f"{name}: the text has {len(text)} characters, more than the {limit} that are read",
            remedy="split it, or raise the limit: parse(text, limit=…)",
        )
    source = Source(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), name)
    try:
        _refuse_control_characters(source.text)
        program, remarks = taken_out(source.text)
        return _module(_read(program), source, remarks)
    except LanguageError as error:
        error.located(source)
        raise


@cache
def _lark() -> Lark:
    return tables.parser(_Rules())


class _Rules(Builder):
    """The rules of a whole text, over those of expressions."""

    def module(self, parts: list[Piece | Token]) -> list[Piece]:
        return [part for part in parts if isinstance(part, Piece)]


def _read(text: str) -> list[Piece]:
    from lark import UnexpectedCharacters, UnexpectedToken

    try:
        items: list[Piece] = _lark().parse(text)  # type: ignore[assignment]  # `module` above makes the list
    except UnexpectedCharacters as stray:
        raise _stray(stray, text) from None
    except UnexpectedToken as stop:
        raise _unexpected(stop, text) from None
    return items


def _module(items: list[Piece], source: Source, remarks: tuple[str, ...]) -> Module:
    """Declarations, then definitions, then the one expression."""
    declarations: list[Space | DomainClause] = []
    statements: list[Piece] = []
    for item in items:
        if isinstance(item.node, Space | DomainClause):
            declarations.append(item.node)
        else:
            statements.append(item)
    _refuse_names(declarations)
    if not statements:
        raise LanguageError(
            "the text has only declarations: expected an expression after them",
            span=items[-1].span,
            remedy="write one, for example (x::RV) -> sum(i, x(i)^2)",
        )
    return Module(tuple(declarations), expression(in_order(statements, statements[0].span)), source, remarks)


def _refuse_names(declarations: Collection[Space | DomainClause]) -> None:
    seen: dict[str, Span] = {}
    for declared in declarations:
        if declared.name in BUILTIN_TYPES:
            raise LanguageError(
                f"{declared.name!r} is a type of the language and cannot be declared",
                span=declared.span,
                remedy="choose another name",
            )
        if declared.name in seen:
            raise LanguageError(
                f"{declared.name!r} is declared twice",
                span=declared.span,
                also=("it is declared first here", seen[declared.name]),
                remedy="remove one of the two, or rename it",
            )
        seen[declared.name] = declared.span


# --- words for what cannot be read ----------------------------------------------------------------------------------

PRIMES = "'’′"
_SUPERSCRIPTS = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁱⁿ")
_REMEDIES = {
    "@": "write A * B for a product of matrices; declarations are @space and @domain",
    '"': "there are no texts in the language",
    "×": "write * for a product",
    "·": "write * for a product",
    "⋅": "write * for a product, x' * y for that of two vectors",
    "⊙": "write A .* B for the product entry by entry",
    "∘": "write A .* B for the product entry by entry",
    "⊘": "write A ./ B for the quotient entry by entry",
    "⊗": "write x * y' for vectors, the product with an index for each slot for matrices: A(i, j) * B(k, l)",
    "†": "write A' for the adjoint",
    "⟨": "write x' * y for an inner product",
    "⟩": "write x' * y for an inner product",
    "∇": "write grad(f)",
    "|": "write abs(x) for |x|, and f ▷ g to apply f, then g",
    "‖": "write norm(x) for ‖x‖",
    "→": "write -> for a map",
    "↦": "write -> for a map",
    "!": "write `not` before a condition, != between numbers that are not equal",
    "?": "write where(c, a, b) for a where c holds, and b elsewhere",
    "&": "write `and` between conditions",
    "∧": "write `and` between conditions",
    "∨": "write `or` between conditions",
    "¬": "write `not` before a condition",
    ":": "write x::T for a type, :conj for an action",
    "√": "write sqrt(x)",
    "∫": "write sum(x::R, f(x)) for an integral",
    "%": "write a comment after #, and the remainder of a by b as a - b * floor(a / b)",
}


def _stray(stray: UnexpectedCharacters, text: str) -> LanguageError:
    at = stray.pos_in_stream
    char = text[at] if at is not None else ""
    return LanguageError(
        f"{char!r} is not a character of the language" if char != ":" else "a lone ':' means nothing",
        span=Span(stray.line, stray.column),
        remedy=_remedy_of_stray(char, text[:at], text[at or 0 :]),
    )


def _remedy_of_stray(char: str, before: str, after: str) -> str:
    if char == "|" and after.startswith("||"):
        after_a_value = re.search(rf"[\w)\]{PRIMES}]\s*$", before)
        return "write `or` between conditions" if after_a_value else "write norm(x) for ‖x‖"
    if after.startswith("⁻¹"):
        return "write inv(A) for the inverse of a matrix, x^-1 for that of a number"
    if char in _SUPERSCRIPTS:
        return "write powers with ^: x^2"
    if char == ":" and re.search(r"\b(def|lambda|function)\b[^\n]*$", before):
        return "write a map: (x::R) -> x^2"
    if char == "~":
        return "write != for what is not equal" if after.startswith("~=") else "write `not` before a condition"
    if char == "." and re.search(r"\(\s*\w+\s*[=∈]\s*\w+\.?$", before):
        return INDEX_ALONE
    if after.startswith("..."):
        return "write all indices, and a map of those that are left: i -> A(i, 0)"
    attribute, owner = re.match(r"\.(\w+)", after), re.search(r"(\w+)$", before)
    if attribute and attribute[1] in ("shape", "size", "length", "ndim"):
        return SIZE
    if attribute and owner and owner[1] in MODULES:
        return f"write the function without a prefix: {attribute[1]}(x)"
    if char == ":" and re.search(r"[\[(,]\s*$", before) and re.match(r":\s*[\]),]", after):
        return "write a row as a map of its index, j -> A(0, j), and a column as i -> A(i, 0)"
    if char == ":" and re.search(r"\biterate\(.*$|\bscan\(.*$", before) and re.search(r",\s*\d+\s*$", before):
        return "write the number of steps alone: iterate((s, t) -> s / 2 + x(t), 0, n)"
    if (
        char == ":"
        and re.search(r"\w[\[(]([^()\[\]]*,)?\s*-?\w+\s*$", before)
        and re.match(r":\s*-?\w+\s*[\]),:]", after)
    ):
        return "write a part of a vector by a condition on its index: sum(i, 1 <= i < 3, x(i))"
    if char == ":" and re.search(r"[\w)] $", before) and re.match(r": [\w(]", after):
        return "write tr(A' * B) for A : B, and x::T for a type"
    if attribute and (attribute[1] in FUNCTIONS or attribute[1] in {*OTHERS, "sum"}):
        return remedy_of_attribute(attribute[1], owner[1] if owner else "")
    if attribute and owner and attribute[1] in ("T", "H", "mT"):
        return f"write {owner[1]}' for the adjoint, transpose({owner[1]}) for the transpose"
    if char == "." and (dotted := _remedy_of_dot(after, owner[1] if owner else "")):
        return dotted
    return _REMEDIES.get(char, "remove it")


def _remedy_of_dot(after: str, owner: str) -> str | None:
    """What to write for a dot that belongs to no operator."""
    if after[1:2] in PRIMES:
        return f"write transpose({owner or 'A'}) for the transpose, {owner or 'A'}' for the adjoint"
    if after.startswith(".\\"):
        return "write b ./ A for A .\\ b"
    if owner in FUNCTIONS:
        return f"write {owner}.(x) for the function of every entry"
    return None


def _refuse_control_characters(text: str) -> None:
    """NUL and its kin: found here, because they would not be seen in a message."""
    if text.isprintable():
        return
    for row, line in enumerate(text.split("\n"), start=1):
        for column, char in enumerate(line if not line.isprintable() else "", start=1):
            if (char < " " and char != "\t") or "\x7f" <= char < "\xa0" or "\ud800" <= char < "\ue000":
                raise LanguageError(
                    f"the text contains the control character U+{ord(char):04X}",
                    span=Span(row, column),
                    remedy="remove it; programs are plain text in UTF-8",
                )


_WORDS = {
    "NUMBER": "a number",
    "COMMA": "','",
    "RPAR": "a closing )",
    "RSQB": "a closing ]",
    "RBRACE": "a closing }",
    "END": "end",
    "EQUALS": "'='",
    "LPAR": "(",
    "TYPED": "a type (::)",
    "BEGIN": "begin",
    "SEP": "a new line",
    "$END": "the end of the text",
}
INDEX_ALONE = "write the index alone, sum(i, x(i)): it ranges over the slots that it stands in"
_INDICES_FIRST = "write the indices, then the summand: sum(i, x(i)), sum((i, k::BZ), x(i, k))"
_AFTER_A_VALUE = frozenset(("LPAR", "EQUALS", "TYPED"))
_SHALLOW = 2_000


def _unexpected(stop: UnexpectedToken, text: str) -> LanguageError:
    """A word where the grammar has none: what it is, what could stand there, what is probably meant."""
    token, wanted = stop.token, _wanted(stop)
    span = span_of(token)
    if token.type == "$END":
        span = Span(token.end_line or 1, token.end_column or 1)
    if token.type == "SEP":
        span = Span(span.line, span.column)
    return LanguageError(
        f"expected {_phrase(wanted)}, found {_found(token)}", span=span, remedy=_remedy(token, wanted, text)
    )


def _wanted(stop: UnexpectedToken) -> frozenset[str]:
    """The words that could stand here; for an enormous text, those that its last rule allows."""
    parser = stop.interactive_parser
    if parser is None or len(parser.parser_state.state_stack) > _SHALLOW:
        return frozenset(stop.expected)
    return frozenset(parser.accepts())  # type: ignore[no-untyped-call]  # lark leaves it untyped


def _phrase(wanted: frozenset[str]) -> str:
    if "ACTION" in wanted:
        return "a value"
    if "BEGIN" in wanted and "NAME" in wanted:
        return "an expression"
    if "NAME" in wanted:
        return "a name or a list of names in parentheses" if "LPAR" in wanted else "a name"
    options = ["an operator"] if "PLUS" in wanted else ["'->'"] if "ARROW" in wanted else []
    unlikely = _AFTER_A_VALUE if "PLUS" in wanted else frozenset[str]()
    options += [words for kind, words in _WORDS.items() if kind in wanted - unlikely]
    if not options:
        return "something else"
    return ", ".join(options[:-1]) + (" or " if options[1:] else "") + options[-1]


def _found(token: Token) -> str:
    match token.type:
        case "NAME":
            return f"the name {str(token)!r}"
        case "NUMBER":
            return f"the number {str(token)[:20]}"
        case "$END":
            return "the end of the text"
        case "SEP" if token == "\n":
            return "the end of the line"
        case "BEGIN" | "LET" | "END" | "SUM" | "AND" | "OR" | "NOT":
            return f"{str(token)!r}, a keyword of the language"
        case _:
            return repr(str(token))


def _remedy(token: Token, wanted: frozenset[str], text: str) -> str:
    """What the writer probably meant by a word that cannot stand where it does, or what can."""
    before = text[: token.start_pos].rstrip(" ")[-1:]
    if token.type in ("EQUALS", "BECOMES") and (word := re.search(r"\b(and|or|not)\s*$", text[: token.start_pos])):
        return _REMEDY_OF_WORD[word[1].upper()]
    wanting = _of_other_languages(token, wanted, text) or _of_sizes(token, text[: token.start_pos])
    wanting = wanting or _of_numbers(token, wanted, text[: token.start_pos])
    if wanting:
        return wanting
    match token.type, before:
        case "NAME", _ if (name := re.search(r"(\w+) *$", text[: token.start_pos])) and name[1] in FUNCTIONS:
            argument = f"{token}(…)" if text[token.end_pos :].startswith("(") else str(token)
            return f"write {name[1]}({argument})"
        case "NAME", "," if re.search(r"\bsum\(\s*\w+(\s*,\s*\w+)+\s*,\s*$", text[: token.start_pos]):
            return "write several indices in parentheses: sum((i, j), A(i, j))"
        case "NAME" | "SUM" | "NUMBER", _ if re.search(r"(\bsum|∑)\(\s*(\w+|\([^()]*\))\s*$", text[: token.start_pos]):
            return _INDICES_FIRST
        case (("NAME" | "SUM" | "NUMBER" | "LPAR" | "BEGIN"), ")") if re.search(
            r"^\s*\([^()]*::[^()]*\)\s*$", text[: token.start_pos]
        ):
            return "write -> between the parameters and the value: (x::R) -> x^2"
        case "NAME" | "SUM", _ if before and before in f"{PRIMES})]" and "PLUS" in wanted:
            return f"write a product with *: {_value_before(text[: token.start_pos])} * {token}"
        case "LSQB", _ if "BEGIN" in wanted and "NAME" in wanted:
            return "write a vector or a matrix as a map of its indices, (i, j) -> A(i, j) + 1; there is none of blocks"
        case "STAR", "*":
            return "write powers with ^: x^2"
        case "BACKSLASH", _:
            return "write sums and functions without LaTeX, sum(i, x(i)), exp(x), and a solution as A \\ b"
        case "ACTION", _ if before.isalnum():
            return f"write :: between a name and its type: x:{token}"
        case "NAME", _ if re.search(r"\breturn *$", text[: token.start_pos]):
            return "leave return out: the last line of begin … end is its value"
        case "EQUALS", ")" if head := re.search(r"(\w+)(\([^()\n]*\))\s*$", text[: token.start_pos]):
            return f"write {head[1]} = {_typed(head[2])} -> …"
        case "LPAR", _ if "ARROW" in wanted and _among_symmetries(text[: token.start_pos]):
            return "a symmetry as a map names the tensor, then its indices: T -> (p, q) -> T(q, p)'"
        case "RPAR", "(":
            return "write what belongs between ( and )"
        case _:
            return _REMEDY_OF_WORD.get(token.type) or _remedy_by_wish(wanted)


def _of_numbers(token: Token, wanted: frozenset[str], before: str) -> str | None:
    """What to write for a word that follows a number: 2 i, 2 x."""
    if token.type not in ("NAME", "NUMBER", "SUM") or not before.rstrip(" ")[-1:].isdigit():
        return None
    if token in ("i", "j"):
        return f"the imaginary unit is im: {_number_before(before)} * im"
    return f"write a product with *: {_number_before(before)} * {token}" if "PLUS" in wanted else None


def _of_sizes(token: Token, before: str) -> str | None:
    """What a size in braces may be."""
    if re.search(r"\w\{[^{}()\n]*$", before) is None:
        return None
    return "a size is a name, a name and a number more or less, or a number: x::RV{n}, y::RV{n + 1}, A::RM{n, 3}"


def _of_other_languages(token: Token, wanted: frozenset[str], text: str) -> str | None:
    """What to write for a comparison, a choice or a line that goes on, of other languages."""
    before, after = text[: token.start_pos].rstrip(" "), text[token.start_pos :]
    if re.search(r"\b(for|while)$", before) or token in ("for", "while"):
        return LOOP
    if re.search(r"\b(einsum|contract)\($", before) and token == "'":
        return "write the sum: sum((j, k), A(i, j) * B(j, k))"
    if token.type == "EQUALS" and re.search(r"(\bsum|\bprod|∑)\(\s*\w+$", before):
        return INDEX_ALONE
    if token.type == "EQUALS" and re.search(r"\b(axis|dims?|keepdims|dtype)$", before):
        return "an argument has no name here; sum one index of a matrix with a map: i -> sum(j, A(i, j))"
    if token.type == "EQUALS" and re.search(r"(\w+)\s*[-+*/]$", before):
        name = re.search(r"(\w+)\s*([-+*/])$", before)
        assert name is not None, "as was just seen"
        return f"write the name twice: {name[1]} = {name[1]} {name[2]} …"
    if token.type == "COMMA" and re.search(r"(^|[\n;])\s*\w+$", before) and re.match(r"[^\n]*[^=<>!]=[^=]", after):
        return "write names and values in parentheses: (a, b) = (x(0), x(1))"
    if token.type in _BETWEEN and before.endswith("\n"):
        return f"end the line above with {token}: an expression goes on where it is not complete"
    if token in ("if", "then", "else") or re.search(r"\b(if|then|else)$", before):
        return CHOICE
    if token.type == "LBRACE" and re.search(r"\b(Sum|Table|Product)\[[^\n]*$", before):
        return "write sum(i, x(i)^2), with the index first and alone"
    if token == ">" and before.endswith("="):
        return "write -> for a map, >= to compare"
    if token.type == "SLASH" and before.endswith("/"):
        return "write floor(a / b)"
    if token == "<" and "BEGIN" in wanted and re.match(r"<[^<>\n]+,[^<>\n]+>", after):
        return "write x' * y for an inner product"
    if token.type == "RELATION" and before.endswith(("<", ">")):
        return (
            "write != for what is not equal"
            if before[-1] + token == "<>"
            else "write one comparison: <, <=, >, >=, == or !="
        )
    if token.type != "EQUALS" or "RPAR" not in wanted | _inside(before):
        return None
    if before.endswith(("==", "!=")):
        return f"write {before[-2:]}"
    return {"<": "write <=", ">": "write >="}.get(
        after[1:2], "write == to compare; a definition, name = value, is a line of its own"
    )


def _typed(parameters: str) -> str:
    """(x::R, y::R) for (x, y)."""
    return re.sub(r"(?<![\w:])([A-Za-z_]\w*)(?=\s*[,)])", r"\1::R", parameters)


def _inside(text: str) -> frozenset[str]:
    """RPAR, where a parenthesis is open."""
    return frozenset({"RPAR"}) if text.count("(") > text.count(")") else frozenset()


def _value_before(text: str) -> str:
    """The name or the bracket that a text ends with."""
    found = re.search(rf"\w+[{PRIMES}]+$", text.rstrip(" "))
    return found[0] if found else "(…)"


def _number_before(text: str) -> str:
    found = re.search(r"[\d.]+ *$", text)
    return found[0].strip() if found else "2"


def _among_symmetries(before: str) -> bool:
    """Whether what was read last is the value of `symmetries = …` in a declaration."""
    after = before.rpartition("symmetries")[2].lstrip()
    return after.startswith("=") and re.search(r"\bend\b", after) is None


_BETWEEN = frozenset(
    {"STAR", "SLASH", "BACKSLASH", "CARET", "DOT_PLUS", "DOT_MINUS", "DOT_STAR", "DOT_SLASH", "DOT_CARET"}
)
"""Operators with which no expression begins."""
_REMEDY_OF_WORD = {
    "LBRACE": "sizes with names stand in types: x::RV{M}, i::N{M}",
    "ARROW": "left of -> stands a name, or names in parentheses: (x::T, y) -> …",
    "EQUALS": "a definition is a line of its own, name = value; a map is f = (x, y) -> …",
    "BECOMES": "a definition is a line of its own, name := value",
    "TYPED": "only a parameter has a type: x::T -> …",
    "AND": "`and` joins conditions, i < j and j < k; choose another name",
    "OR": "`or` joins conditions, i < j or j < k; choose another name",
    "NOT": "write `not` before a condition, not i < j; choose another name",
    "RELATION": "a comparison stands in where(i < j, e), and between the indices of a sum and what is summed",
    "SPACE": "declarations stand outside of expressions, each on lines of its own",
    "DOMAIN": "declarations stand outside of expressions, each on lines of its own",
}


def _remedy_by_wish(wanted: frozenset[str]) -> str:
    if "ACTION" in wanted:
        return "write true, a type such as (N, N) -> C, or clauses such as (((2, 1), :conj),)"
    if "BEGIN" in wanted and "NAME" in wanted:
        return "write a number, a name, (…), sum(…) or begin … end"
    if "PLUS" in wanted:
        return "put an operator, a comma or a new line before it"
    if "NAME" in wanted:
        return "write a name; begin, end, let, sum, and, or, not are taken"
    if "ARROW" in wanted:
        return "only a parameter has a type: x::T -> …"
    if "SEP" in wanted or "END" in wanted or "$END" in wanted:
        return "begin a new line, or separate with ';'"
    if wanted & {"COMMA", "LPAR"}:
        return _INDICES_FIRST
    return "write @space T begin type = (N, N) -> C end, x -> sum(i, x(i))"
