"""Commands whose options are the fields of a dataclass.

    @dataclass(frozen=True)
    class GreetArguments:
        name: Annotated[str, typer.Argument()]
        loud: Annotated[bool, typer.Option("--loud")] = False

    @takes(GreetArguments)
    def greet(arguments: GreetArguments) -> None: ...

Invariant: the fields define the command line, in their order; nothing is declared twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, TypeVar, get_type_hints

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
