"""Which solvers the text of a step calls, and so brings along."""

from __future__ import annotations

from combdiff.arrays import ops
from combdiff.arrays.plan import Root, Scan, Step
from combdiff.arrays.uses import may_miss
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.solvers.library import with_callees
from combdiff.terms.nodes import OBLONG


def solvers_of(step: Step, spelling: Spelling) -> list[str]:
    """The names of the solvers that the text of a step needs: what one calls comes first."""
    name = solver_of(step, spelling)
    own = (
        isinstance(step.op, ops.OfMatrices)
        and step.op.kind in OBLONG
        and not isinstance(step.operands[0].op, ops.Factors)
    )
    watching = _watching(spelling) if isinstance(step.op, Scan) else ()
    inverted = "inverted" if isinstance(step.op, Root) and step.op.equation.inverse else ""
    return with_callees(filter(None, ("svd" if own else "", name, inverted, *watching)), spelling)


def _watching(spelling: Spelling) -> tuple[str, ...]:
    """The functions that watch the states of loops, where that is asked for."""
    if not spelling.watches:
        return ()
    return ("watch_first", "watch_states") if spelling.loops else ("watched_scan",)


IN_LIBRARIES = {"det": "det({})", "inv": "inv({})", "logabsdet": "slogdet({})[1]", "eigvals": "eigvalsh({})"}
"""Functions of matrices that array libraries have."""


_ALWAYS: dict[type[ops.Op], str] = {
    ops.Norm: "euclidean_norm",
    ops.Recursive: "linear_recurrence",
    ops.Correlated: "correlated",
    ops.CumulativeLogSumExp: "cumulative_logsumexp",
    ops.CumulativeExponentials: "cumulative_exponentials",
    ops.Occurring: "occurring",
}
"""What each step with such an operation calls."""


def solver_of(step: Step, spelling: Spelling) -> str:
    """The name of the solver that the text of a step calls, empty if none."""
    match step.op:
        case op if type(op) in _ALWAYS:
            return _ALWAYS[type(op)]
        case ops.Power() if is_every_power(step, step.op):
            return "powers"
        case ops.Gather() if any(map(may_miss, step.operands[1:])):
            return "with_an_entry"
        case ops.Windows(shared=shared):
            return "windows" if shared is None else "overlapping_windows"
        case ops.Grouped() | ops.CumulativeExtremum() | ops.CumulativeTies() as op:
            return _of_extrema(op, spelling)
        case ops.Scatter(adds=True) | ops.Cross() | Scan():
            return _in_place_of_the_library(step.op, spelling)
        case Root(equation):
            return _newton(*equation.plan.outputs)
        case ops.Factors(singular=True):
            return "svd"
        case ops.Factors(positive, eigen):
            return "cholesky" if positive else "" if eigen else "lu_factors"
        case ops.OfMatrices(kind, hermitian=True):
            return f"hermitian_{kind}"
        case ops.OfMatrices("svdvals"):
            return "" if isinstance(step.operands[0].op, ops.Factors) else "svd"
        case ops.OfMatrices(kind) if kind in ops.FACTORED and isinstance(step.operands[0].op, ops.Factors):
            return f"{'cholesky' if step.operands[0].op.positive else 'lu'}_{kind}"
        case ops.OfMatrices(kind):
            return "" if kind in IN_LIBRARIES else kind
        case ops.Solve() if len(step.operands) > 2:
            return "solve_of_parts"
        case ops.Solve(triangular=True):
            return "triangular_solution"
        case ops.Solve() if isinstance(step.operands[0].op, ops.Factors):
            return "cholesky_solution" if step.operands[0].op.positive else "lu_solution"
        case _:
            return ""


def _in_place_of_the_library(op: ops.Op, spelling: Spelling) -> str:
    """The solver that does what a library does not do itself."""
    match op:
        case ops.Cross():
            return "" if spelling.cross else "cross_product"
        case Scan():
            return "" if spelling.loops else "scan"
        case _:
            return "" if spelling.add_at else spelling.added_at


def _of_extrema(op: ops.Grouped | ops.CumulativeExtremum | ops.CumulativeTies, spelling: Spelling) -> str:
    match op:
        case ops.Grouped(kind=kind):
            return f"{kind}_at"
        case ops.CumulativeExtremum(kind=kind):
            return "" if spelling.accumulate else f"cumulative_{kind}"
        case ops.CumulativeTies(back=back):
            return "sums_of_cumulative_ties" if back else "means_of_cumulative_ties"


def _newton(residual: Step, *slopes: Step) -> str:
    """Newton's method: for a Jacobian matrix, its two parts, or slopes of each entry by its own unknown."""
    if len(slopes) > 1:
        return "newton_of_parts"
    return "newton_of_entries" if residual.rank and slopes[0].rank == residual.rank else "newton"


def is_every_power(step: Step, op: ops.Power) -> bool:
    """Whether the exponent takes the values 0, 1, 2, … along an axis of its own: x(i)^j."""
    base, exponent = step.operands
    (of_base, of_exponent) = op.places
    if not isinstance(exponent.op, ops.Numbers) or not base.rank or base.rank + 1 != step.rank:
        return False
    (domain,) = exponent.domains
    return of_exponent[0] not in of_base and domain.first(2) == 0
