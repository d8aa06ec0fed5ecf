"""Stretches of entry-by-entry steps as one kernel: a pass over memory instead of one for every step.

y = 2 * x * exp(-x**2)      five passes, four temporary arrays
y = kernel(x)               one pass; the kernel's text stands above the function

A stretch is a step with all those before it that only it needs, of the same shape. Kernels are written in C++, with
doubles and `complex<double>`, for libraries whose spelling has a `kernel` (CuPy's `ElementwiseKernel`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from combdiff.arrays import ops
from combdiff.arrays.plan import Plan, Step
from combdiff.emit.kernel_text import KernelText, is_written

_MOST_OPERANDS = 16  # what a kernel is called with has to fit in a few kilobytes


def definition(kernel: ops.Fused, template: str) -> str:
    """The text of a kernel, in the spelling of a library."""
    body = f'"{kernel.statements[0]}"'
    if len(kernel.statements) > 1 or "\n" in body:
        lines = [f"    {line}" for statement in kernel.statements for line in f"{statement};".split("\n")]
        body = "\n".join(['"""', *lines, '    """'])
    return template.format(kernel.function, kernel.parameters, kernel.result, body)


def with_kernels(plan: Plan, taken: Collection[str] = (), late: Collection[Step] = ()) -> Plan:
    """The plan with a step `kernel` for every stretch of at least two steps.

    >>> from combdiff.arrays.plan import Argument, Builder
    >>> from combdiff.terms.terms import TWO
    >>> from combdiff.terms.types import REAL, Domain, Index, Map
    >>> make, n = Builder().step, Domain("n")
    >>> x = make(ops.Input("x"), (), (n,), False)
    >>> y = make(ops.Mul(TWO, places=((0,),)), (make(ops.Call("exp", places=((0,),)), (x,), (n,)),), (n,))
    >>> plan = with_kernels(Plan((Argument("x", Map((Index(n),), REAL), step=x),), (y,), False, {}))
    >>> plan.outputs[0].op.function, plan.outputs[0].op.statements
    ('kernel', ('out = 2.0 * exp(x)',))

    No kernel gets a name that is `taken`, and no stretch joins steps that are `late` with others.
    """
    stretches = _stretches(plan, late)
    inside = {step for members in stretches.values() for step in members} - stretches.keys()
    lists = {a.step for a in plan.arguments if (a.offsets is not None or a.of_integers) and a.step is not None}
    made: dict[Step, Step] = {}
    known: dict[object, str] = {}
    for step in plan.steps:
        if step in stretches:
            text = KernelText(stretches[step], plan.names, lists)
            content = (text.parameters, step.complex, text.statements)
            called = known.setdefault(content, _called(plan.names.get(step, ""), {*known.values(), *taken}))
            result = "complex128 out" if step.complex else "float64 out"
            op = ops.Fused(called, text.parameters, result, text.statements, places=text.places)
            operands = tuple(made[o] for o in text.operands)
            made[step] = Step(op, operands, step.domains, step.complex)
        elif step not in inside:
            operands = tuple(made[o] for o in step.operands)
            made[step] = step if operands == step.operands else replace(step, operands=operands)
    names = {made[step]: given for step, given in plan.names.items() if step in made}
    return replace(plan, outputs=tuple(made[o] for o in plan.outputs), names=names)


def with_definitions(plan: Plan, template: str, taken: Collection[str], late: Collection[Step] = ()) -> Plan:
    """The plan with kernels, if a library has a spelling for them, under names that are not `taken`.

    A plan with loops has none: a loop is there for its small arrays, which steps that are written over keep as small.
    """
    if not template or plan.loops:
        return plan
    return with_kernels(plan, taken, late)


def _called(result: str, taken: Collection[str]) -> str:
    """A name for the kernel of a result; CUDA knows Latin letters only."""
    base = f"{result}_kernel" if result and result.isascii() and result.isidentifier() else "kernel"
    numbered = (base if n == 1 else f"{base}{n}" for n in range(1, len(taken) + 2))
    return next(chosen for chosen in numbered if chosen not in taken)


def _stretches(plan: Plan, late: Collection[Step]) -> dict[Step, list[Step]]:
    """The members of each stretch in order, by its last step."""
    users: dict[Step, list[Step]] = defaultdict(list)
    for step in plan.steps:
        for operand in set(step.operands):
            users[operand].append(step)
    home: dict[Step, Step] = {}
    for step in filter(is_written, reversed(plan.steps)):
        own = users[step]
        if own and step not in plan.outputs and all(u in home and _in_place(u, step) for u in own):
            root = home[own[0]]
            if all(home[u] is root for u in own) and (step in late) == (root in late):
                home[step] = root
                continue
        if not isinstance(step.op, ops.Conj):  # what is conjugated last is conjugated by the product that it enters
            home[step] = step
    found: dict[Step, list[Step]] = defaultdict(list)
    for step in plan.steps:
        if step in home:
            found[home[step]].append(step)
    return {root: members for root, members in found.items() if _is_worthwhile(members)}


def _is_worthwhile(members: Sequence[Step]) -> bool:
    return len(members) > 1 and len(_outside(members)) <= _MOST_OPERANDS


def _outside(members: Iterable[Step]) -> set[Step]:
    inside = set(members)
    return {o for step in inside for o in step.operands if o not in inside}


def _in_place(user: Step, step: Step) -> bool:
    """Whether every entry of `user` needs the same entry of `step`."""
    found = [at for o, at in zip(user.operands, user.rows, strict=False) if o is step]
    return step.domains == user.domains and all(at == tuple(range(step.rank)) for at in found)
