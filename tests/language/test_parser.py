"""The parser: what the language's texts mean as trees, and what is said of texts that are none."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from combdiff.errors import LanguageError
from combdiff.language.parsing.parser import parse
from combdiff.language.parsing.syntax import Block, DomainClause, Lambda, Module, Space

EXAMPLES = Path(__file__).parents[2] / "examples"


def shape(node: object) -> object:
    """The tree as nested tuples, places left out."""
    if is_dataclass(node):
        return (type(node).__name__, *(shape(getattr(node, f.name)) for f in fields(node) if f.name != "span"))
    return tuple(map(shape, node)) if isinstance(node, tuple) else node


def body(text: str) -> object:
    return shape(parse(text).body)


def failure(text: str) -> LanguageError:
    with pytest.raises(LanguageError) as caught:
        parse(text)
    return caught.value


# --- what texts mean ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loose", "explicit"),
    [
        ("-x^2", "-(x^2)"),
        ("a^b^c", "a^(b^c)"),
        ("a^-b^c", "a^(-(b^c))"),
        ("a * x'^2", "a * ((x')^2)"),
        ("x^y'", "x^(y')"),
        ("-a * b", "(-a) * b"),
        ("a + b * c", "a + (b * c)"),
        ("a - b ▷ f", "(a - b) ▷ f"),
        ("x -> y -> x ▷ y", "x -> (y -> (x ▷ y))"),
        ("a ▷ x -> x + 1", "a ▷ (x -> (x + 1))"),
        ("f(x)(y)'", "((f(x))(y))'"),
        ("x::T -> x", "(x::T) -> x"),
        ("C[p, i]", "C(p, i)"),
        ("x’", "x'"),
        ("x′", "x'"),
        ("∑(i, x(i))", "sum(i, x(i))"),
        ("sum((i), x(i))", "sum(i, x(i))"),
        ("a − b", "a - b"),
        ("begin a = 1; a end", "let a = 1\n a\n\nend"),
        ("f(a, b,)", "f(a,\n  b\n)"),
        ("begin a = 1 +\n 2 *\n 3\n a end", "begin a = 1 + 2 * 3; a end"),
        ("x ->\n x", "x -> x"),
        ("(begin a = 1\n a\n end)", "begin a = 1; a end"),
        ("a = 1\na + 1 # the end", "begin a = 1; a + 1 end"),
        ("\ufeffx\r\n", "x"),
        ("e\u0301", "é"),
    ],
)
def test_two_spellings_are_one_tree(loose: str, explicit: str) -> None:
    assert body(loose) == body(explicit)


@pytest.mark.parametrize(("one", "other"), [("-x^2", "(-x)^2"), ("a^b^c", "(a^b)^c"), ("a - (b - c)", "a - b - c")])
def test_parentheses_matter(one: str, other: str) -> None:
    assert body(one) != body(other)


def test_a_chain_is_flat_and_remembers_its_signs() -> None:
    names = [("Name", n) for n in "abcd"]
    assert body("a - b + c - d") == ("Plus", tuple(zip((False, True, False, True), names, strict=True)))
    assert body("a / b * c / d") == ("Times", tuple(zip((False, True, False, True), names, strict=True)))
    assert body("-a + b") == ("Plus", ((True, names[0]), (False, names[1])))


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("0.5", Fraction(1, 2)), ("1e-3", Fraction(1, 1000)), (".25", Fraction(1, 4)), ("2.E2", 200)],
)
def test_numbers_are_exact(text: str, value: Fraction) -> None:
    assert body(text) == ("Numeral", value)


@pytest.mark.parametrize("name", ["λ", "α", "ψ₁", "x̂", "x̂_2", "sums", "ending", "Σ", "beginner", "sum̂"])
def test_names_may_be_of_any_script(name: str) -> None:
    assert body(name) == ("Name", name)


def test_a_tuple_is_taken_apart_and_a_textual_definition_is_marked() -> None:
    block = parse("begin (a, b) = t; c := a\n c end").body
    assert isinstance(block, Block)
    first, second = block.definitions
    assert ([n.text for n in first.names], first.textual) == (["a", "b"], False)
    assert ([n.text for n in second.names], second.textual) == (["c"], True)


def test_types_of_parameters_may_be_maps() -> None:
    tree = parse("(f::(N, (R) -> R) -> C, k) -> k").body
    assert isinstance(tree, Lambda)
    real, complex_, index = (("TypeName", name, ()) for name in "RCN")
    assert shape(tree.params[0].kind) == ("MapType", (index, ("MapType", (real,), real)), complex_)
    assert tree.params[1].kind is None


def test_declarations_carry_their_settings() -> None:
    text = "@domain BZ begin base = I; periodic = true end\n@space T begin\n type = (N,\n BZ) -> C\n"
    module = parse(text + "symmetries = (((2, 1), :conj), ((1,), :ineg),)\nend\nT0")
    domain, space = module.declarations
    assert isinstance(domain, DomainClause) and domain.settings == (("base", "I"), ("periodic", "true"))
    assert isinstance(space, Space) and [t.text for t in space.kind.params] == ["N", "BZ"]  # type: ignore[union-attr]
    assert [(c.slots, c.action) for c in space.symmetries] == [((2, 1), "conj"), ((1,), "ineg")]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.cd")), ids=lambda path: path.stem)
def test_the_examples_parse(file: Path) -> None:
    assert isinstance(parse(file.read_text(encoding="utf-8"), file.name), Module)


def test_places_point_at_the_words() -> None:
    tree = parse("(x::RV) ->\n  sum(i, x(i))").body
    assert isinstance(tree, Lambda)
    assert (tree.params[0].span.line, tree.params[0].span.column, tree.params[0].span.width) == (1, 2, 5)
    assert (tree.body.span.line, tree.body.span.column, tree.body.span.width) == (2, 3, 12)


# --- every tree has a text, every text a tree or a message ----------------------------------------------------------

_names = st.sampled_from(["a", "b", "λ", "x̂", "rho"])
_TYPES = {
    "a": ("TypeName", "RV", ()),
    "b": ("TypeName", "RM", (("Size", "M", 0), ("Size", "K", 0))),
    "λ": ("TypeName", "N", (("Size", "μ", 0),)),
}
_RELATIONS = ["<", "<=", ">", ">=", "==", "!="]


def _extend(inner: st.SearchStrategy[tuple]) -> st.SearchStrategy[tuple]:
    many = st.lists(inner, min_size=1, max_size=3)
    signed = st.lists(st.tuples(st.booleans(), inner), min_size=2, max_size=3).map(lambda c: ((False, c[0][1]), *c[1:]))
    params = st.lists(_names, min_size=1, max_size=3, unique=True).map(
        lambda names: tuple(("Param", n, _TYPES.get(n), ()) for n in names)
    )
    definitions = st.lists(st.tuples(_names, inner, st.booleans()), min_size=1, max_size=2)
    relations = st.lists(st.sampled_from(_RELATIONS), min_size=1, max_size=2)
    return st.one_of(
        st.tuples(st.just("Times"), signed),
        st.tuples(st.just("Plus"), signed.filter(lambda c: c[0][1][0] != "Plus")),
        st.tuples(st.just("Compose"), st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.tuples(st.just("Caret"), inner, inner),
        st.tuples(st.just("Prime"), inner),
        st.tuples(st.just("Parens"), st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.tuples(st.just("Apply"), inner.filter(lambda f: f[0] != "Numeral"), many.map(tuple)),
        st.tuples(st.just("Lambda"), params, inner),
        st.tuples(st.just("Summation"), params, inner, st.none() | inner),
        relations.flatmap(
            lambda rs: st.tuples(
                st.just("Comparison"), st.tuples(*[inner] * (len(rs) + 1)), st.just(tuple(rs)), st.just(False)
            )
        ),
        st.tuples(st.just("Junction"), st.lists(inner, min_size=2, max_size=3).map(tuple), st.booleans()),
        st.tuples(st.just("Negation"), inner),
        st.tuples(
            st.just("Block"),
            definitions.map(lambda ds: tuple(("Definition", (("Name", n),), e, t, None) for n, e, t in ds)),
            inner,
        ),
    )


_leaves = _names.map(lambda n: ("Name", n)) | st.sampled_from([Fraction(3), Fraction(1, 8)]).map(
    lambda v: ("Numeral", v)
)
_trees = st.recursive(_leaves, _extend, max_leaves=12)


def _written(kind: tuple) -> str:
    _, name, sizes = kind
    return name + (f"{{{', '.join(size[1] for size in sizes)}}}" if sizes else "")


def _binder(params: tuple) -> str:
    return ", ".join(name + (f"::{_written(type_)}" if type_ else "") for _, name, type_, _ in params)


def _condition(tree: tuple) -> str:
    """The text of a comparison, and of what joins comparisons."""
    match tree:
        case ("Comparison", (first, *others), relations, _):
            links = zip(relations, others, strict=True)
            return f"({render(first)})" + "".join(f" {sign} ({render(side)})" for sign, side in links)
        case ("Junction", items, every):
            return (" and " if every else " or ").join(f"({render(item)})" for item in items)
        case ("Negation", of):
            return f"not ({render(of)})"
    raise AssertionError(tree)


def render(tree: tuple) -> str:
    """A text of the tree, all of its parts in parentheses."""
    match tree:
        case ("Name", text):
            return text
        case ("Numeral", value):
            return str(float(value))
        case ("Plus" | "Times" as kind, chain):
            plain, inverse = "+-" if kind == "Plus" else "*/"
            return "".join(f" {inverse if inv else plain} ({render(e)})" for inv, e in chain)[3:]
        case ("Compose", maps):
            return " ▷ ".join(f"({render(m)})" for m in maps)
        case ("Caret", base, exponent):
            return f"({render(base)})^({render(exponent)})"
        case ("Prime", of):
            return f"({render(of)})'"
        case ("Parens", items):
            return f"({', '.join(map(render, items))})"
        case ("Apply", function, args):
            return f"({render(function)})({', '.join(map(render, args))})"
        case ("Lambda", params, inner):
            return f"({_binder(params)}) -> {render(inner)}"
        case ("Summation", params, inner, condition):
            return f"sum(({_binder(params)}), {'' if condition is None else f'{render(condition)}, '}{render(inner)})"
        case ("Comparison" | "Junction" | "Negation", *_):
            return _condition(tree)
        case ("Block", definitions, inner):
            lines = [f"{d[1][0][1]} {':=' if d[3] else '='} {render(d[2])}" for d in definitions]
            return "begin\n" + "\n".join([*lines, render(inner)]) + "\nend"
    raise AssertionError(tree)


@pytest.mark.slow
@given(_trees)
@settings(max_examples=200, deadline=None)
def test_a_rendered_tree_is_read_back(tree: tuple) -> None:
    assert body(render(tree)) == tree


_SIGNS = ["@space", "@domain", *"=()[]{},;▷+-*/^'$²λ#\n\0", "::", ":=", "->", ":conj", "x", "N", "2", "0.5", "1e9"]
_words = st.sampled_from(["begin", "end", "let", "sum", "type", *_SIGNS])


@pytest.mark.slow
@given(st.lists(_words, max_size=25).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused_with_a_place_and_a_remedy(text: str) -> None:
    try:
        parse(text)
    except LanguageError as error:
        assert error.span is not None and error.remedy and error.source is not None
        assert error.span.line <= text.count("\n") + 1 and "expected " not in error.remedy
        assert not any(word in error.message for word in ("RPAR", "$END", "NAME", "SEP", "COMMA", "LSQB"))


@pytest.mark.slow
@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_arbitrary_characters_raise_nothing_else(text: str) -> None:
    try:
        parse(text)
    except LanguageError as error:
        assert error.span is not None


# --- what is said of wrong texts ------------------------------------------------------------------------------------

_SPACE = "@space T begin type = (N, N) -> C; symmetries = {} end\n1"


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("", 1, 1, "the text is empty"),
        ("# only\n\n# comments", 1, 1, "the text is empty"),
        ("@domain X begin base = I end", 1, 9, "expected an expression"),
        ("1 +", 1, 4, "expected an expression, found the end of the text"),
        ("begin\n a = 1\n a *\nend", 4, 1, "expected an expression, found 'end'"),
        ("a b", 1, 3, "expected an operator"),
        ("f(x y)", 1, 5, "expected an operator, ',' or a closing )"),
        ("f(a,\n  (b", 2, 3, "expected a closing )"),
        ("f x)", 1, 4, "closes nothing"),
        ("(a]", 1, 3, "expected a closing )"),
        ("begin a = 1", 1, 1, "expected an end"),
        ("begin a = 1 end", 1, 7, "expected an expression after the last definition"),
        ("1\n2", 1, 1, "is not used"),
        ("end", 1, 1, "closes nothing"),
        ("a + $", 1, 5, "'$' is not a character"),
        ("ab\0", 1, 3, "U+0000"),
        ("a\n\x1b", 2, 1, "U+001B"),
        ("() -> 1", 1, 1, "at least one parameter"),
        ("(x + 1) -> 2", 1, 2, "expected the name of a parameter"),
        ("(x::T)", 1, 2, "no '->' follows"),
        ("sum()", 1, 5, "expected an expression, found ')'"),
        ("sum(i + 1, x(i))", 1, 5, "expected the indices that a sum runs over"),
        ("sum(i, j, k, x(i))", 1, 14, "perhaps a condition, and a term"),
        ("3.(x)", 1, 1, "a number cannot be applied"),
        ("f()", 1, 3, "expected an expression, found ')'"),
        ("1e4000", 1, 1, "out of bounds"),
        ("1" * 5000, 1, 1, "out of bounds"),
        ("1e" + "9" * 5000, 1, 1, "out of bounds"),
        ("@domain X begin colour = true end\n1", 1, 17, "unknown setting 'colour'"),
        ("@domain X begin sizes = true end\n1", 1, 17, "not supported yet"),
        ("@domain X begin periodic = 3 end\n1", 1, 28, "expected true or false"),
        ("@space C begin type = (N,) -> C end\n1", 1, 8, "is a type of the language"),
        ("@space sum begin type = (N,) -> C end\n1", 1, 8, "expected a name, found 'sum'"),
        ("@space T begin type = C end\n1", 1, 23, "map type"),
        (_SPACE.format("((2, 1), :conj)"), 1, 50, "expected a symmetry clause"),
        (_SPACE.format("(((2, 1), :swap),)"), 1, 59, "unknown symmetry action :swap"),
        (_SPACE.format("(((2, 0), :id),)"), 1, 55, "expected the number of a slot"),
        (_SPACE.format("3"), 1, 49, "expected a tuple of symmetry clauses"),
    ],
)
def test_a_wrong_text_is_refused_in_words_at_its_place(text: str, line: int, column: int, said: str) -> None:
    error = failure(text)
    assert said in error.message
    assert error.span is not None and (error.span.line, error.span.column) == (line, column)
    assert error.remedy and "^" in str(error)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("2x", "2 * x"),
        ("2(x)", "2 * (x"),
        ("x²", "x^2"),
        ("a ** b", "x^2"),
        ("N{M}", "sizes with names stand in types"),
        ("f(x) = 2", "f ="),
        (_SPACE.format("(T(a, b) = T(b, a),)"), "names the tensor, then its indices"),
        (_SPACE.format("((p, q) -> T(q, p),)"), "names the tensor, then its indices"),
        (_SPACE.format("(T -> T(q, p),)"), "names the tensor, then its indices"),
        ("(x::N{M}{K}) -> 1", "sizes with names stand in types"),
        ("(x:RV) -> sum(i, x(i))", "x::RV"),
        ("(x::RV) -> begin\nreturn x(0)\nend", "leave return out"),
        ("(x::R) -> |x|", "abs(x)"),
        ("(x::RV) -> sum(i, x(i) ? 1 : 0)", "where(c, a, b)"),
        ("(x::RV) -> sum(i, where(x(i) > 0 && x(i) < 1, 1))", "`and`"),
    ],
)
def test_a_common_slip_is_told_how_to_mend(text: str, remedy: str) -> None:
    assert remedy in failure(text).remedy


@pytest.mark.parametrize(
    ("text", "here", "there"),
    [
        ("(x, y, x) -> 1", (1, 8), (1, 2)),
        ("sum((i, i), 1)", (1, 9), (1, 6)),
        ("(a, a) = t\n1", (1, 5), (1, 2)),
        ("@space T begin type = (N,) -> C end\n@domain T begin base = I end\n1", (2, 9), (1, 8)),
        ("@domain X begin base = I\nbase = I end\n1", (2, 1), (1, 17)),
        ("(a\n]", (2, 1), (1, 1)),
    ],
)
def test_a_clash_names_both_places(text: str, here: tuple[int, int], there: tuple[int, int]) -> None:
    error = failure(text)
    assert error.span is not None and error.also is not None
    assert (error.span.line, error.span.column) == here
    assert (error.also[1].line, error.also[1].column) == there


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "-" * 100_000 + "x",
        "x" + "'" * 100_000,
        "^".join("x" * 100_000),
        "->".join("x" * 100_000),
        "begin " * 100_000,
        "f(" * 1_000 + "x" + ")" * 1_000,
        "x" + "(y)" * 1_000,
        "(" * 300 + "x" + ")" * 300,
    ],
    ids=lambda text: text[:6],
)
def test_nesting_of_any_depth_is_refused(text: str) -> None:
    assert "nested more than 200 levels" in failure(text).message


def test_nesting_that_is_allowed_is_read() -> None:
    parse("-" * 150 + "x")
    parse("(" * 200 + "x" + ")" * 200)
    parse("x::" + "(" * 90 + "N" + ") -> C" * 90 + " -> 1")


@pytest.mark.slow
def test_a_long_chain_is_no_nesting() -> None:
    tree = body("+".join(["x"] * 5_000))
    assert isinstance(tree, tuple) and len(tree[1]) == 5_000
    assert len(parse("a = 1;" * 2_000 + "a").body.definitions) == 2_000  # type: ignore[union-attr]


def test_a_text_above_the_limit_is_refused_unless_the_limit_is_raised() -> None:
    text = "x" + " " * 100
    with pytest.raises(LanguageError, match="more than the 50"):
        parse(text, limit=50)
    assert parse(text, limit=101)
