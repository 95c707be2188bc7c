"""Columns of texts by a compiled table: the triples that formats read, whatever the columns look like."""

from __future__ import annotations

import io
from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.formats import chunks
from anabranch.formats.deadletter import MalformedRecord
from anabranch.formats.rdf import tables
from anabranch.formats.rdf.tables import TableHeader, header_of, pack_rows, read_rows, repeating
from anabranch.model.event import Event
from anabranch.sources.lines import Cut
from anabranch.sources.linking import coded, shaping
from anabranch.sources.rowgroups import pack_row_groups

HEADER = TableHeader("s", "p", "o", "at")
PLAIN = [f"http://v/{number}" for number in range(9)]
BRACKETED = [f"<{text}>" for text in PLAIN]
OTHERS = ["_:b", '"x"@en', "a literal", "http://user@host/", "http://h:80/"]
KINDS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string())]


def drawn(random: Random, texts: Sequence[str], count: int) -> Any:
    """A column of so many texts, of some type, cut out of a longer one."""
    before = random.randrange(5)
    column = pa.array(random.choices(texts, k=before + count + random.randrange(5))).cast(random.choice(KINDS))
    return column.slice(before, count)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_coded_is_what_formats_read(seed: int) -> None:
    random = Random(seed)
    count = random.choice((1, 3, 30, 300))
    texts = random.choice((PLAIN, BRACKETED, [*PLAIN, *BRACKETED]))
    objects = random.choice((texts, [*texts, *OTHERS]))
    columns = [drawn(random, texts, count), drawn(random, texts, count), drawn(random, objects, count)]
    batch = pa.RecordBatch.from_arrays([*columns, pa.array(range(count))], ["s", "p", "o", "at"])
    packed = pack_rows(batch, HEADER, "d", shaping(None))
    assert isinstance(packed, bytes)
    assert chunks.unpack(packed) == list(read_rows(batch, HEADER, 0, "d"))
    assert (coded(columns) is None) == bool(set(columns[2].to_pylist()) & set(OTHERS))


def test_a_term_in_brackets_and_bare_is_one() -> None:
    found = coded([pa.array(["<http://a>", "http://b", "http://a"]), pa.array(["http://b", "<http://b>", "http://a"])])
    assert found is not None
    terms, (lefts, rights) = found
    assert [term[0] for term in terms.terms()] == ["http://a", "http://b"]
    assert (lefts.tolist(), rights.tolist()) == ([0, 1, 0], [1, 1, 0])


def test_what_a_dictionary_has_and_no_row_names_is_no_term_of_the_chunk() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2, 2]), pa.array(["http://a", "no term", "http://c"]))
    found = coded([column])
    assert found is not None
    assert {term[0] for term in found[0].terms()} == {"http://a", "http://c"}


def test_columns_without_rows_have_no_terms() -> None:
    found = coded([pa.array([], pa.string()), pa.array([], pa.dictionary(pa.int32(), pa.string()))])
    assert found is not None
    assert (len(found[0]), [len(codes) for codes in found[1]]) == (0, [0, 0])


def test_a_column_that_holds_no_texts_makes_its_rows_malformed_and_nothing_else() -> None:
    columns = {"s": ["http://v/1"] * 3, "p": ["http://p"] * 3, "o": [["http://v/2"]] * 3, "at": range(3)}
    file = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), file)
    found = list(pack_row_groups(file, Cut(0, 0), 1, "d"))
    assert [type(record) for record in found] == [MalformedRecord] * 3


@pytest.mark.parametrize("many", [False, True])
def test_columns_of_few_texts_are_read_by_their_codes_and_give_the_same_events(
    many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(5)
    monkeypatch.setattr(tables, "_MOST_DICTIONARY", 4000)
    monkeypatch.setattr(tables, "_ROWS_PER_BATCH", 700)
    subjects = [f"http://v/{random.randrange(2000 if many else 20)}" for _ in range(2000)]
    columns = {"s": subjects, "p": ["http://p"] * 2000, "o": ["http://v/1", "a literal"] * 1000, "at": range(2000)}
    file = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), file, row_group_size=900)
    with pq.ParquetFile(file) as parquet:
        header = header_of(parquet.schema_arrow.names)
        assert header is not None
        assert repeating(parquet, header, range(3)) == (["p", "o"] if many else ["s", "p", "o"])
        rows = parquet.read()
    packed = list(pack_row_groups(file, Cut(0, 0), 3, "d"))
    found: list[Event] = []
    for chunk in packed:
        assert isinstance(chunk, bytes)
        found += chunks.unpack(chunk)
    assert found == list(read_rows(rows, HEADER, 0, "d"))
