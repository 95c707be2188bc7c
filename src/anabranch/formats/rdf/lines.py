"""Timed triples as lines: the time, a tab, and the triple in N-Triples.

    1665758700000<TAB><http://ex/bike5> <http://ex/rentedAt> <http://ex/station1> .
    2022-10-14T14:45:00Z<TAB><http://ex/bike5> <http://ex/charge> "0.7"^^<http://www.w3.org/2001/XMLSchema#double> .

The time is in epoch milliseconds or ISO 8601. Each line is an event. A quad gives its triple; empty lines and comments
(#) are passed over. `pack_lines` makes chunks of lines without one event in between.

Law: `unpack` of what `pack_lines` packs are the events that `read_lines` reads; a malformed line comes out as a
MalformedRecord with its number, and reading goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

import numpy as np
import pyoxigraph as ox

from anabranch.errors import MalformedEventError
from anabranch.formats.chunks import ELEMENTS_PER_CHUNK, EVENTS_PER_CHUNK, CodeBook, assemble, pack_block, terms_text
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.events import instant_from_json
from anabranch.formats.rdf.terms import from_oxigraph, parse_term, syntax_reason, triple_text
from anabranch.model.block import TripleBlock
from anabranch.model.event import Event
from anabranch.model.instants import format_instant
from anabranch.model.terms import Term, Triple

# The text between the brackets is checked once a term, not once a line.
_IRI = r"<[^>]*+>"
_BLANK = r"_:[A-Za-z0-9_](?:[\w.\-]*[\w\-])?"
_LITERAL = rf'"[^"\\]*+"(?:\^\^{_IRI}|@[A-Za-z0-9\-]++)?'
_match = re.compile(
    rf"([^\t]++)\t[ \t]*+({_IRI}|{_BLANK})[ \t]*+({_IRI})[ \t]*+({_IRI}|{_LITERAL}|{_BLANK})[ \t]*+\.?[ \t\r]*+",
    re.ASCII,
).fullmatch
_TIMED = re.compile(r"\s*([^\t<\"{\[]+?)(?:\t\s*|\s+(?=<|_:))(.*)", re.DOTALL)
_LOOKS_TIMED = re.compile(r"\s*[^\s<\"{\[][^\t<\"{\[]{0,40}\t\s*(?:<|_:)")
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_TIME_HINT = "write the time (epoch milliseconds or ISO 8601), a tab, and the triple"
_FEW = EVENTS_PER_CHUNK if EVENTS_PER_CHUNK < ELEMENTS_PER_CHUNK else ELEMENTS_PER_CHUNK
_MOST_TIMES = 1 << 16


def looks_timed(text: str) -> bool:
    """Whether a text that is not JSON is meant as a time and a triple."""
    return _LOOKS_TIMED.match(text) is not None


def time_of_text(text: str) -> int:
    """UTC microseconds of epoch milliseconds or ISO 8601, as text."""
    text = text.strip()
    return instant_from_json(int(text) if _WHOLE_NUMBER.fullmatch(text) else text, "time")


def timed_triple(line: str, document: str) -> Event | None:
    """The event of one line; None for an empty one and for a comment. Raises MalformedEventError."""
    found = _match(line)
    if found is None:
        return _timed_slowly(line, document)
    at, subject, predicate, object_ = found.groups()
    triple = Triple(parse_term(subject, document), parse_term(predicate, document), parse_term(object_, document))
    return Event(time_of_text(at), triples=(triple,))


def _timed_slowly(line: str, document: str) -> Event | None:
    """Parse the line by pyoxigraph, which knows escapes and quads, and reports what is wrong."""
    bare = line.strip()
    if not bare or bare.startswith("#"):
        return None
    found = _TIMED.fullmatch(line)
    if found is None:
        if bare.startswith(("<", "_:", '"')):
            raise MalformedEventError(f"no time before the triple; {_TIME_HINT}")
        raise MalformedEventError(f"not a timed triple; {_TIME_HINT}")
    event_time = time_of_text(found[1])
    try:
        quads = list(ox.parse(found[2].rstrip(), ox.RdfFormat.N_QUADS))
    except SyntaxError as error:
        reason, _, column = syntax_reason(error)
        place = "" if column is None else f"column {column + found.start(2)}: "
        raise MalformedEventError(f"{place}{reason}") from None
    except ValueError as error:
        raise MalformedEventError(str(error)) from None
    if not quads:
        raise MalformedEventError(f"no triple behind the time; {_TIME_HINT}")
    triples = (Triple(*(from_oxigraph(term, document) for term in (one[0], one[1], one[2]))) for one in quads)
    return Event(event_time, triples=tuple(triples))


def read_lines(data: bytes, document: str, first_line: int = 1) -> Iterator[Event | MalformedRecord]:
    """The events of whole lines; `first_line` is the number of the first one."""
    for number, line in enumerate(data.split(b"\n"), first_line):
        if not line:
            continue
        try:
            event = timed_triple(_text(line), document)
        except MalformedEventError as error:
            yield _refused(error.reason, number, line)
        else:
            if event is not None:
                yield event


def pack_lines(data: bytes, document: str, first_line: int = 1) -> Iterator[bytes | MalformedRecord]:
    """Yield the same, as chunks."""
    lines: Sequence[str | bytes]
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError:
        lines = data.split(b"\n")  # some line is no text: each is looked at by itself
    for start in range(0, len(lines), _FEW):
        packer = _Packer(document)
        yield from packer.add(lines[start : start + _FEW], first_line + start)
        if packer.times:
            yield packer.pack()


class _Codes(dict[str, int]):
    """Codes by the texts of terms; a new text is parsed once."""

    def __init__(self, terms: CodeBook[Term], parse: Callable[[str], Term]) -> None:
        super().__init__()
        self._terms = terms
        self._parse = parse

    def __missing__(self, text: str) -> int:
        code = self[text] = self._terms[self._parse(text)]
        return code


class _Times(dict[str, int]):
    def __missing__(self, text: str) -> int:
        if len(self) >= _MOST_TIMES:
            self.clear()
        time = self[text] = time_of_text(text)
        return time


class _Packer:
    """Lines on their way into a chunk. The work for a term is done once a chunk, the work for a line is three lookups.

    A line that is refused may leave terms in the dictionary that nothing names; it leaves nothing else.
    """

    def __init__(self, document: str) -> None:
        self.times: list[int] = []
        self._triples: list[int] = []
        self._more: dict[int, int] = {}  # how many triples an event has that has not one
        self._document = document
        self._terms: CodeBook[Term] = CodeBook()
        self._codes = _Codes(self._terms, lambda text: parse_term(text, document))
        self._time_of = _Times()

    def add(self, lines: Iterable[str | bytes], first_line: int) -> Iterator[MalformedRecord]:
        """Take in lines; gives those that are refused."""
        match, codes, time_of, times, triples = _match, self._codes, self._time_of, self.times, self._triples
        for number, line in enumerate(lines, first_line):
            try:
                text = line if isinstance(line, str) else _text(line)
                found = match(text)
                if found is None:
                    self._add_slowly(text)
                    continue
                at, subject, predicate, object_ = found.groups()
                coded = (codes[subject], codes[predicate], codes[object_])
                times.append(time_of[at])
                triples += coded
            except MalformedEventError as error:
                yield _refused(error.reason, number, line)

    def _add_slowly(self, line: str) -> None:
        event = _timed_slowly(line, self._document)
        if event is None:
            return
        if len(event.triples) != 1:
            self._more[len(self.times)] = len(event.triples)
        self.times.append(event.event_time)
        for triple in event.triples:
            self._triples += map(self._terms.__getitem__, triple)

    def pack(self) -> bytes:
        count = len(self.times)
        per_event = np.ones(count, dtype=np.uint32)
        for index, triples in self._more.items():
            per_event[index] = triples
        times = np.array(self.times, dtype=np.int64)
        if count and not self._more:
            columns = np.array(self._triples, dtype=np.int32).reshape(-1, 3).T
            return pack_block(TripleBlock(times, list(self._terms), *columns))
        nothing = np.zeros(count, dtype=np.uint32)
        return assemble(
            times,
            nothing,
            nothing,
            np.zeros((3, 0), dtype=np.uint32),
            np.zeros((5, 0), dtype=np.uint32),
            (*("[]",) * 4, terms_text(self._terms)),
            per_event,
            np.array(self._triples, dtype=np.uint32).reshape(-1, 3).T,
        )


def write_lines(events: Iterable[Event], file: BinaryIO) -> int:
    """Write events, one line a triple; gives the number of events."""
    count = 0
    for event in events:
        at = format_instant(event.event_time)
        file.write("".join(f"{at}\t{triple_text(triple)}\n" for triple in event.triples).encode())
        count += 1
    return count


def _text(line: str | bytes) -> str:
    try:
        return line if isinstance(line, str) else line.decode()
    except UnicodeDecodeError as error:
        raise MalformedEventError(f"not UTF-8 (byte {error.start + 1})") from None


def _refused(reason: str, number: int, line: str | bytes) -> MalformedRecord:
    raw = line.decode(errors="replace") if isinstance(line, bytes) else line
    return MalformedRecord(reason, number, raw.rstrip("\r\n"))
