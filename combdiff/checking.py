"""The numerical check of a derivation: finite differences of what was differentiated, and the emitted code.

For random unknowns z, directions dz and cotangents k the pullback must satisfy Re⟨𝒫(f)(z, k), dz⟩ = Re⟨k, f'(z) dz⟩
(Eq. 44), where f is evaluated by `language/evaluate.py`, so that no rule of the calculus takes part in the right side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from combdiff.calculus.modes import without_derivatives
from combdiff.errors import UnsupportedError
from combdiff.language.evaluate import evaluate
from combdiff.language.linear_maps import LinearMap
from combdiff.language.points import listed
from combdiff.language.samples import default_sizes, random_value
from combdiff.language.terms import Diff, Lam, Let, Term, Var, let, subterms
from combdiff.language.types import Domain, Index, Map, Product, Type, is_complex
from combdiff.language.values import Value
from combdiff.language.vocabulary import DERIVATIVES, LINEAR

if TYPE_CHECKING:
    from combdiff.codegen.plan import Argument
    from combdiff.derivation import Derivation

Numbers: TypeAlias = npt.NDArray[np.complex128]

TOLERANCE = 1e-6
_STEP = 1e-3


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison: what was compared and the relative difference."""

    what: str
    difference: float

    @property
    def passed(self) -> bool:
        return self.difference <= TOLERANCE


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a check; false if one of them failed. `notes` say what could not be compared."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return all(f.passed for f in self.findings)

    def __str__(self) -> str:
        lines = (
            f"{'ok    ' if f.passed else 'FAILED'}  {f.what}: relative difference {f.difference:.1e}"
            for f in self.findings
        )
        return "\n".join([*lines, *(f"        {note}" for note in self.notes)])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        from combdiff.jupyter.display import report_bundle

        return report_bundle(self)


def check(d: Derivation, seed: int = 0) -> Report:
    """Compare `d` with finite differences and with its emitted NumPy code; see `Derivation.check`.

    >>> import combdiff as cd
    >>> [finding.what for finding in check(cd.grad("(x::RV) -> sum(i, x(i)^2)")).findings]
    ['finite differences', 'emitted NumPy code']

    Raises:
        UnsupportedError: nothing can be compared: no value is finite, or something is a function of the real line.
    """
    if not isinstance(seed, int) or seed < 0:
        raise UnsupportedError(
            f"a seed is an integer that is not negative, and this is {seed!r}", remedy="give 0 or more"
        )
    rng = np.random.default_rng(seed)
    f = d.objective
    _refuse_functions(f)
    sizes = default_sizes(d.term, seed=seed)
    body = without_derivatives(f.body) if d.mode != "hvp" else _innermost(d.gradient.term, f)
    with np.errstate(all="ignore"):
        values = _sample(d, body, sizes, rng)
        result = evaluate(_innermost(d.term, f), values, sizes)
        findings = [Finding("finite differences", _against_differences(d, body, result, values, sizes, rng))]
        try:
            findings.append(Finding("emitted NumPy code", _against_code(d, result, values, sizes)))
        except UnsupportedError as refusal:
            if not _unrunnable(d.term):
                raise
            return Report(tuple(findings), (f"emitted NumPy code: not compared, {refusal.message}",))
    return Report(tuple(findings))


_DRAWS = 6
_AWAY = 0.5  # from zero: much farther than a difference steps


def _sample(d: Derivation, body: Term, sizes: dict[Domain, int], rng: np.random.Generator) -> dict[Term, Value]:
    """Random values where `body`, which was differentiated, is finite: a real log or root wants positive ones."""
    for draw in range(_DRAWS):
        values = _values(d.term, sizes, rng)
        if draw >= _DRAWS // 2:
            values = {v: _positive(v.type, value) for v, value in values.items()}
        for t in (d.term, d.objective, body):
            _add_derivatives(values, t, sizes)
        if all(np.isfinite(x).all() for x in _items(evaluate(body, values, sizes))):
            return values
    raise UnsupportedError(
        "the program has no finite value on random numbers, so there is nothing to compare",
        remedy="check it with arguments of functions such as log that stay in their range",
    )


def _positive(kind: Type, value: Value) -> Value:
    """Positive numbers instead of real ones; an array with declared symmetries keeps what it has."""
    if is_complex(kind) or isinstance(kind, Index) or (isinstance(kind, Map) and kind.symmetries):
        return value
    if isinstance(value, np.ndarray):
        return np.abs(value) + _AWAY
    return abs(value) + _AWAY if isinstance(value, int | float) else value


def _refuse_functions(f: Lam) -> None:
    """A function of real numbers has no finite list of entries to compare."""
    values = f.body.type.items if isinstance(f.body.type, Product) else (f.body.type,)
    for kind in (*(x.kind for x in f.params), *values):
        if isinstance(kind, Map) and not kind.is_tensor:
            raise UnsupportedError(
                "a derivative by a function of the real line, or of one, cannot be checked on numbers",
                remedy="check the program with a periodic domain in the place of R",
            )


def _unrunnable(t: Term) -> bool:
    """Whether `t` may have no array code: it holds an unknown map, which code cannot call in a loop over indices."""
    return any(isinstance(u, Diff) for u in subterms(t))


def _values(t: Term, sizes: dict[Domain, int], rng: np.random.Generator) -> dict[Term, Value]:
    """Random values for all parameters; for an unknown map of tensors a smooth function of their entries."""
    values: dict[Term, Value] = {}
    while isinstance(t, Lam):
        for p in t.params:
            try:
                values[p] = random_value(p.kind, sizes, rng)
            except UnsupportedError:
                values[p] = _smooth_map(p.kind, rng)
        t = t.body
        if not _has_unknowns(t):
            break
    return values


def _has_unknowns(t: Term) -> bool:
    """Whether `t` is a further map of arguments, rather than a result indexed by its slots."""
    return isinstance(t, Lam) and not (isinstance(t.type, Map) and t.type.is_tensor)


def _smooth_map(kind: Type, rng: np.random.Generator) -> Callable[..., Value]:
    """A smooth real function of the entries of tensors, in the place of an unknown one."""
    assert isinstance(kind, Map), "only maps are unknown"
    if isinstance(kind.result, Map | Product) or any(isinstance(p, Map) and not p.is_tensor for p in kind.params):
        raise UnsupportedError(
            "an unknown map of functions, or of tensors to tensors, has no random value to be checked with",
            remedy="define the map in the program, or compare with numbers of your own",
        )
    weights = rng.normal(size=256)

    def function(*args: Value) -> Value:
        entries = [np.ravel(x.real) for a in args for x in _items(a)]
        total = 0.3 + sum(float(np.resize(weights[n:], x.size) @ x) for n, x in enumerate(entries))
        return float(np.sin(total) + 0.1 * total * total)

    return function


def _innermost(t: Term, f: Lam) -> Term:
    """The body of the derivative, below the parameters that it shares with f and below its cotangents."""
    while isinstance(t, Lam):
        if t.params[: len(f.params)] == f.params:
            return t.body
        t = t.body
    raise UnsupportedError(
        "this result is no map of what was differentiated, and cannot be checked on numbers",
        remedy="write the derivative outermost below the leading maps",
    )


def _add_derivatives(values: dict[Term, Value], t: Term, sizes: dict[Domain, int]) -> None:
    """Differences in the place of the derivatives of maps that are unknown, or defined in `t` and kept unknown."""
    bindings = [binding for u in subterms(t) if isinstance(u, Let) for binding in u.bindings]
    kept = [var for var, e in bindings if isinstance(e, Lam) and isinstance(e.type, Map) and not e.type.is_tensor]
    derivatives = sorted((u for u in subterms(t) if isinstance(u, Diff)), key=_order)
    for source in (None, *kept):
        if source is not None:
            values[source] = evaluate(let(bindings, source), values, sizes)
        for u in derivatives:
            given = values.get(u.of)
            if u in values or not callable(given):
                continue
            if u.kind == "root":
                values[u] = evaluate(u, values, sizes)
            if isinstance(given, LinearMap) and u.kind in LINEAR:
                values[u] = given.adjoint if u.kind == "adjoint" else given.inverse
            elif u.kind in DERIVATIVES:
                values[u] = _difference_quotient(given, u.kind)


def _order(t: Term) -> int:
    """How often an unknown map is differentiated: inner derivatives are needed first."""
    return 1 + _order(t.of) if isinstance(t, Diff) else 0


def _difference_quotient(g: Callable[..., Value], kind: str) -> Callable[..., Value]:
    """𝒫(g)(x, k), or ∇g(x), entry by entry from differences along the real and the imaginary axis."""

    def entries(*args: Value) -> Value:
        points, k = (args[:-1], args[-1]) if kind == "pullback" else (args, 1.0)
        parts = [_partials(g, points, n, k) for n in range(len(points))]
        return parts[0] if len(parts) == 1 else tuple(parts)

    return entries


def _partials(g: Callable[..., Value], points: Sequence[Value], n: int, k: Value) -> Value:
    at = np.asarray(points[n])
    over_complex = at.dtype.kind == "c"
    result = np.zeros(at.shape, complex)
    for place in np.ndindex(at.shape):
        for unit in (1.0, 1j) if over_complex else (1.0,):
            direction = np.zeros(at.shape, complex if over_complex else float)
            direction[place] = unit

            def along(h: float, direction: Numbers | npt.NDArray[np.float64] = direction) -> Value:
                moved = np.asarray(at + h * direction)
                return g(*points[:n], moved if moved.ndim else moved.item(), *points[n + 1 :])

            result[place] += unit * _inner(k, _slope(along))
    entries = result if over_complex else result.real
    return entries if entries.ndim else entries.item()


def _slope(along: Callable[[float], Value]) -> list[Numbers]:
    """The derivative at 0 of each item, to fourth order in the step."""
    h = _STEP
    at = {s: _items(along(s * h)) for s in (-2, -1, 1, 2)}
    quadruples = zip(at[-2], at[-1], at[1], at[2], strict=True)
    return [(8 * (near - back) - (far - behind)) / (12 * h) for behind, back, near, far in quadruples]


def _inner(a: Value, b: Sequence[Numbers]) -> float:
    """Re⟨a, b⟩, summed over the items of tuples."""
    return sum(float(np.real(np.sum(np.conj(x) * y))) for x, y in zip(_items(a), b, strict=True))


def _against_differences(
    d: Derivation,
    body: Term,
    result: Value,
    values: dict[Term, Value],
    sizes: dict[Domain, int],
    rng: np.random.Generator,
) -> float:
    """The largest relative difference over a few random directions."""
    f = d.objective
    cotangents = _cotangents(d.term, f)
    k: Value = 1.0
    if cotangents:
        k = values[cotangents[0]] if len(cotangents) == 1 else tuple(values[c] for c in cotangents)
    cotangent_of = tuple(result) if isinstance(result, tuple) else (result,)
    if any(_is_beyond(x.kind, g) for x, g in zip(f.params, cotangent_of, strict=True)):
        return float("inf")
    worst = 0.0
    for _ in range(3):
        directions = [_direction(x.kind, sizes, rng) for x in f.params]

        def along(h: float, directions: Sequence[Value] = directions) -> Value:
            moved: dict[Term, Value] = {x: _moved(values[x], dx, h) for x, dx in zip(f.params, directions, strict=True)}
            return evaluate(body, {**values, **moved}, sizes)

        expected = _inner(k, _slope(along))
        rounding = float(np.finfo(float).eps) * sum(np.sum(np.abs(x)) for x in _items(along(0.0))) / _STEP
        found = sum(_inner(g, _items(dx)) for g, dx in zip(cotangent_of, directions, strict=True))
        worst = _larger(worst, abs(found - expected) / max(1.0, abs(expected), rounding / TOLERANCE))
    return worst


def _is_beyond(kind: Type, cotangent: Value) -> bool:
    """Whether the derivative by a real variable has an imaginary part, which no difference would show."""
    return not is_complex(kind) and any(np.abs(x.imag).max(initial=0.0) > TOLERANCE for x in _items(cotangent))


def _cotangents(t: Term, f: Lam) -> tuple[Var, ...]:
    while isinstance(t, Lam):
        if t.params[: len(f.params)] == f.params:
            return t.params[len(f.params) :]
        t = t.body
    return ()


def _direction(kind: Type, sizes: dict[Domain, int], rng: np.random.Generator) -> Value:
    """A direction in the full space: declared symmetries are not kept."""
    free = Map(kind.params, kind.result) if isinstance(kind, Map) else kind
    return random_value(free, sizes, rng)


def _moved(at: Value, direction: Value, h: float) -> Value:
    if callable(at) and callable(direction):
        return lambda *args: _sum(at(*args), direction(*args), h)
    return _sum(at, direction, h)


def _sum(at: Value, direction: Value, h: float) -> Value:
    """at + h·direction for numbers and arrays."""
    assert not isinstance(at, tuple) and not callable(at), "a number or an array"
    assert not isinstance(direction, tuple) and not callable(direction), "a number or an array"
    moved: Value = np.asarray(at) + h * np.asarray(direction)
    return moved


def _against_code(d: Derivation, result: Value, values: dict[Term, Value], sizes: dict[Domain, int]) -> float:
    """The emitted function on the same arrays."""
    named = {_argument(v): _elementwise(v, value) for v, value in values.items()}
    f = d.compile("numpy", check=False)
    found = f(*(_given(a, named, sizes) for a in f.arguments if not a.optional))
    pairs = zip(_items(found), _items(result), strict=True)
    worst = 0.0
    for a, b in pairs:
        scale = max(1.0, float(np.max(np.abs(b), initial=0.0)))
        worst = _larger(worst, float(np.max(np.abs(a - b), initial=0.0)) / scale)
    return worst


def _larger(worst: float, difference: float) -> float:
    """The larger of two differences; one that is not a number is no agreement."""
    return float("inf") if np.isnan(difference) else max(worst, difference)


def _given(a: Argument, named: dict[str, object], sizes: dict[Domain, int]) -> object:
    """The value of an argument, a list of offsets, or the size that emitted code asks for where no array shows it."""
    if a.offsets is not None:
        return listed(a.offsets, sizes).rows
    if a.name not in named and isinstance(a.kind, Index) and a.kind.domain is not None:
        return sizes[a.kind.domain]
    return named[a.name]


def _argument(v: Term) -> str:
    match v:
        case Var(name):
            return name
        case Diff(kind, of):
            return f"{kind}_{_argument(of)}"
    raise AssertionError("values are given to variables and to derivatives of unknown maps")


def _elementwise(v: Term, value: Value) -> object:
    """A map of numbers is called with whole arrays by emitted code."""
    kind = v.type
    numbers = isinstance(kind, Map) and not any(isinstance(p, Map) for p in (*kind.params, kind.result))
    return np.vectorize(value) if callable(value) and numbers else value


def _items(value: object) -> list[Numbers]:
    """The items of a tuple, or the one value, as complex arrays."""
    return [np.asarray(v, dtype=complex) for v in (value if isinstance(value, tuple) else (value,))]
