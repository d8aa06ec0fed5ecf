"""Reads a whole printed result, and evaluates it on given numbers: parameters, shared values, the value, where-clauses.

What is not in the formula comes with the types of the program: which slots a tensor has, and the ranges of indices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from combdiff.arrays.lower.signature import result_of
from combdiff.language.printing.anchors import domains_of
from combdiff.meaning.evaluate import evaluate
from combdiff.meaning.linear_maps import LinearMap
from combdiff.meaning.points import values_of
from combdiff.meaning.samples import random_value, shape_of
from combdiff.terms.terms import Diff, Term, Var, bound_by, let, subterms, tuple_of
from combdiff.terms.types import Domain, Index, Map, Number, Product, Type, is_complex
from tests.notation.clause_reader import says_rows
from tests.notation.latex_reader import Evaluator, Parser, Slot, Tensor, UnreadableError, binder, split
from tests.notation.matrix_reader import Matrix, Reader, given

Values = dict[Term, object]


def values_for(
    term: Term, sizes: Mapping[Domain, int], seed: int = 0, free: bool = False
) -> tuple[Values, list[np.ndarray]]:
    """Random values for the parameters of a result, and for the derivatives of its unknown functions; what it then is.

    `free`: for the free variables, rather than for parameters. Where a value is not finite, as a logarithm or a root of
    a real number, other numbers are drawn, then positive ones.
    """
    for draw in range(DRAWS):
        keys = sorted(term.free, key=lambda v: v.uid) if free else result_of(term).params
        values = drawn(term, keys, sizes, np.random.default_rng([seed, draw]), draw >= DRAWS // 2)
        with np.errstate(all="ignore"):
            found = [np.asarray(evaluate(term, values, sizes))] if free else expected(term, values, sizes)
        if all(np.isfinite(array).all() for array in found):
            return values, found
    raise AssertionError("no value is finite")


DRAWS = 8


def drawn(
    term: Term, keys: Sequence[Term], sizes: Mapping[Domain, int], rng: np.random.Generator, positive: bool
) -> Values:
    derivatives = [u for u in subterms(term) if isinstance(u, Diff) and u.is_derivative]
    values: Values = {}
    for key in (*keys, *derivatives):
        kind = key.type
        plain = isinstance(kind, Number) or (isinstance(kind, Map) and (kind.is_array or kind.linear))
        value = random_value(kind, sizes, rng) if plain else smooth(kind, sizes, rng)
        free = isinstance(value, float | np.ndarray) and not getattr(kind, "symmetries", ())
        values[key] = np.abs(value) + 0.1 if positive and free and not np.iscomplexobj(value) else value
    return values


def smooth(kind: Map, sizes: Mapping[Domain, int], rng: np.random.Generator) -> Callable[..., object]:
    """A smooth function of tensors and numbers in the place of an unknown one."""
    weights = rng.standard_normal(64)

    def function(*args: object) -> object:
        entries = [np.ravel(item) for a in args for item in (a if isinstance(a, tuple) else (a,))]
        inner = 0.3 + sum((0.5 + n) * np.resize(weights[n:], e.size) @ e for n, e in enumerate(entries))
        return shaped(kind.result, np.sin(inner) + 0.1 * inner * inner, 0)

    def shaped(result: Type, value: complex, offset: int) -> object:
        match result:
            case Number():
                return complex(value) if is_complex(result) else float(np.real(value))
            case Map():
                entries = np.resize(weights[offset + 5 :], shape_of(result, sizes)) * value
                return entries if is_complex(result) else np.real(entries)
            case Product(items):
                return tuple(shaped(item, value * (n + 1.5), offset + n) for n, item in enumerate(items))
        raise AssertionError("an unknown function of a kind that is not sampled")

    return function


def expected(term: Term, values: Values, sizes: Mapping[Domain, int]) -> list[np.ndarray]:
    """What the term means."""
    parts = result_of(term)
    found = evaluate(let(parts.bindings, tuple_of(parts.outputs)), values, sizes)
    return [np.asarray(value) for value in (found if isinstance(found, tuple) else (found,))]


@dataclass
class Page:
    """A printed result with what the types say: `term` is asked for types and for the order of parameters alone."""

    term: Term
    values: Values
    sizes: Mapping[Domain, int]
    evaluator: Evaluator = field(init=False)
    env: dict[str, object] = field(default_factory=dict)
    matrices: dict[str, object] = field(default_factory=dict)
    clauses: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.evaluator = Evaluator(dict(self.hints()), dict(self.domains()))

    # --- types -----------------------------------------------------------------------------------------------------

    def slots(self, kind: Type) -> tuple[Slot, ...]:
        return tuple(self.slot(p) for p in kind.params) if isinstance(kind, Map) else ()

    def slot(self, kind: Type) -> Slot:
        assert isinstance(kind, Index) and kind.domain is not None
        domain = kind.domain
        points = tuple(tuple(int(x) for x in np.atleast_1d(row)) for row in values_of(domain, self.sizes))
        return Slot(points, tuple(axis.extent(self.sizes) for axis in domain.axes) if domain.periodic else None)

    def hints(self) -> Iterator[tuple[str, Slot]]:
        """The ranges of indices by their names, where a name has one."""
        kinds: dict[str, set[Type]] = {}
        for t in subterms(self.term):
            for var in bound_by(t):
                if isinstance(var.kind, Index) and var.kind.domain:
                    kinds.setdefault(var.name, set()).add(var.kind)
        for name, found in kinds.items():
            if len(found) == 1:
                yield name, self.slot(*found)

    def domains(self) -> Iterator[tuple[str, Slot]]:
        """The ranges that the program gives names to."""
        for t in subterms(self.term):
            for var in bound_by(t):
                for domain in domains_of(var.kind):
                    name = domain.name
                    yield name if len(name) == 1 else rf"\mathrm{{{name}}}", self.slot(Index(domain))

    # --- values as the two readers take them -------------------------------------------------------------------------

    def entry(self, kind: Type, value: object) -> object:
        """A value for formulas in index form."""
        match kind:
            case Map() if kind.is_array:
                slots = self.slots(kind)
                return Tensor(np.asarray(value).reshape([len(slot.points) for slot in slots]), slots)
            case Map():
                return self.function(kind, value)
            case Product(items):
                return tuple(self.entry(item, v) for item, v in zip(items, value, strict=True))
            case _:
                return value

    def function(self, kind: Map, value: object) -> Callable[..., object]:
        def called(*args: object) -> object:
            plain = [a.array if isinstance(a, Tensor) else a for a in args]
            return self.entry(kind.result, value(*plain))

        if isinstance(value, LinearMap):
            called.adjoint = self.function(Map((kind.result,), kind.params[0]), value.adjoint.__call__)
        return called

    def matrix(self, kind: Type, value: object) -> object:
        """The same for linear algebra: a function of numbers acts entry by entry."""
        match kind:
            case Map() if kind.is_array:
                return given(self.entry(kind, value).array)
            case Map(params):
                return self.of_matrices(kind, value, entrywise=all(isinstance(p, Number) for p in params))
            case _:
                return given(value)

    def of_matrices(self, kind: Map, value: object, entrywise: bool) -> Callable[..., Matrix]:
        """A function of formulas; one of numbers acts entry by entry."""

        def called(*args: Matrix) -> Matrix:
            if entrywise:
                whole = next((a for a in args if not a.is_number), args[0])
                return Matrix(whole.rows, whole.columns, lambda: np.vectorize(value)(*(a.array() for a in args)))
            like = given(np.zeros([len(slot.points) for slot in self.slots(kind.result)]))
            shapes = [shape_of(p, self.sizes) for p in kind.params]
            return Matrix(
                like.rows,
                like.columns,
                lambda: value(*(a.array().reshape(shape) for a, shape in zip(args, shapes, strict=True))),
            )

        if isinstance(value, LinearMap):
            adjoint = Map((kind.result,), kind.params[0])
            called.adjoint = self.of_matrices(adjoint, value.adjoint.__call__, entrywise=False)
        return called

    # --- names -----------------------------------------------------------------------------------------------------

    def know(self, name: str, kind: Type, value: object, var: Term | None = None) -> None:
        """Bring a name into scope, and with it the derivatives of an unknown function of that name."""
        if name in self.env:
            raise UnreadableError(f"{name} stands for two things")
        self.env[name], self.matrices[name] = self.entry(kind, value), self.matrix(kind, value)
        self.derivatives(name, var)

    def derivatives(self, name: str, var: Term | None) -> None:
        for key, value in self.values.items():
            heads, of = [], key
            while isinstance(of, Diff):
                heads.append("gradient" if of.kind == "grad" else of.kind)
                of = of.of
            if heads and of == var:
                head = " ".join([*heads, name])
                self.env[head], self.matrices[head] = self.entry(key.type, value), self.matrix(key.type, value)

    # --- LaTeX -----------------------------------------------------------------------------------------------------

    def latex(self, text: str, form: str = "index") -> list[np.ndarray]:
        """The results of a page of LaTeX."""
        parts = result_of(self.term)
        formula, *where = re.split(r"(?:\\phantom\{)?\\text\{where\}\}?\\ ", flat(text))
        self.clauses = [line.strip() for line in where]
        rest = self.parameters(formula, parts.params)
        for clause in [line for line in self.clauses if r"\mathbb" in line]:
            self.clauses.remove(clause)
            self.sizes_said(clause)
        self.words_apart(text)
        for name, slot in self.evaluator.domains.items():
            # a size with a name stands for how many values its indices have
            if name not in self.env:
                self.env[name] = self.matrices[name] = len(slot.points)
        if parts.bindings:
            bindings, rest = re.split(r"\\mathbf\{in\}(?:\\ )?", rest)
            lines = re.split(r"(?:\\phantom\{)?\\mathbf\{let\}\}?\\ ", bindings)[1:]
            for line, (var, _) in zip(lines, parts.bindings, strict=True):
                self.named_terms()
                self.definition(line.strip(), var, form)
        self.named_terms()
        items = top_level(rest.strip()) if parts.tupled else [rest.strip()]
        kinds = [output.type for output in parts.outputs]
        return [np.asarray(self.value(item, kind, form)) for item, kind in zip(items, kinds, strict=True)]

    def parameters(self, text: str, params: Sequence[Var]) -> str:
        """Take the parameters from the front; what is left."""
        names: list[str] = []
        while len(names) < len(params):
            found = binder(text, 0)
            if found is None:
                raise UnreadableError(f"parameters are missing: {text}")
            names, text = names + found[0], text[found[1] :].lstrip()
        for name, var in zip(names, params, strict=True):
            self.know(name, var.type, self.values[var], var)
        return text

    def words_apart(self, text: str) -> None:
        """Refuse a name that looks as a function does: both are upright words."""
        for word in re.findall(r"\\operatorname\{(\w+)\}|\\([a-z]+)", text):
            if rf"\mathrm{{{''.join(word)}}}" in self.env:
                raise UnreadableError(f"{''.join(word)} is a name and a function")

    def sizes_said(self, clause: str) -> None:
        r"""x \in \mathbb{R}^{n \times m}, A \in …: the sizes of tensors, and whether they are real."""
        for item in clause.split(r",\ "):
            name, field_, sizes = re.fullmatch(r"(.*) \\in \\mathbb\{([RC])\}\^\{(.*)\}", item).groups()
            array = self.env[name].array
            said = sizes.split(r" \times ")
            if len(said) != array.ndim or np.iscomplexobj(array) != (field_ == "C"):
                raise UnreadableError(f"{name} is none of {item}")
            for size, n in zip(said, array.shape, strict=True):
                if self.env.setdefault(size, n) != n:
                    raise UnreadableError(f"{size} stands for two things")
                self.matrices[size] = given(n)
                self.evaluator.domains[size] = Slot(tuple((k,) for k in range(n)))

    def definition(self, line: str, var: Var, form: str) -> None:
        """name = value, or name_{i,j} = entry."""
        left, right = line.split(" = ", 1)
        name, indices = defined(left, len(self.slots(var.type)))
        if indices and (form == "index" or mentioned(right, indices)):
            right = as_map(indices, right)
        else:
            name = left
        if isinstance(var.type, Map) and not var.type.is_tensor:
            # a function that is kept unknown: what it is called with is a matter of its derivatives
            self.derivatives(name, var)
            self.env[name] = self.matrices[name] = None
        else:
            self.know(name, var.type, self.value(right, var.type, form), var)

    def named_terms(self) -> None:
        """What stands in a formula under a name of its own, once all that it is made of is known."""
        for line in list(self.clauses):
            if re.search(r"\((?!\w+_\{\d+\}\)_)", line.split(" = ")[0]) or r"\text" in line:
                continue
            left, right = line.split(" = ", 1)
            name, indices = defined(left, left.count(",") + 1 if "_{" in left else 0)
            node = Parser(as_map(indices, right) if indices else right, frozenset(self.env))
            try:
                found = self.evaluator.value(node.whole(), self.env)
            except UnreadableError:
                continue
            self.clauses.remove(line)
            self.env[name] = found
            self.matrices[name] = given(found.array if isinstance(found, Tensor) else found)

    def value(self, text: str, kind: Type, form: str) -> object:
        """A number or an array: in index form if it is a map of indices, or holds a Σ or an equation."""
        if form == "index" or binder(text, 0) or r"\sum" in text or r"\operatorname{root}" in text:
            return self.in_index_form(text, kind)
        try:
            slots = self.slots(kind)
            return Reader(self.matrices, True, says_rows(self.clauses)).read(
                text, tuple(len(slot.points) for slot in slots)
            )
        except UnreadableError:
            if isinstance(kind, Number):
                return self.in_index_form(text, kind)
            raise

    def in_index_form(self, text: str, kind: Type) -> object:
        node = Parser(text, frozenset(self.env)).whole()
        match node:
            case ("map", names, body):
                found = self.evaluator.mapped(names, body, self.env, self.slots(kind))
            case _:
                found = self.evaluator.value(node, self.env)
        return found.array if isinstance(found, Tensor) else found


def flat(text: str) -> str:
    """A page in one line: what breaks lines and sets margins is gone."""
    text = re.sub(r"\\(begin|end)\{aligned\}\n?", "", text)
    text = " ".join(line.strip().removeprefix("& ").removesuffix("\\\\").strip() for line in text.split("\n"))
    text = re.sub(r"\\phantom\{\\(?:text\{where\}|mathbf\{let\})\}\\qquad", "", text)
    text = re.sub(r"\\phantom\{\\bigl\(\}|\\q?quad(?![a-z])", "", text)
    for size in ("bigg", "big"):
        text = text.replace(rf"\{size}l(", r"\left(").replace(rf"\{size}r)", r"\right)")
    return text.strip()


def top_level(text: str) -> list[str]:
    """The items of \\left(a, b\\right)."""
    for left, right in ((r"\left(", r"\right)"), ("(", ")")):
        if text.startswith(left) and text.endswith(right):
            return split(text.removeprefix(left).removesuffix(right))
    raise UnreadableError(f"no tuple: {text}")


def defined(left: str, rank: int) -> tuple[str, list[str]]:
    """The name and the indices of P_{i,j}; no indices where all of it is a name, as x_{1} may be."""
    cut = left.find(")_{") + 1 if left.startswith("(") else left.find("_{")
    if not rank or cut < 0 or cut == len(left):
        return left, []
    indices = split(left[cut + 2 : -1])
    if len(indices) != rank or all(index.isdigit() for index in indices):
        return left, []
    return left[1 : cut - 1] if left.startswith("(") else left[:cut], indices


def as_map(indices: Sequence[str], entry: str) -> str:
    head = indices[0] if len(indices) == 1 else f"({', '.join(indices)})"
    return rf"{head} \mapsto {entry}"


def mentioned(text: str, indices: Sequence[str]) -> bool:
    """Whether subscripts in `text` speak of `indices`."""
    return any(re.search(r"[{,+-]" + re.escape(index) + r"[},+-]", text) for index in indices)
