"""Parsing of command line values. An invalid value is a usage error that shows the correct form.

Invariant: nothing here opens a file; only `read_text` reads one, the query's.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

import typer

from anabranch.cli.failures import InputError
from anabranch.engine.progress import LATE_POLICIES, LatePolicy, LatePolicyName
from anabranch.engine.timing import AheadBound, IdlePolicy, StreamTiming
from anabranch.errors import EngineError, EvaluationError, closest
from anabranch.model.instants import parse_instant
from anabranch.model.temporal import Duration, parse_duration
from anabranch.sources.address import BROKER

STDIN = "-"
DRAINED = "drained"

_NAMED = re.compile(r"(?P<name>[^\W\d]\w*)=(?P<value>.*)", re.DOTALL)
_DOTTED = re.compile(r"(?P<name>[^\W\d][\w-]*(?:\.[\w-]+)*)=(?P<value>.*)", re.DOTALL)
_ADDRESS = r"(?:kafka|mqtts?|wss?|socket|https?\+\w+)://[^=?\s]+"  # one with options is a name in <> only
_IRI_NAMED = re.compile(
    rf"(?:<(?P<quoted>[^<>]+)>|(?P<bare>(?:https?://|urn:)[^=\s]+|{_ADDRESS}))=(?P<value>.*)", re.DOTALL
)
_ABSOLUTE_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")


WindowPolicyOption: TypeAlias = Literal["trailing", "formal", "right-open"]
ConflictPolicyOption: TypeAlias = Literal["latest", "strict"]
OnErrorOption: TypeAlias = Literal["skip", "fail"]
OutputOption: TypeAlias = Literal[
    "table",
    "json",
    "csv",
    "sparql-json",
    "sparql-xml",
    "sparql-csv",
    "tsv",
    "ntriples",
    "nquads",
    "turtle",
    "rdfxml",
    "jsonld",
    "none",
]
EngineOption: TypeAlias = Literal["spark", "local"]
EvaluatorOption: TypeAlias = Literal["own", "plugin"]
ForceOption: TypeAlias = Literal["auto", "recompute"]
MatcherOption: TypeAlias = Literal["auto", "log", "semijoin"]
IndexOption: TypeAlias = Literal["recency", "bic"]
SummaryForm: TypeAlias = Literal["text", "json", "none"]
ExplainForm: TypeAlias = Literal["text", "json", "mermaid", "dot", "svg"]
ExplainView: TypeAlias = Literal["ograph", "dgraph"]
ExplainStage: TypeAlias = Literal["before", "after", "both"]

KafkaBroker = Annotated[
    str | None,
    typer.Option(envvar=BROKER, metavar="HOST:PORT", help="The broker of kafka:///topic, which names none."),
]
Color = Annotated[
    bool | None,
    typer.Option("--color/--no-color", help="Colours; by default where the output is a terminal.", show_default=False),
]
WindowsOption = Annotated[
    WindowPolicyOption,
    typer.Option(help="What a window holds at instant w: (w - a, w], the paper's definitions, or [w - a, w)."),
]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter: JSON if it is, else text. Repeatable."),
]


def set_broker(broker: str | None) -> None:
    """Set the broker for addresses that name none, in the whole process."""
    if broker:
        os.environ[BROKER] = broker


def parameters(values: Sequence[str] | None) -> dict[str, Any]:
    """Parse `k=v` pairs; a value is JSON if it parses as JSON, else a string."""
    found: dict[str, Any] = {}
    for value in values or ():
        match = _NAMED.fullmatch(value)
        if match is None:
            raise typer.BadParameter(f"`{value}`: write it as name=value, for example limit=20", param_hint="--param")
        try:
            found[match["name"]] = json.loads(match["value"])
        except ValueError:
            found[match["name"]] = match["value"]
    return found


def refuse_parameters(values: Sequence[str] | None, languages: Iterable[str]) -> None:
    """Refuse parameters for languages other than Seraph: in SPARQL `$name` is a variable."""
    if values and "seraph" not in languages:
        message = "SPARQL has no parameters, $name is a variable there; put the value into the query"
        raise typer.BadParameter(message, param_hint="--param")


def named_paths(values: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """Parse `name=path` pairs; a path without a name is named after its file. A name may be an IRI, in <> if it
    contains a `=`."""
    found = []
    for value in values or ():
        given, path = _name_and_path(value)
        name = _stem(value) if given is None else given
        if not name or not path:
            example = "rides=events.ndjson" if option == "--stream" else "city=city.json"
            raise typer.BadParameter(f"`{value}`: write it as name=path, for example {example}", param_hint=option)
        found.append((name, path))
    return found


def graph_paths(values: Sequence[str] | None) -> list[tuple[str | None, str]]:
    """Parse `name=path` pairs of static graphs, whose files exist or are on the web; a single path has no name."""
    found: list[tuple[str | None, str]] = []
    for value in values or ():
        name, path = _name_and_path(value)
        if name == "" or not path:
            message = f"`{value}`: write it as name=path, for example city=city.json"
            raise typer.BadParameter(message, param_hint="--graph")
        if "://" not in path:
            existing(path)
        found.append((name, path))
    return found


def _name_and_path(value: str) -> tuple[str | None, str]:
    match, iri = _DOTTED.fullmatch(value), _IRI_NAMED.fullmatch(value)
    if match:
        return match["name"], match["value"]
    if iri:
        return iri["quoted"] or iri["bare"], iri["value"]
    return None, value


def _stem(path: str) -> str:
    if path == STDIN:
        return "stream"
    without_options = re.sub(r"\?.*", "", path) if ":" in path else path
    return re.sub(r"\W", "_", Path(without_options.removeprefix("gen:")).name.split(".")[0])


def instant(value: str | None, option: str) -> int | None:
    if value is None:
        return None
    try:
        return parse_instant(value)
    except EvaluationError as error:
        hint = error.diagnostic.hint or "write it like 2022-10-14T14:45:00Z"
        raise typer.BadParameter(f"{error.diagnostic.message}; {hint}", param_hint=option) from None


def until(value: str | None) -> tuple[int | None, bool]:
    """Parse how far to evaluate after the end of the input: up to an instant, or until the windows are empty."""
    if value is not None and value.lower() == DRAINED:
        return None, True
    return instant(value, "--until"), False


def duration(value: str | None, option: str) -> Duration | None:
    if value is None:
        return None
    try:
        return parse_duration(value)
    except EvaluationError as error:
        raise typer.BadParameter(f"{error.diagnostic.message}; write it like PT5S", param_hint=option) from None


def lateness(value: str | None) -> Duration | None:
    found = duration(value, "--lateness")
    if found is not None and found.is_negative:
        raise typer.BadParameter(f"{value} is less than no time; write it like PT5S", param_hint="--lateness")
    return found


def micros(length: Duration | None, option: str) -> int | None:
    """Convert a duration to microseconds; months have no fixed length and are refused."""
    if length is None:
        return None
    if length.months:
        raise typer.BadParameter(f"{length} has no fixed length; write it like PT30S", param_hint=option)
    return length.micros


def interval(value: str | None, option: str) -> int | None:
    """Parse a polling interval, in microseconds."""
    found = micros(duration(value, option), option)
    if found is not None and found <= 0:
        raise typer.BadParameter(f"`{value}` is no time to wait; write it like PT1M", param_hint=option)
    return found


_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def size(value: str | None, option: str) -> int | None:
    """Parse a number of bytes, with or without a unit."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if found is None or found[2].upper() not in _SIZES or not float(found[1]):
        raise typer.BadParameter(f"`{value}` is no size; write it like 500MB or 2GiB", param_hint=option)
    return int(float(found[1]) * _SIZES[found[2].upper()])


def rates(values: list[str] | None) -> dict[str | None, float]:
    """Parse events per second by stream; the key None is the rate of streams that are not named."""
    found: dict[str | None, float] = {None: 1000.0}
    for value in values or ():
        name, _, number = value.rpartition("=")
        try:
            found[name or None] = float(number)
        except ValueError:
            raise typer.BadParameter(f"`{value}` is no rate; write it like rides=200", param_hint="--rate") from None
        if not 0 <= found[name or None] < 1e12:
            raise typer.BadParameter(f"`{number}` events per second are not possible", param_hint="--rate")
    return found


def vocabulary(value: str | None) -> str | None:
    """Check a namespace: an IRI that is complete enough to precede a name."""
    if value is not None and not _ABSOLUTE_IRI.fullmatch(value):
        message = f"`{value}` is no IRI; write it like http://example.org/city#"
        raise typer.BadParameter(message, param_hint="--vocabulary")
    return value


def rules(value: str) -> tuple[str, ...]:
    """Parse `all`, `none`, or the names of rules."""
    from anabranch.engine.plans import rule_names

    try:
        return rule_names(value)
    except EngineError as error:
        raise typer.BadParameter(str(error), param_hint="--rules") from None


def late_policy(value: str) -> LatePolicy:
    """Parse `drop`, `correct`, or `correct:PT1H` for corrections that go back an hour."""
    policy, _, horizon = value.partition(":")
    if policy not in LATE_POLICIES or (horizon and policy != "correct"):
        message = f"`{value}`: write drop, correct, or correct:PT1H to correct what is at most an hour old"
        raise typer.BadParameter(message, param_hint="--late")
    return LatePolicy(cast(LatePolicyName, policy), duration(horizon or None, "--late"))


LIVE_IDLE_TIMEOUT = "PT30S"
Idle = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="What an idle stream does: correct (correct:PT1H) answers that went on without it, wait, or advance.",
    ),
]


Ahead = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION",
        help="How far ahead an event may be without others that confirm it, or none. \\[PT1H of the clock, else P1D]",
    ),
]


def ahead_bound(value: str | None) -> AheadBound | None:
    try:
        return AheadBound() if value is None else AheadBound.parse(value)
    except EngineError as error:
        raise typer.BadParameter(str(error), param_hint="--ahead") from None


def timing(idle_timeout: str | None, idle: str, ahead: str | None) -> StreamTiming:
    """Parse the timing of streams that are silent, or whose clock is ahead."""
    timeout = interval(idle_timeout or LIVE_IDLE_TIMEOUT, "--idle-timeout")
    try:
        return StreamTiming(timeout, IdlePolicy.parse(idle), ahead_bound(ahead))
    except EngineError as error:
        raise typer.BadParameter(str(error).replace("\nhint:", ";"), param_hint="--idle") from None


def pairs(values: Sequence[str] | None, option: str) -> dict[str, str]:
    """Parse `key=value` texts."""
    found = {}
    for value in values or ():
        key, equals, rest = value.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"`{value}`: write it as key=value", param_hint=option)
        found[key] = rest
    return found


def existing(path: str) -> Path:
    """Return the path, or raise an error that suggests similar files."""
    found = Path(path)
    if found.exists():
        return found
    near: list[str] = []
    if found.parent.is_dir():
        near = closest(found.name, sorted(entry.name for entry in found.parent.iterdir()), limit=1)
    hint = f"\nhint: did you mean {found.parent / near[0]}?" if near else ""
    raise InputError(f"there is no file {path}{hint}")


def read_text(path: str) -> str:
    """Read a query's text, from a file or stdin."""
    try:
        if path == STDIN:
            return sys.stdin.read()
        return existing(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a directory; give the query's file") from None
