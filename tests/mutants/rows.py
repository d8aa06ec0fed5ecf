"""Mutants of the two tables: a scalar function's derivative, and what its row says of it; the primitives' pullbacks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.mutants.mutant import Mutant, inside, source

SCALARS = "combdiff/terms/scalars.py"
PRIMITIVES = "combdiff/calculus/primitives.py"
OF_SCALARS = (
    "tests/terms/test_scalars.py",
    "tests/calculus/test_primitives.py",
    "tests/paper/test_scalar_functions.py",
    "tests/simplify",
    "tests/emit/test_backends.py",
    "tests/language",
)
OF_PRIMITIVES = ("tests/calculus", "tests/paper/test_equations.py", "tests/golden", "tests/paper")

PULLBACKS = (
    ("conj", "CONJUGATE", "conj, lambda v, k: conj(k)", "conj, lambda v, k: k"),
    ("conj, tangent not conjugated", "CONJUGATE", "conj(k), lambda v, k: conj(k)", "conj(k), lambda v, k: k"),
    ("ι", "INCLUSION", "included(k, v.type)", "k"),
    ("mul, without conj", "multiply", "mul(conj(by), k)", "mul(by, k)"),
    ("add, with a minus", "add_to", "lambda v, k: k, lambda v, k: k", "lambda v, k: neg(k), lambda v, k: k"),
    ("mul, tangent with conj", "multiply", "mul(by, k), by", "mul(conj(by), k), by"),
    ("plus, one item only", "plus", "Tuple((k,) * count)", "Tuple((k, *(ZERO,) * (count - 1)))"),
    ("Σ, with a minus", "contract", "lam(indices, k)", "lam(indices, neg(k))"),
    ("pow, exponent not lowered", "raise_to", "add(exponent, neg(ONE))", "exponent"),
    ("pow, without its exponent", "raise_to", "mul(conj(exponent), conj(lowered(v)), k)", "mul(conj(lowered(v)), k)"),
    ("pow, without conj", "raise_to", "mul(conj(exponent), conj(lowered(v)), k)", "mul(exponent, lowered(v), k)"),
    ("exp_a, without log", "exponential", 'call("log", base)', "ONE"),
    ("exp_a, without conj", "exponential", "mul(conj(slope(v)), k)", "mul(slope(v), k)"),
    ("scalar, without conj", "scalar", "mul(conj(slope), part)", "mul(slope, part)"),
    ("item, the next one", "item", "n == number", "n == (number + 1) % len(of.items)"),
    ("δ, condition lost", "where_equal", "step, lambda v, k: step(k)", "step, lambda v, k: k"),
    ("indicator, condition lost", "where_ordered", "inside(condition_of(node), k)", "k"),
    ("apply, adjoint lost", "unknown", 'apply(diff("adjoint", function), k)', "apply(function, k)"),
    ("apply, gradient not scaled", "unknown", "return _scaled(gradient, k)", "return gradient"),
)


def mutants() -> Iterator[Mutant]:
    """All mutants of both tables."""
    yield from _scalars()
    for name, scope, old, new in PULLBACKS:
        yield Mutant(f"primitive {name}", PRIMITIVES, inside(PRIMITIVES, scope, old, new), OF_PRIMITIVES)


def _scalars() -> Iterator[Mutant]:
    text = source(SCALARS)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ScalarFunction":
            row = ast.get_source_segment(text, node)
            assert row is not None, "a row of the table"
            for fault, changed in _faults(node, row, text):
                assert changed != row, "a fault changes the row"
                yield Mutant(f"scalar {_name(node)} [{fault}]", SCALARS, text.replace(row, changed, 1), OF_SCALARS)


def _name(row: ast.Call) -> str:
    (first, *_) = row.args
    assert isinstance(first, ast.Constant), "a row begins with its name"
    return str(first.value)


def _faults(row: ast.Call, written: str, text: str) -> Iterator[tuple[str, str]]:
    """What is wrong, and the row with it."""
    for rule in (*row.args[3:], *(word.value for word in row.keywords if word.arg in ("derivative", "pullback"))):
        code = ast.get_source_segment(text, rule)
        assert code is not None, "a rule of the row"
        if isinstance(rule, ast.Lambda):
            body = ast.get_source_segment(text, rule.body)
            assert body is not None, "a lambda has a body"
            for fault, wrong in ("doubled", "mul(TWO, {})"), ("negated", "neg({})"):
                # a tuple has the derivatives by several numbers; steps have none
                several = isinstance(rule.body, ast.Tuple) or body.startswith("tuple(")
                changed = f"tuple({wrong.format('u')} for u in {body})" if several else wrong.format(body)
                if body != "ZERO":
                    yield f"derivative {fault}", written.replace(code, f"{code.removesuffix(body)}{changed}")
        else:
            yield "derivative doubled", written.replace(code, f"lambda *z: mul(TWO, {code}(*z))")
    flags = {word.arg: ast.get_source_segment(text, word.value) for word in row.keywords}
    if "of_reals" in flags:
        return
    for flag in ("commutes", "real_valued"):
        if flag in flags:
            yield f"{flag} is not said", written.replace(f"{flag}=True", f"{flag}=False")
        else:
            yield f"{flag} is said", f"{written[:-1].rstrip().rstrip(',')}, {flag}=True)"
    if "cut" in flags:
        # of other functions, a row that says it costs terms and is not wrong
        yield "cut is not said", written.replace(f"cut={flags['cut']}", 'cut=""')
        other = '"others"' if "below" in str(flags["cut"]) else '"below zero"'
        yield "cut is said to lie elsewhere", written.replace(f"cut={flags['cut']}", f"cut={other}")
    parity = int(flags.get("parity") or 0)
    for wrong in {-1, 0, 1} - {parity}:
        changed = written.replace(f"parity={parity}", f"parity={wrong}")
        if "parity" not in flags:
            changed = f"{written[:-1].rstrip().rstrip(',')}, parity={wrong})"
        yield f"parity {wrong}", changed
