"""The plain evaluator: a plan is compiled once, and run for every window content.

Invariant: this is the law. Its answer is the meaning of the query; every incremental result is compared with it.
"""

from __future__ import annotations

from itertools import islice

from anabranch.algebra.operators import Operator
from anabranch.model.values import Value
from anabranch.snapshot.context import Context, out_of_memory
from anabranch.snapshot.operators import compile_operator

PlainRows = list[tuple[Value, ...]]

_STRETCH = 1 << 16  # rows between two checks of their number


class CompiledPlan:
    """A plan ready to run. `columns` name the values of each row; names that begin with a space are anonymous."""

    def __init__(self, plan: Operator, argument: tuple[str, ...] = ()) -> None:
        self.plan = plan
        self.columns = plan.columns
        self._rows = compile_operator(plan, argument)

    def run(self, context: Context, argument: tuple[Value, ...] = ()) -> PlainRows:
        """Return all rows, over the graphs of the context. The budget is reset."""
        context.begin()
        source, found, width = self._rows(context, argument), [], len(self.columns)
        try:
            while part := list(islice(source, _STRETCH)):
                found += part
                context.hold(len(found), width)
        except MemoryError:
            raise out_of_memory(type(self.plan).__name__, self.plan.span) from None
        return found


def compile_plan(plan: Operator, argument: tuple[str, ...] = ()) -> CompiledPlan:
    """Compile a plan. `argument` names the values that `run` is given for the plan's `Argument` leaf, if it has one."""
    return CompiledPlan(plan, argument)


def evaluate_plan(plan: Operator, context: Context) -> tuple[tuple[str, ...], PlainRows]:
    """Compile and run a plan; returns the columns and the rows."""
    compiled = compile_plan(plan)
    return compiled.columns, compiled.run(context)
