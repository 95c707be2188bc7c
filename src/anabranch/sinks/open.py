"""The sink that a text names: `out.ndjson`, `out/`, `parquet:out/`, `kafka://host/topic`, `https://...`, `memory:`.

Invariant: nothing is opened, made or sent here; a text that is not understood is refused with what exists.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from anabranch.errors import EngineError, StreamError, closest
from anabranch.formats.answers import csv_columns, csv_header
from anabranch.sinks.base import Sink
from anabranch.sinks.forms import SUFFIXES, LineForm, RdfForm, check_form

_JSON_SUFFIXES = (".ndjson", ".jsonl", ".json")
_FORMS = {
    "out.ndjson": "JSON lines, also .jsonl, .json and .gz",
    "out.csv": "CSV, also .gz",
    "out/": "a folder of JSON lines, one file a batch",
    "ndjson:PATH": "JSON lines in a file, a folder or - for stdout",
    "csv:PATH": "CSV in a file, a folder or - for stdout",
    "out.srj": "SPARQL results in JSON, also .srx (XML), .tsv; sparql-json:PATH, sparql-xml:, tsv:, sparql-csv:",
    "out.ttl": "graphs in Turtle, also .nt, .nq, .rdf, .jsonld; turtle:PATH, ntriples:, nquads:, rdfxml:, jsonld:",
    "parquet:out/": "a folder of Parquet, also out.parquet",
    "kafka://HOST:PORT/TOPIC": "one message a row",
    "https://HOST/PATH": "one POST an answer, also http:// and webhook:URL",
    "memory:": "a table in memory, for notebooks",
}
_RDF_FORMS = (*SUFFIXES.values(), "sparql-csv")
_SCHEMES = ("ndjson", "csv", "parquet", *_RDF_FORMS, "kafka", "http", "https", "webhook", "memory", "file")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>.*)", re.DOTALL)
_WEBHOOK_OPTIONS = ("timeout", "token")
_PLACING = ("append", "overwrite")


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parts of a sink's text, and the run's information about its queries."""

    text: str
    place: str
    options: Mapping[str, str]
    queries: Mapping[str, Sequence[str]]
    corrections: bool
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def only(self, *known: str) -> None:
        """Refuse options that the sink does not have."""
        for name in self.options:
            if name not in known:
                near = closest(name, known)
                hint = f"did you mean `{near[0]}`?  " if near else ""
                there = f"Options: {', '.join(known)}." if known else "It has no options."
                raise EngineError(f"`{self.text}`: no option `{name}`\nhint: {hint}{there}")

    def flag(self, name: str) -> bool:
        value = self.options.get(name, "0").lower()
        if value in ("", "1", "true", "yes"):
            return True
        if value in ("0", "false", "no"):
            return False
        raise EngineError(f"`{self.text}`: `{name}` is yes or no, and not `{value}`\nhint: write {name}=1")

    def placing(self) -> dict[str, bool]:
        """Return how existing output is treated."""
        flags = {name: self.flag(name) for name in _PLACING}
        if all(flags.values()):
            raise EngineError(f"`{self.text}`: append and overwrite exclude each other\nhint: choose one of the two")
        return flags

    def number(self, name: str, kind: type[int] | type[float]) -> float | int | None:
        text = self.options.get(name)
        if text is None:
            return None
        try:
            return kind(text)
        except ValueError:
            raise EngineError(f"`{self.text}`: {name} is a number, and not `{text}`") from None

    def header(self, form: LineForm) -> bytes:
        if form != "csv":
            return b""
        return csv_header(csv_columns(self.queries.values()), len(self.queries) > 1, self.corrections)


def open_sink(
    text: str,
    queries: Mapping[str, Sequence[str]],
    corrections: bool = False,
    prefixes: Mapping[str, str] | None = None,
) -> Sink:
    """Open the sink of a text.

    `queries` are the names of the queries that the sink receives, with their columns; `corrections` says whether
    answers may be retracted, which gives CSV one more column; `prefixes` shorten IRIs where a form can.
    """
    known = prefixes or {}
    match = _SCHEME.fullmatch(text)
    if match is None or len(match["scheme"]) == 1:  # a letter alone is a drive
        place, options = _split(text)
        return _path(_Asked(text, place, options, queries, corrections, known))
    scheme, rest = match["scheme"].lower(), match["rest"]
    if scheme == "webhook" or scheme in ("http", "https"):
        return _webhook(text, rest if scheme == "webhook" else text)
    place, options = _split(rest)
    asked = _Asked(text, place, options, queries, corrections, known)
    match scheme:
        case "ndjson":
            return _lines(asked, "json")
        case "csv":
            return _lines(asked, "csv")
        case _ if scheme in _RDF_FORMS:
            return _lines(asked, RdfForm(scheme, known))
        case "parquet":
            return _parquet(asked)
        case "kafka":
            return _kafka(asked)
        case "memory":
            return _memory(asked)
        case "file":
            host, _, path = place.removeprefix("//").partition("/") if place.startswith("//") else ("", "", place)
            if host not in ("", "localhost"):
                raise EngineError(f"`{text}` names the computer `{host}`\nhint: three slashes: file:///{path}")
            full = unquote(f"/{path}" if place.startswith("//") else path)
            return _path(_Asked(text, full, options, queries, corrections, known))
    if not rest.startswith("//") and not closest(scheme, _SCHEMES):
        return _path(_Asked(text, *_split(text), queries, corrections, known))  # a file's name may hold a colon
    raise EngineError(f"no sink for `{scheme}:`{_what_exists(scheme, _SCHEMES)}")


def _split(text: str) -> tuple[str, dict[str, str]]:
    place, _, options = text.partition("?")
    return place, dict(parse_qsl(options, keep_blank_values=True))


def _path(asked: _Asked) -> Sink:
    """Return the sink of a path: its suffix tells its form, a folder holds JSON lines."""
    place = asked.place
    if place == "-" or (_is_folder(place) and not place.rstrip("/").lower().endswith(".parquet")):
        return _lines(asked, "json")
    name = place.rstrip("/").lower()
    if name.endswith(".parquet"):
        return _parquet(asked)
    bare = name.removesuffix(".gz")
    if bare.endswith(_JSON_SUFFIXES):
        return _lines(asked, "json")
    if bare.endswith(".csv"):
        return _lines(asked, "csv")
    if Path(bare).suffix in SUFFIXES:
        return _lines(asked, RdfForm(SUFFIXES[Path(bare).suffix], asked.prefixes))
    if not place:
        raise EngineError(f"`{asked.text}` names no place for the answers{_what_exists('', ())}")
    suffix = Path(bare).suffix
    what = f"no sink writes files that end with `{suffix}`" if suffix else f"`{place}` does not say the form of a file"
    raise EngineError(what + _what_exists(suffix, (*_JSON_SUFFIXES, ".csv", ".parquet", *SUFFIXES)))


def _what_exists(name: str, candidates: Sequence[str]) -> str:
    near = closest(name, candidates) if name else []
    hint = f"did you mean `{near[0]}`?  " if near else ""
    width = max(map(len, _FORMS))
    forms = "".join(f"\n  {form.ljust(width)}  {meaning}" for form, meaning in _FORMS.items())
    return f"\nhint: {hint}Answers can go to{forms}"


def _is_folder(place: str) -> bool:
    return place.endswith("/") or (bool(place) and Path(place).is_dir())


def _named(asked: _Asked) -> str:
    if not asked.place:
        raise EngineError(f"`{asked.text}` names no file or folder{_what_exists('', ())}")
    if "://" in asked.place:
        raise EngineError(f"`{asked.text}`: files are written to this computer only\nhint: name a path")
    return asked.place


def _lines(asked: _Asked, form: LineForm) -> Sink:
    from anabranch.sinks.console import Console
    from anabranch.sinks.files import LinesFile, LinesFolder

    place = _named(asked)
    check_form(form, asked.queries.values())
    header = asked.header(form)
    if place == "-":
        asked.only()
        return Console(form, header)
    if _is_folder(place):
        asked.only(*_PLACING, "gz")
        return LinesFolder(place, form, header, **asked.placing(), zipped=asked.flag("gz"))
    asked.only(*_PLACING)
    return LinesFile(place, form, header, **asked.placing())


def _parquet(asked: _Asked) -> Sink:
    from anabranch.formats.answer_tables import parse_types
    from anabranch.sinks.parquet import ParquetFolder

    asked.only(*_PLACING, "columns")
    if asked.place == "-":
        raise EngineError("Parquet cannot be printed\nhint: name a folder: parquet:out/")
    types = parse_types(asked.options.get("columns", ""))
    return ParquetFolder(_named(asked), asked.queries, types, **asked.placing())


def _memory(asked: _Asked) -> Sink:
    from anabranch.sinks.memory import MemoryTable

    asked.only("limit")
    if asked.place:
        raise EngineError(f"`{asked.text}`: a table in memory has no place\nhint: write memory:")
    limit = asked.number("limit", int)
    return MemoryTable(asked.queries, None if limit is None else int(limit))


def _kafka(asked: _Asked) -> Sink:
    from anabranch.sinks.kafka import KafkaSink
    from anabranch.sources.address import parse_address

    try:
        return KafkaSink.from_address(parse_address(asked.text))
    except StreamError as error:
        raise EngineError(str(error)) from None


def _webhook(text: str, url: str) -> Sink:
    """Our options are taken out of the address's query part, the rest of which belongs to the receiver."""
    from anabranch.sinks.webhook import DEFAULT_TIMEOUT, Webhook

    address, _, query = url.partition("?")
    ours: dict[str, str] = {}
    theirs = []
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if name in _WEBHOOK_OPTIONS:
            ours[name] = unquote(value)
        else:
            theirs.append(part)
    timeout = _Asked(text, url, ours, {}, False).number("timeout", float)
    rest = f"?{'&'.join(theirs)}" if theirs else ""
    return Webhook(address + rest, timeout=DEFAULT_TIMEOUT if timeout is None else timeout, token=ours.get("token"))
