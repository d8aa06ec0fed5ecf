"""The solvers that emitted source brings along, as text: it stands alone, so that each is written into it once."""

from __future__ import annotations

from combdiff.arrays import ops
from combdiff.arrays.plan import Step
from combdiff.emit.backends.spelling import Spelling

NEWTON = '''def newton(equation, x, steps=60):
    """The x at which the residual is 0; equation(x) is the residual and its Jacobian matrix."""
    n = np.size(x)
    for _ in range(steps):
        residual, slopes = equation(x)
        step = np.linalg.solve(np.reshape(slopes, (n, n)), np.ravel(residual)).reshape(np.shape(x))
        share = 1.0
        while share > 1e-6 and np.linalg.norm(equation(x - share * step)[0]) > np.linalg.norm(residual):
            share /= 2
        x = x - share * step
        if np.linalg.norm(step) <= 1e-12 * max(1.0, np.linalg.norm(x)):
            return x
    raise ArithmeticError("Newton's method finds no root from where it starts")'''

NEWTON_OF_PARTS = '''def newton_of_parts(equation, x, steps=60):
    """The complex x at which the residual is 0; equation(x) is it, and its pullback of units and of i times units."""
    n = np.size(x)
    for _ in range(steps):
        residual, of_one, of_i = equation(x)
        columns = [np.reshape(part, (n, n)) for part in (of_one, of_i)]
        slopes = np.block([[part.real for part in columns], [part.imag for part in columns]]).T
        step = np.linalg.solve(slopes, np.concatenate([np.ravel(residual).real, np.ravel(residual).imag]))
        step = (step[:n] + 1j * step[n:]).reshape(np.shape(x))
        share = 1.0
        while share > 1e-6 and np.linalg.norm(equation(x - share * step)[0]) > np.linalg.norm(residual):
            share /= 2
        x = x - share * step
        if np.linalg.norm(step) <= 1e-12 * max(1.0, np.linalg.norm(x)):
            return x
    raise ArithmeticError("Newton's method finds no root from where it starts")'''

SOLVE_OF_PARTS = '''def solve_of_parts(of_one, of_i, k):
    """The y with H(y) = k, for an H linear over the reals with these values on units and on i times units."""
    n = np.size(k)
    columns = [np.reshape(part, (n, n)) for part in (of_one, of_i)]
    matrix = np.block([[part.real for part in columns], [part.imag for part in columns]])
    y = np.linalg.solve(matrix, np.concatenate([np.ravel(k).real, np.ravel(k).imag]))
    return (y[:n] + 1j * y[n:]).reshape(np.shape(k))'''

SOLVERS = {"newton": NEWTON, "newton_of_parts": NEWTON_OF_PARTS, "solve_of_parts": SOLVE_OF_PARTS}


def solver_text(name: str, spelling: Spelling) -> str:
    """The solver in the words of an array library."""
    text = SOLVERS[name]
    for word, own in spelling.solver_words.items():
        text = text.replace(word, own)
    return text


def solver_of(step: Step) -> str:
    """The name of the solver that the text of a step calls, empty if none."""
    match step.op:
        case ops.Root(equation):
            return "newton" if len(equation.plan.outputs) == 2 else "newton_of_parts"
        case ops.Solve() if len(step.operands) > 2:
            return "solve_of_parts"
        case _:
            return ""
