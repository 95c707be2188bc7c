"""A compiler for kernels whose indices are never negative.

numba lets a negative index count from an array's end, as Python does, and asks at each access whether it is one. In
kernels that do little but follow numbers from array to array this is a quarter of all instructions. Here every index
that is not a constant is declared unsigned before types are inferred, so that nothing is asked.

Invariant: an index below 0 is an error and reads what lies before the array; with NUMBA_BOUNDSCHECK=1 it is found.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import compiler as _compiler
from numba.core import compiler_machinery as _machinery
from numba.core import errors, ir, untyped_passes
from numba.core import ir_utils as _ir_utils
from numba.extending import intrinsic

# numba has no types of its own here.
build: Any = ir
utils: Any = _ir_utils
machinery: Any = _machinery
pipelines: Any = _compiler.DefaultPassBuilder
integer: Any = types.uint64


def _unsigned(typing_context: Any, index: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return (integer if isinstance(index, types.Integer) else index)(index), code


_as_unsigned: Any = intrinsic(_unsigned)


@machinery.register_pass(mutates_CFG=False, analysis_only=False)
class _UnsignedIndices(_machinery.FunctionPass):
    """Pass each index through a conversion."""

    _name = "unsigned_indices"

    def __init__(self) -> None:
        machinery.FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        function = state.func_ir
        for block in function.blocks.values():
            body: list[Any] = []
            for statement in block.body:
                access = _access(statement)
                if access is not None and not _is_constant(function, access.index):
                    access.index = _converted(block, body, access.index)
                body.append(statement)
            block.body = body
        function._definitions = utils.build_definitions(function.blocks)
        return True


def _access(statement: Any) -> Any:
    """What has the index, when a statement reads or writes at one."""
    match statement:
        case ir.SetItem():
            return statement
        case ir.Assign(value=ir.Expr(op="getitem")):
            return statement.value
    return None


def _is_constant(function: Any, index: Any) -> bool:
    try:
        function.infer_constant(index)
    except errors.ConstantInferenceError:
        return False
    return True


def _converted(block: Any, body: list[Any], index: Any) -> Any:
    called = build.Var(block.scope, utils.mk_unique_var("$as_unsigned"), index.loc)
    result = build.Var(block.scope, utils.mk_unique_var("$index"), index.loc)
    body.append(build.Assign(build.Global("_as_unsigned", _as_unsigned, index.loc), called, index.loc))
    body.append(build.Assign(build.Expr.call(called, (index,), (), index.loc), result, index.loc))
    return result


class PlainIndices(_compiler.CompilerBase):
    """numba's compiler with that pass: what `pipeline_class` of a kernel names."""

    def define_pipelines(self) -> list[Any]:
        passes = pipelines.define_nopython_pipeline(self.state)
        passes.add_pass_after(_UnsignedIndices, untyped_passes.IRProcessing)
        passes.finalize()
        return [passes]
