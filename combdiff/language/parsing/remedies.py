"""What the writer of a program probably meant where it cannot be read: one table, whose first row that applies counts.

A row names the terminal (of `grammar/combdiff.lark`) or the word at which reading stopped, what the text before it and
the text from it on look like, and the terminals that the grammar wants there. What a row leaves out may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY

from combdiff.language.habits import CHOICE, INDICES_FIRST, LOOP, MODULES, SIZE, remedy_of_attribute
from combdiff.language.habits import FUNCTIONS as OTHERS
from combdiff.language.vocabulary import FUNCTIONS
from combdiff.records import dataclass

PRIMES = "'’′"
STRAY = "STRAY"
"""The kind of a character that begins no terminal."""

Groups = Mapping[str, str]
"""The named groups of the patterns of a row, the `word` itself, and the `next` character."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Where reading stopped: the terminal, its word, the text before it and from it on, and what could stand there."""

    kind: str
    word: str
    before: str
    after: str
    wanted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Remedy:
    """A row: lists of `kinds`, of `words` and of terminals that are all `wanted`, and patterns of the text around.

    `before` is how the text before the word ends, `after` how the text from the word on begins.
    """

    advice: str | Callable[[Groups], str | None]
    _: KW_ONLY
    kinds: str = ""
    words: str = ""
    before: str = ""
    after: str = ""
    wanted: str = ""

    def applied(self, stop: Stop) -> str | None:
        """The advice for a place, if the row is for such places.

        >>> row = Remedy("write {left} * {word}", kinds="NAME", before=r"(?P<left>\\d+) *")
        >>> row.applied(Stop("NAME", "x", "y + 2 ", "x"))
        'write 2 * x'
        """
        if self.kinds and stop.kind not in self.kinds.split():
            return None
        if self.words and stop.word not in self.words.split():
            return None
        if not stop.wanted.issuperset(self.wanted.split()):
            return None
        before, after = re.search(rf"(?:{self.before})\Z", stop.before), re.match(self.after, stop.after)
        if before is None or after is None:
            return None
        groups = {
            **before.groupdict(),
            **after.groupdict(),
            "word": stop.word,
            "next": stop.after[len(stop.word) :][:1],
        }
        return self.advice.format(**groups) if isinstance(self.advice, str) else self.advice(groups)


def remedy(stop: Stop) -> str:
    """The advice of the first row that applies.

    >>> remedy(Stop(STRAY, "⊗", "x ", "⊗ y"))[:31]
    "write x * y' for vectors, the p"
    """
    rows = OF_CHARACTERS if stop.kind == STRAY else OF_WORDS
    return next(advice for row in rows if (advice := row.applied(stop)) is not None)


def _attribute(groups: Groups) -> str | None:
    known = groups["name"] in FUNCTIONS or groups["name"] in {*OTHERS, "sum"}
    return remedy_of_attribute(groups["name"], groups["owner"]) if known else None


def _density(groups: Groups) -> str | None:
    """Of norm.pdf, as SciPy's users write it."""
    return remedy_of_attribute(groups["name"], "x") if groups["name"] in {"pdf", "cdf", "logpdf", "logcdf"} else None


def _size_in_braces(groups: Groups) -> str:
    """x::RV[n] and x::RV(n), as declarations of other languages have it."""
    sizes = ", ".join(re.split(r"[\]\[)(,\s]+", groups["sizes"].strip()))
    return f"write sizes in braces: {groups['type']}{{{sizes}}}"


def _one_type(groups: Groups) -> str:
    """S::Sym(RM{n, n}): a type does not take another one."""
    kind = next(name for name in ("Sym", "Her", "SPD", "HPD") if groups["type"].startswith(name))
    size = re.search(r"\w+", groups["sizes"] or "")
    return f"write {kind}{{{size[0]}}}, which is a matrix" if size else f"write {kind}, which is a matrix"


def _function_of_entries(groups: Groups) -> str | None:
    return f"write {groups['owner']}.(x) for the function of every entry" if groups["owner"] in FUNCTIONS else None


def _call(groups: Groups) -> str | None:
    argument = f"{groups['word']}(…)" if groups["next"] == "(" else groups["word"]
    return f"write {groups['name']}({argument})" if groups["name"] in FUNCTIONS else None


def _definition_of_function(groups: Groups) -> str:
    """f(x, y) = … as a map: the parameters get types."""
    typed = re.sub(r"(?<![\w:])([A-Za-z_]\w*)(?=\s*[,)])", r"\1::R", groups["parameters"])
    return f"write {groups['name']} = {typed} -> …"


_AND = "`and` joins conditions, i < j and j < k; choose another name"
_OR = "`or` joins conditions, i < j or j < k; choose another name"
_NOT = "write `not` before a condition, not i < j; choose another name"
_PART = "write a part of a vector by a condition on its index: sum(i, 1 <= i < 3, x(i))"
_CONDITION_OF_SUM = "write a condition alone, between the indices and the term: sum((i, j), i < j, A(i, j))"
_RETURN = "leave return out: the last line of begin … end is its value"
_SUM = "write the sum: sum((j, k), A(i, j) * B(j, k))"
_INNER = "write x' * y for an inner product"
_POWERS = "write powers with ^: x^2"
_NORM = "write norm(x) for ‖x‖"
_NORM_ALONE = "write norm(A) alone: it is Euclid's norm of a vector, and that of Frobenius of a matrix"
_INDEX_ALONE = (
    "write the index alone, sum(i, x(i)): it ranges over the slots that it stands in; "
    "an index that stands in none has a type, sum(k::N{{10}}, 1 / 2^k), and counts from 0"
)
_LITERAL = r"(?P<left>[\d.]*\d([eE][-+]?\d+)?) *"
_HEAD_OF_SUM = r"(\bsum|\bprod|\bmean|∑)\((\w+|\([^()]*\)) *"
_SLOTS = (
    "write x::RV{{n}} for a vector of n numbers, A::RM{{n, m}} for a matrix, (N{{n}}, N{{m}}, N{{k}}) -> R for more"
)
_TENSOR = "write the slots and the value of a tensor: T::(N, N, N) -> R"
_TYPED = "only a parameter has a type: x::T -> …"
_OUTSIDE = "declarations stand outside of expressions, each on lines of its own"
_BINARY = "STAR SLASH BACKSLASH CARET DOT_PLUS DOT_MINUS DOT_STAR DOT_SLASH DOT_CARET"

# --- the table: for characters of which no word begins, then for words that cannot stand where they do ----------------

OF_CHARACTERS = (
    Remedy("write `or` between conditions", words="|", before=rf"[\w)\]{PRIMES}]\s*", after=r"\|\|"),
    Remedy(_NORM, words="|", after=r"\|\|"),
    Remedy("write inv(A) for the inverse of a matrix, x^-1 for that of a number", after="⁻¹"),
    Remedy(_POWERS, words="⁰ ¹ ² ³ ⁴ ⁵ ⁶ ⁷ ⁸ ⁹ ⁺ ⁻ ⁱ ⁿ"),
    Remedy("write a map: (x::R) -> x^2", words=":", before=r"\b(def|lambda|function)\b[^\n]*"),
    Remedy(LOOP, words=":", before=r"\b(for|while)\b[^\n]*"),
    Remedy("write != for what is not equal", words="~", after=r"~="),
    Remedy("write `not` before a condition", words="~"),
    Remedy(_INDEX_ALONE, words=". :", before=r"\(\s*\w+\s*[=∈]\s*\w+\.?"),
    Remedy("write all indices, and a map of those that are left: i -> A(i, 0)", after=r"\.\.\."),
    Remedy(SIZE.replace("{n}", "{{n}}"), after=r"\.(shape|size|length|ndim)\b"),
    Remedy(_density, before=r"\bstats", after=r"\.(norm|Normal)\.(?P<name>\w+)"),
    Remedy(_density, before=r"(?P<owner>\b([Nn]orm(al)?|dist|stats|Gaussian)(\([^()]*\))?)", after=r"\.(?P<name>\w+)"),
    Remedy(
        "write the function without a prefix: {name}(x)",
        before=rf"(?<!\w)({'|'.join(sorted(MODULES))})",
        after=r"\.(?P<name>\w+)",
    ),
    Remedy(
        "write a row as a map of its index, j -> A(0, j), and a column as i -> A(i, 0)",
        words=":",
        before=r"[\[(,]\s*",
        after=r":\s*[\]),]",
    ),
    Remedy(
        "write the number of steps alone: iterate((s, t) -> s / 2 + x(t), 0, n)",
        words=":",
        before=r"\b(iterate|scan)\([^\n]*,\s*\d+\s*",
    ),
    Remedy(
        _PART,
        words=":",
        before=r"\w[\[(]([^()\[\]]*,)?\s*(-?\w+\s*)?",
        after=r":\s*(-?\w+)?\s*[\]),:]",
    ),
    Remedy(_CONDITION_OF_SUM, words=":", before=_HEAD_OF_SUM),
    Remedy("write tr(A' * B) for A : B, and x::T for a type", words=":", before=r"[\w)] ", after=r": [\w(]"),
    Remedy(_INDEX_ALONE, before=r"(\bsum|\bprod|∑)\(\s*\w+\s+in\s+\w+\.?", after=r"\."),
    Remedy(_attribute, before=r"(?P<owner>\w*)", after=r"\.(?P<name>\w+)"),
    Remedy(
        "write {owner}' for the adjoint, transpose({owner}) for the transpose",
        before=r"(?P<owner>\w+)",
        after=r"\.(T|H|mT)(?!\w)",
    ),
    Remedy(
        "write transpose({owner}) for the transpose, {owner}' for the adjoint",
        before=r"(?P<owner>\w+)",
        after=rf"\.[{PRIMES}]",
    ),
    Remedy("write transpose(A) for the transpose, A' for the adjoint", after=rf"\.[{PRIMES}]"),
    Remedy("write b ./ A for A .\\ b", after=r"\.\\"),
    Remedy(_function_of_entries, words=".", before=r"(?P<owner>\w*)"),
    Remedy("write A * B for a product of matrices; declarations are @space and @domain", words="@"),
    Remedy(_NORM_ALONE, words='"', before=r"\bnorm\([^\n]*, *"),
    Remedy(_SUM, words='"', before=r"\b(einsum|contract)\( *"),
    Remedy("there are no texts in the language", words='"'),
    Remedy("write * for a product", words="× ·"),
    Remedy("write * for a product, x' * y for that of two vectors", words="⋅"),
    Remedy("write A .* B for the product entry by entry", words="⊙ ∘"),
    Remedy("write A ./ B for the quotient entry by entry", words="⊘"),
    Remedy(
        "write x * y' for vectors, the product with an index for each slot for matrices: A(i, j) * B(k, l)", words="⊗"
    ),
    Remedy("write A' for the adjoint", words="†"),
    Remedy(_INNER, words="⟨ ⟩"),
    Remedy("write grad(f)", words="∇"),
    Remedy(_CONDITION_OF_SUM, words="|", before=_HEAD_OF_SUM),
    Remedy("write x ▷ f, or f(x)", words="|", after=r"\|>"),
    Remedy("write abs(x) for |x|, det(A) for |A|, and f ▷ g to apply f, then g", words="|"),
    Remedy(_NORM, words="‖"),
    Remedy("write -> for a map", words="→ ↦"),
    Remedy("write gamma(x + 1) for x!", words="!", before=r"[\w)] *", after=r"!(?!=)"),
    Remedy("write `not` before a condition, != between numbers that are not equal", words="!"),
    Remedy("write where(c, a, b) for a where c holds, and b elsewhere", words="?"),
    Remedy("write `and` between conditions", words="& ∧"),
    Remedy("write `or` between conditions", words="∨"),
    Remedy("write `not` before a condition", words="¬"),
    Remedy("write x::T for a type, :conj for an action", words=":"),
    Remedy("write sqrt(x)", words="√"),
    Remedy("write cbrt(x)", words="∛"),
    Remedy("write grad(f)(x) for the derivative of a function", words="∂"),
    Remedy("write sum(x::R, f(x)) for an integral", words="∫"),
    Remedy("write x::T for the type of a parameter, and an index of a sum alone: sum(i, x(i))", words="∈"),
    Remedy("write a comment after #, and the remainder of a by b as mod(a, b)", words="%"),
    Remedy("remove it"),
)

_DECLARED = r"::\s*(?P<type>(Sym|Her|SPD|HPD)\w*)"

OF_WORDS = (
    # the notation of other languages
    Remedy(_AND, kinds="EQUALS BECOMES", before=r"\band\s*"),
    Remedy(_OR, kinds="EQUALS BECOMES", before=r"\bor\s*"),
    Remedy(_NOT, kinds="EQUALS BECOMES", before=r"\bnot\s*"),
    Remedy(LOOP, before=r"\b(for|while) *"),
    Remedy(LOOP, words="for while"),
    Remedy(_SUM, words="'", before=r"\b(einsum|contract)\( *"),
    Remedy(_NORM_ALONE, words="'", before=r"\bnorm\([^\n]*, *"),
    Remedy(_NORM_ALONE, kinds="EQUALS", before=r"\bnorm\([^\n]*, *ord *"),
    Remedy(INDICES_FIRST, kinds="NAME SUM NUMBER", before=r"(Σ_?|∑_?|\bsum_)\w{1,4} *"),
    Remedy(
        "write maximum(i, x(i)), and minimum(i, x(i)) for the least",
        kinds="NAME SUM NUMBER",
        before=r"\b(max|min)_\w{1,4} *",
    ),
    Remedy("write mod(a, b)", words="mod", wanted="PLUS"),
    Remedy("write powers without braces: x^2, x^(n + 1)", kinds="LBRACE", before=r"\^ *"),
    Remedy("write indices in parentheses: A(i, j), delta(i, j, x(i))", kinds="LBRACE", before=r"\w_ *"),
    Remedy(
        "write {name} = true",
        kinds="END SEP",
        before=r"\b(?P<name>periodic|symmetric|list|linear|positive|definite|increasing|fixed)\s*",
        wanted="EQUALS",
    ),
    Remedy("{name} is a word of the language; choose another name", kinds="TYPED", before=r"\b(?P<name>sum|let) *"),
    Remedy(_INDEX_ALONE, kinds="EQUALS", before=r"(\bsum|\bprod|∑)\(\s*\w+ *"),
    Remedy(
        "an argument has no name here; sum one index of a matrix with a map: i -> sum(j, A(i, j))",
        kinds="EQUALS",
        before=r"\b(axis|dims?|keepdims|dtype) *",
    ),
    Remedy(
        "write the name twice: {name} = {name} {sign} …", kinds="EQUALS", before=r"(?P<name>\b\w+)\s*(?P<sign>[-+*/]) *"
    ),
    Remedy(
        "write names and values in parentheses: (a, b) = (x(0), x(1))",
        kinds="COMMA",
        before=r"(\A|[\n;])\s*\w+ *",
        after=r"[^\n]*[^=<>!]=[^=]",
    ),
    Remedy(
        "write sum(i, x(i)^2), with the index first and alone",
        kinds="LBRACE",
        before=r"\b(Sum|Table|Product)\[[^\n]*",
    ),
    Remedy(
        "end the line above with {word}: an expression goes on where it is not complete", kinds=_BINARY, before=r"\n *"
    ),
    Remedy(CHOICE, words="if then else"),
    Remedy(CHOICE, before=r"\b(if|then|else) *"),
    Remedy("write -> for a map, >= to compare", words=">", before=r"= *"),
    Remedy("write floor(a / b)", kinds="SLASH", before=r"/ *"),
    Remedy(_INNER, words="<", after=r"<[^<>\n]+,[^<>\n]+>", wanted="BEGIN"),
    Remedy("write != for what is not equal", kinds="RELATION", words=">", before=r"< *"),
    Remedy("write one comparison: <, <=, >, >=, == or !=", kinds="RELATION", before=r"[<>] *"),
    Remedy("write {sign}", kinds="EQUALS", before=r"(?P<sign>[=!]=) *", wanted="RPAR"),
    Remedy("write {sign}=", kinds="EQUALS", after=r".(?P<sign>[<>])", wanted="RPAR"),
    Remedy("write == to compare; a definition, name = value, is a line of its own", kinds="EQUALS", wanted="RPAR"),
    Remedy(_one_type, before=rf"{_DECLARED}\{{\s*[RC]M", after=r"\{(?P<sizes>[^{}\n]*)", kinds="LBRACE"),
    Remedy(_one_type, before=rf"{_DECLARED}\s*", after=r"[(\[{]\s*[RC]M\s*(?P<sizes>[\[({][^\n]*?)?[\])}]"),
    Remedy(
        "a size is a name, a name and a number more or less, or a number: x::RV{{n}}, y::RV{{n + 1}}, A::RM{{n, 3}}",
        before=r"\w\{[^{}()\n]*",
    ),
    # what stands before the word
    Remedy(_RETURN, before=r"\breturn *"),
    Remedy(_PART, kinds="TYPED", before=r"\w\[[^\[\]\n]*"),
    Remedy(_CONDITION_OF_SUM, before=r"(\bsum|\bprod|\bmean|∑)\([^\n]*\bwhere *"),
    Remedy("begin a new line, and leave return out: the last line of begin … end is its value", words="return"),
    Remedy(
        "write what holds under a condition as where(c, a), and a condition of a sum between its indices and its term",
        words="where",
        wanted="PLUS",
    ),
    Remedy(
        _size_in_braces,
        before=r"::\s*(?P<type>[RC]V|[RC]M|Sym|Her|SPD|HPD|N) *",
        after=r"[\[(](?P<sizes>[^:\n>]*?)[\])](?![\[(])",
    ),
    Remedy(_SLOTS, before=r"::\s*[RC]( *\^[^,)]*)? *", after=r"[\[(^]"),
    Remedy(_TENSOR, kinds="RPAR", before=r"::\s*\([\w, {{}}]*\)\s*"),
    Remedy(_TENSOR, before=r"::\s*N *", wanted="ARROW"),
    Remedy("the imaginary unit is im: {left} * im", kinds="NAME", words="i j", before=_LITERAL),
    Remedy(
        "write a product with *: {left} * {word}",
        kinds="NAME NUMBER SUM",
        before=_LITERAL,
        wanted="PLUS",
    ),
    Remedy(_call, kinds="NAME", before=r"(?P<name>\w+) *"),
    Remedy(
        "write several indices in parentheses: sum((i, j), A(i, j))",
        kinds="NAME",
        before=r"\bsum\(\s*\w+(\s*,\s*\w+)+\s*, *",
    ),
    Remedy(INDICES_FIRST, kinds="NAME SUM NUMBER", before=r"(\bsum|∑)\(\s*(\w+|\([^()]*\))\s*"),
    Remedy(
        "write -> between the parameters and the value: (x::R) -> x^2",
        kinds="NAME SUM NUMBER LPAR BEGIN",
        before=r"\A\s*\([^()]*::[^()]*\)\s*",
    ),
    Remedy(
        "write a product with *: {left} * {word}",
        kinds="NAME SUM",
        before=rf"(?P<left>\w+[{PRIMES}]+) *",
        wanted="PLUS",
    ),
    Remedy("write a product with *: (…) * {word}", kinds="NAME SUM", before=rf"[{PRIMES})\]] *", wanted="PLUS"),
    Remedy(
        "write a vector or a matrix as a map of its indices, (i, j) -> A(i, j) + 1; there is none of blocks",
        kinds="LSQB",
        wanted="BEGIN NAME",
    ),
    Remedy("write z' for the conjugate", kinds="STAR", before=r"\^ *"),
    Remedy(_POWERS, kinds="STAR", before=r"\* *"),
    Remedy("write sums and functions without LaTeX, sum(i, x(i)), exp(x), and a solution as A \\ b", kinds="BACKSLASH"),
    Remedy("write :: between a name and its type: x:{word}", kinds="ACTION", before=r"[^\W_] *"),
    Remedy(_definition_of_function, kinds="EQUALS", before=r"(?P<name>\w+)(?P<parameters>\([^()\n]*\)) *"),
    Remedy(
        "a symmetry as a map names the tensor, then its indices: T -> (p, q) -> T(q, p)'",
        kinds="LPAR",
        # inside the value of `symmetries = …` of a declaration
        before=r"symmetries\s*=((?!symmetries|\bend\b)[\s\S])*",
        wanted="ARROW",
    ),
    Remedy("write what belongs between ( and )", kinds="RPAR", before=r"\( *"),
    # the word itself
    Remedy("write begin … end around several statements, each on its line", kinds="LBRACE", wanted="BEGIN NAME"),
    Remedy("sizes with names stand in types: x::RV{{M}}, i::N{{M}}", kinds="LBRACE"),
    Remedy("left of -> stands a name, or names in parentheses: (x::T, y) -> …", kinds="ARROW"),
    Remedy("a definition is a line of its own, name = value; a map is f = (x, y) -> …", kinds="EQUALS"),
    Remedy("a definition is a line of its own, name := value", kinds="BECOMES"),
    Remedy(_TYPED, kinds="TYPED"),
    Remedy(_AND, kinds="AND"),
    Remedy(_OR, kinds="OR"),
    Remedy(_NOT, kinds="NOT"),
    Remedy(
        "a comparison stands in where(i < j, e), and between the indices of a sum and what is summed", kinds="RELATION"
    ),
    Remedy(_OUTSIDE, kinds="SPACE DOMAIN"),
    # what could stand there
    Remedy("write true, a type such as (N, N) -> C, or clauses such as (((2, 1), :conj),)", wanted="ACTION"),
    Remedy("write a number, a name, (…), sum(…) or begin … end", wanted="BEGIN NAME"),
    Remedy("put an operator, a comma or a new line before it", wanted="PLUS"),
    Remedy("write a name; begin, end, let, sum, and, or, not are taken", wanted="NAME"),
    Remedy(_TYPED, wanted="ARROW"),
    *(Remedy("begin a new line, or separate with ';'", wanted=terminal) for terminal in ("SEP", "END", "$END")),
    *(Remedy(INDICES_FIRST, wanted=terminal) for terminal in ("COMMA", "LPAR")),
    Remedy("write @space T begin type = (N, N) -> C end, x -> sum(i, x(i))"),
)
