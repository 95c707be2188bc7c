"""A compiler for kernels whose indices are never negative.

numba lets a negative index count from an array's end, as Python does, and asks at each access whether it is one. In
kernels that do little but follow numbers from array to array this is a quarter of all instructions. Here every index
that is not a constant is declared unsigned before types are inferred, so that nothing is asked.

Invariant: an index below 0 is an error and reads what lies before the array; with NUMBA_BOUNDSCHECK=1 it is found.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import compiler, compiler_machinery, errors, ir, ir_utils, untyped_passes
from numba.extending import intrinsic


def _unsigned(typing_context: Any, index: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return (types.uint64 if isinstance(index, types.Integer) else index)(index), code


_as_unsigned: Any = intrinsic(_unsigned)
_register: Any = compiler_machinery.register_pass(mutates_CFG=False, analysis_only=False)


@_register
class _UnsignedIndices(compiler_machinery.FunctionPass):  # type: ignore[misc]
    """Pass each index through a conversion."""

    _name = "unsigned_indices"

    def __init__(self) -> None:
        compiler_machinery.FunctionPass.__init__(self)

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
        function._definitions = ir_utils.build_definitions(function.blocks)
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
    called = ir.Var(block.scope, ir_utils.mk_unique_var("$as_unsigned"), index.loc)
    result = ir.Var(block.scope, ir_utils.mk_unique_var("$index"), index.loc)
    body.append(ir.Assign(ir.Global("_as_unsigned", _as_unsigned, index.loc), called, index.loc))
    body.append(ir.Assign(ir.Expr.call(called, (index,), (), index.loc), result, index.loc))
    return result


class PlainIndices(compiler.CompilerBase):  # type: ignore[misc]
    """numba's compiler with that pass: what `pipeline_class` of a kernel names."""

    def define_pipelines(self) -> list[Any]:
        passes = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(_UnsignedIndices, untyped_passes.IRProcessing)
        passes.finalize()
        return [passes]
