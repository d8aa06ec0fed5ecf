"""Plans with directions to source text: what does not depend on a direction is computed once, the rest in a closure.

def gradient_and_hvp(A, x):         the steps that no direction reaches
    Ax = A @ x
    def hvp(k): return …            the steps that one reaches; they see `Ax`
    return 2 * Ax, hvp
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from combdiff.arrays import ops
from combdiff.arrays.passes.overwriting import CAUTIOUS, Overwriting
from combdiff.arrays.plan import Argument, Plan, Step
from combdiff.arrays.uses import origin, uses_in, uses_of
from combdiff.emit.backends.spelling import Spelling
from combdiff.emit.emit import FunctionText, needed_by
from combdiff.emit.modules import Module
from combdiff.emit.statements import writes

_FREE = (ops.Number, ops.Input, ops.Permute, ops.Pick, ops.Flip, ops.Diagonal, ops.Slice, ops.Window)


def emit_with_products(
    plan: Plan,
    directions: Sequence[Argument],
    first: int,
    spelling: Spelling,
    name: str,
    title: str = "",
    over: Overwriting = CAUTIOUS,
) -> str:
    """The text of a plan whose `first` outputs are returned as they are, and the others as a function of `directions`.

    >>> from combdiff.emit.backends.numpy import SPELLING
    >>> from combdiff.arrays.plan import Builder
    >>> from combdiff.terms.types import REAL
    >>> make = Builder().step
    >>> x, k = (make(ops.Input(name), (), (), False) for name in "xk")
    >>> plan = Plan((Argument("x", REAL, step=x),), (x, k), True, {})
    >>> print(emit_with_products(plan, (Argument("k", REAL, step=k),), 1, SPELLING, "both").splitlines()[-1].strip())
    return x, hvp

    `plan.arguments` holds no directions. The closure computes nothing that all directions share.
    """
    module = Module(spelling, name)
    plan = needed_by(plan, module, reached_by(directions, plan))
    text = _WithProducts(plan, directions, module, over).text_from(first, title)
    return module.text(text, packs=bool(plan.packings))


def reached_by(directions: Sequence[Argument], plan: Plan) -> dict[Step, None]:
    """The steps that a direction reaches, in order."""
    names = {d.name for d in directions}
    home = {member: loop for loop in plan.loops for member in loop.steps}
    found: dict[Step, None] = {}
    for step in plan.steps:
        needed = home[step].reads if step in home else step.operands
        if (isinstance(step.op, ops.Input) and step.op.argument in names) or any(o in found for o in needed):
            found[step] = None
    return found


class _WithProducts(FunctionText):
    def __init__(self, plan: Plan, directions: Sequence[Argument], module: Module, over: Overwriting) -> None:
        super().__init__(replace(plan, arguments=(*plan.arguments, *directions)), module, module.name, over)
        self.plan = plan
        self.directions = directions
        self.closure = self.fresh("hvp")
        # what stands before the closure is seen by all its calls, and directions may be of any dtype
        varying = reached_by(directions, self.plan)
        inside = replace(over, alike=False).of(self.plan, partial(writes, self.spelling), self.uses)
        self.over = {step: buffer for step, buffer in self.over.items() if step not in varying}
        self.over |= {step: buffer for step, buffer in inside.items() if step in varying and buffer in varying}
        self.becomes = {buffer: step for step, buffer in self.over.items()}

    def text_from(self, first: int, title: str) -> str:
        """The function, whose outputs from number `first` on are those of the closure."""
        varying = reached_by(self.directions, self.plan)
        steady = [step for step in self.plan.steps if step not in varying]
        inside, outputs = self.plan.outputs[first:], self.plan.outputs[:first]
        for step in steady:
            if self.uses[step]:
                self.add(step)
        mentioned = [o for step in varying if step not in self.loops for o in uses_of(step)]
        mentioned += [o for loop in self.plan.loops if loop.steps[0] in varying for o in uses_in(loop)]
        seen = [o for o in mentioned if o not in varying]
        seen += [step for step in inside if step not in varying]
        for step in seen:
            self._kept(step)
        results = self.results(outputs, {origin(step) for step in seen})
        outer, self.lines = self.lines, []
        outside = f"{' '.join(results)} {' '.join(self.texts[step].code for step in seen)}"
        for step in varying:
            if self.uses[step]:
                self.add(step)
        returned = ", ".join(self.results(inside, steady))
        names = ", ".join(self.arguments[d.name] for d in self.directions)
        closure = [f"def {self.closure}({names}):"]
        outer = self.released(outer, outside)
        body = [*self._about_closure(names), *self.released([*self.lines, f"return {returned}"])]
        closure += [f"    {line}" if line else "" for line in body]
        told = "the value, the gradient" if first > len(self.directions) else "the gradient"
        at = f"({names})" if len(self.directions) > 1 else names
        about = (
            f"{title.rstrip()}\n\nReturns {told}, and {self.closure}({names}), the Hessian at that point times {at}."
        )
        code = [*outer, "", *closure, "", f"return {', '.join([*results, self.closure])}"]
        inner = [*self.docstring(about), *self._device(code), *self.preamble(), *code]
        return "\n".join([self.header(), *(f"    {line}" if line else "" for line in inner)]) + "\n"

    def _kept(self, step: Step) -> None:
        """A value that the closure sees gets its name outside; a view of one that has a name costs nothing."""
        viewed = step
        while isinstance(viewed.op, _FREE) and viewed.operands and not self.texts[viewed].code.isidentifier():
            viewed = viewed.operands[0]
        if not viewed.operands and isinstance(viewed.op, _FREE):
            return
        if not self.texts[viewed].code.isidentifier():
            self.name_now(step)

    def _about_closure(self, names: str) -> list[str]:
        rows = [self.described(d) for d in self.directions]
        return [f'"""The Hessian at this point times {names}.', "", *rows, '"""']
