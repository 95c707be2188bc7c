"""Streams that travel as links: a cell tells, sets aside and counts what it does when they travel whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.jobs import changed

from anabranch.engine.compiled import compile_queries
from anabranch.engine.engine import LatePolicy
from anabranch.engine.query_options import QueryOptions
from anabranch.errors import StreamError
from anabranch.formats.rdf import tables
from anabranch.model.temporal import Duration
from anabranch.runner import cell as cells
from anabranch.runner.batch_planner import BatchPlanner
from anabranch.runner.cell import Cell
from anabranch.runner.job import Job
from anabranch.runner.linked import LinkedRows
from anabranch.runner.memory_state import MemoryState
from anabranch.runner.packing import pack_piece
from anabranch.runner.rows import CELL, CellRow, PackedRow
from anabranch.runner.source_settings import SourceSettings
from anabranch.sources import linking
from anabranch.sources.base import Decoding, Limit, OpenedStream
from anabranch.sources.files import FileSource
from anabranch.syntax import languages

STREAM = "http://s"
PAIRS = "VALUES (?a ?b) { " + " ".join(f"(<http://v/{a}> <http://v/{b}>)" for a in range(4) for b in range(a)) + " }"
ASKED = [
    "SELECT ?a ?b FROM STREAM <http://s> [RANGE 20s STEP 5s] WHERE { %s FILTER(anb:connected(?a, ?b)) }",
    "SELECT ?a ?b FROM STREAM <http://s> [RANGE 7s TUMBLING] WHERE { %s FILTER(anb:connected(?a, ?b, <http://p/0>)) }",
    "SELECT ?a (anb:component(?a, <http://p/1>) AS ?c) FROM STREAM <http://s> [RANGE 9s STEP 3s] WHERE { %s }",
    "SELECT ?a (anb:componentSize(?a) AS ?c) FROM STREAM <http://s> [RANGE 10s STEP 4s] WHERE { %s }",
]
PATTERN = "SELECT ?a ?b FROM STREAM <http://s> [RANGE 9s STEP 3s] WHERE { ?a <http://p/0> ?b }"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "_FEWEST_ROWS", 1)
    monkeypatch.setattr(linking, "_SPARED", 1 << 40)
    monkeypatch.setattr(tables, "_ROWS_PER_BATCH", 48)


def job_over(folder: Path, asked: Sequence[str], **settings: object) -> Job:
    text = "\n".join(f"REGISTER QUERY q{n} AS {(one % PAIRS) if '%s' in one else one}" for n, one in enumerate(asked))
    queries = compile_queries([languages.script(text, "q.csparql")], QueryOptions())
    source = FileSource(STREAM, str(folder))
    opened = OpenedStream(source, Decoding(STREAM), str(folder))
    return changed(Job((opened,), queries, ordered=True), **settings)


def write(folder: Path, random: Random, *, disorder: int = 0, overlap: int = 0, malformed: float = 0) -> None:
    """Five files of triples a third of a second apart, each beginning by `overlap` before the one before it ends; some
    triples are late, some malformed."""
    folder.mkdir()
    row = 0
    for number in range(5):
        rows: list[tuple[str, str, str, int]] = []
        for _ in range(random.randrange(20, 150)):
            row += 1
            subject = f"http://v/{random.randrange(6)}" if random.random() >= malformed else "no term"
            back = random.randrange(disorder) if disorder and random.random() < 0.1 else 0
            at = row * 333 - number * overlap - back
            object_ = random.choice((f"<http://v/{random.randrange(6)}>", f"http://v/{random.randrange(6)}"))
            if random.random() < 0.02:
                object_ = "a literal"
            rows.append((subject, f"http://p/{random.randrange(3)}", object_, at))
        columns = dict(zip(("s", "p", "o", "at"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=random.choice((30, 100)))


def batches(job: Job, as_links: bool) -> Iterator[list[PackedRow]]:
    links = job.link_streams() if as_links else {}
    settings = SourceSettings(job.streams, job.fingerprint, Limit(60), None, links=links)
    planner = BatchPlanner(settings.streams, settings.queries, settings.limit)
    start = planner.initial()
    while (end := planner.ahead(start)) != start:
        rows = [row for piece in planner.pieces(start, end) for row in pack_piece(settings, piece)]
        yield [PackedRow(CELL, "control", json.dumps(BatchPlanner.control(end)).encode()), *rows]
        start = end


def told(job: Job, as_links: bool, forget: Random, then: Job | None = None) -> list[CellRow]:
    """All that a cell says, whose worker forgets now and then; half-way, another job may go on."""
    state = MemoryState()
    found: list[CellRow] = []
    cells.forget_everything()
    given = list(batches(job, as_links))
    others = given if then is None else list(batches(then, as_links))
    for number, rows in enumerate(given):
        job_now = job if then is None or number < len(given) // 2 else then
        if forget.random() < 0.3 or job_now is not job:
            cells.forget_everything()
        found += Cell(job_now, "cell", state).process(rows if job_now is job else others[number])
    return found


def summary(rows: Sequence[CellRow]) -> tuple[list[CellRow], dict[str, int]]:
    said = json.loads(next(row.data for row in reversed(rows) if row.kind == "status"))
    counts = {name: said[name] for name in ("events", "late", "malformed", "corrected", "rows") if name in said}
    return [row for row in rows if row.kind in ("answer", "late", "malformed", "warning")], counts


@pytest.mark.parametrize("seed", range(12))
def test_links_answer_as_whole_streams_do_with_late_and_malformed_rows_and_workers_that_forget(
    seed: int, tmp_path: Path
) -> None:
    random = Random(seed)
    disorder, overlap = random.choice(((0, 0), (0, 4000), (4000, 0)))
    write(tmp_path / "in", random, disorder=disorder, overlap=overlap, malformed=random.choice((0, 0, 0.01)))
    job = job_over(
        tmp_path / "in",
        random.sample(ASKED, random.randint(1, 4)),
        lateness=random.choice((None, Duration(seconds=2))) if disorder or overlap else None,
        late=random.choice((LatePolicy(), LatePolicy("correct", Duration(seconds=10)))),
    )
    assert any(row.kind == "links" for rows in batches(job, True) for row in rows) or disorder
    assert summary(told(job, True, Random(seed))) == summary(told(job, False, Random(seed)))


@pytest.mark.parametrize("seed", range(6))
def test_other_queries_find_all_that_came_though_it_came_as_links(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    write(tmp_path / "in", random)
    before = job_over(tmp_path / "in", random.sample(ASKED, 2))
    after = job_over(tmp_path / "in", [*random.sample(ASKED, 1), *([PATTERN] if seed % 2 else [])])
    assert summary(told(before, True, Random(seed), after)) == summary(told(before, False, Random(seed), after))


def test_rows_that_are_late_by_an_earlier_file_are_told_one_by_one_though_they_came_as_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in", Random(4), overlap=4000)
    job = job_over(tmp_path / "in", [ASKED[0]])
    read_again: list[LinkedRows] = []
    whole = LinkedRows.whole

    def noted(linked: LinkedRows, streams: Sequence[OpenedStream]) -> object:
        read_again.append(linked)
        return whole(linked, streams)

    monkeypatch.setattr(LinkedRows, "whole", noted)
    answers, counts = summary(told(job, True, Random(0)))
    assert read_again
    assert counts["late"] > 10
    assert (answers, counts) == summary(told(job, False, Random(0)))


def test_fewer_rows_travel_and_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "in", Random(1))
    job = job_over(tmp_path / "in", [ASKED[0]])

    def held(rows: Sequence[CellRow]) -> int:
        return max(json.loads(row.data)["streams"][STREAM]["held"] for row in rows if row.kind == "status")

    assert held(told(job, True, Random(0))) < held(told(job, False, Random(0)))


def test_links_that_must_be_read_again_and_are_not_there_any_more_are_an_error(tmp_path: Path) -> None:
    write(tmp_path / "in", Random(2))
    job, state = job_over(tmp_path / "in", [ASKED[0]]), MemoryState()
    given = list(batches(job, True))
    other = replace(job, queries=job_over(tmp_path / "in", [PATTERN]).queries)
    for rows in given[:2]:
        list(Cell(job, "cell", state).process(rows))
    cells.forget_everything()
    for file in (tmp_path / "in").iterdir():
        pq.write_table(pq.read_table(file).slice(0, 5), file)
    with pytest.raises(StreamError):
        list(Cell(other, "cell", state).process(given[2]))
