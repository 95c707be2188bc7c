"""Commands whose options are the fields of a dataclass.

    @dataclass(frozen=True)
    class GreetArguments:
        name: Annotated[str, typer.Argument()]
        loud: Annotated[bool, typer.Option("--loud")] = False

    @takes(GreetArguments)
    def greet(arguments: GreetArguments) -> None: ...

typer reads each value with a validator of its own that pydantic makes; to load pydantic and to make forty of them takes
longer than to read a small stream. `Command` and `CommandGroup` take what is plainly valid (a default, a text, one of
the words of a choice) as it is, and leave all else, and so every refusal, to typer.

Invariant: the fields define the command line, in their order; nothing is declared twice. A value is the one that typer
would give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, fields
from enum import EnumType
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

Arguments = TypeVar("Arguments")


def takes(kind: type[Arguments]) -> Callable[[Callable[[Arguments], None]], Callable[..., None]]:
    """Make a command of a function that takes all its options in one object."""
    hints = get_type_hints(kind, include_extras=True)
    parameters = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name])
        for field in fields(kind)  # type: ignore[arg-type]
    ]

    def decorate(command: Callable[[Arguments], None]) -> Callable[..., None]:
        @wraps(command)
        def called(**values: Any) -> None:
            command(kind(**values))

        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = hints
        return called

    return decorate


def _default(field: Field[Any]) -> Any:
    return Parameter.empty if field.default is MISSING else field.default


class Command(TyperCommand):
    """A command that takes plain values as they are."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        _take_plain_values(self.get_params(ctx))
        return super().parse_args(ctx, args)


class CommandGroup(TyperGroup):
    """All commands; the options before a command's name are taken as a command's are."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        _take_plain_values(self.get_params(ctx))
        return super().parse_args(ctx, args)


def _take_plain_values(parameters: Sequence[Any]) -> None:
    for one in parameters:
        one._runtime_param = _PlainValue()


class _PlainValue:
    """Stands where typer keeps the validator of a parameter, until one is needed."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        plain = _plain(param.type_descriptor.annotation, value)
        if plain is None:
            param._runtime_param = None  # typer makes its own
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)
        return plain


def _plain(kind: Any, value: Any) -> Any:
    """Return the value as its kind has it; None where that is not plain."""
    if type(value) is kind:
        return value
    if isinstance(kind, EnumType):
        words: dict[Any, Any] = kind._value2member_map_
        return words.get(value)
    if get_origin(kind) is Literal:
        return value if value in get_args(kind) else None
    if kind == list[str] and all(type(one) is str for one in value):
        return list(value)
    return None
