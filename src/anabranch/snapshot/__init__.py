"""The snapshot evaluator: any algebra plan over the window's content, plainly and completely."""

from __future__ import annotations

from anabranch.snapshot.context import Context
from anabranch.snapshot.evaluate import CompiledPlan, PlainRows, compile_plan, evaluate_plan
from anabranch.snapshot.expressions import compile_expression

__all__ = ["CompiledPlan", "Context", "PlainRows", "compile_expression", "compile_plan", "evaluate_plan"]
