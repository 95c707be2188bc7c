"""The benchmark of the whole command: its streams, the peers' forms of its questions, and how figures are made."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import commands
import numpy as np
import product
import pytest
from peers import whole_polars
from peers.whole import WholeJob
from product import BY_NAME, Setting, WholeEngine, difference, extrapolated, losses, told_rows
from workloads import shop
from workloads.shop_queries import QUERIES

import anabranch
from anabranch.syntax.languages import QueryText

WINDOW, SLIDE, EVENTS = 100, 25, 400
PURCHASES, PAYMENTS = shop.purchases(EVENTS), shop.payments(EVENTS, WINDOW)
ASKED = [(format, query.name) for format in shop.FORMATS for query in QUERIES if format != "triples" or query.sparql]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    folder = tmp_path_factory.mktemp("streams")
    found = {}
    for stream in (PURCHASES, PAYMENTS):
        for format, ending in shop.FORMATS.items():
            found[stream.name, format] = folder / f"{stream.name}.{ending}"
            stream.write(format, found[stream.name, format])
    return found


@pytest.mark.parametrize(("format", "name"), ASKED, ids=lambda value: str(value))
def test_a_peer_answers_the_question_that_the_query_asks(
    format: str, name: str, files: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    query = BY_NAME[name]
    file, ours, theirs = files[query.stream, format], tmp_path / "ours.ndjson", tmp_path / "theirs.ndjson"
    text = query.text(format, file, WINDOW, SLIDE)
    asked = QueryText(text, f"query.{'rspql' if format == 'triples' else 'seraph'}")
    anabranch.run([asked], {query.stream_name(format): str(file)}, sinks=[str(ours)], engine="local")
    whole_polars.run(WholeJob(name, query.stream, format, str(file), str(theirs), WINDOW, SLIDE, EVENTS))
    mine, other = (list(told_rows(path, query, EVENTS)) for path in (ours, theirs))
    assert mine == other
    assert mine


def test_no_account_pays_another_twice_within_a_window() -> None:
    seen: dict[tuple[int, int], int] = {}
    for _, number, source, target, _ in PAYMENTS.rows():
        assert source != target
        assert number - seen.get((source, target), -WINDOW - 1) > WINDOW
        seen[source, target] = number


def test_the_beginning_of_a_stream_is_a_beginning_of_its_file(tmp_path: Path) -> None:
    for stream in (PURCHASES, PAYMENTS):
        stream.write("triples", tmp_path / "whole")
        stream.cut(50).write("triples", tmp_path / "part")
        part = (tmp_path / "part").read_bytes()
        assert (tmp_path / "whole").read_bytes().startswith(part)
        assert part


def test_rows_are_compared_as_bags_instant_by_instant() -> None:
    rows = [(100, Counter({("a", 1): 2})), (125, Counter({("b", 2): 1}))]
    assert difference(iter(rows), iter(rows), "polars") is None
    once = [(100, Counter({("a", 1): 1})), rows[1]]
    told = difference(iter(rows), iter(once), "polars")
    assert told == "other rows at event 100: ours alone 1 (('a', 1)), polars alone none"
    told = difference(iter(rows[:1]), iter(rows), "polars")
    assert told == "other rows at event 125: ours alone none, polars alone 1 (('b', 2))"
    told = difference(iter(rows), iter(rows[1:]), "polars")
    assert told == "other rows at event 100: ours alone 2 (('a', 1)), polars alone none"


def test_rows_after_the_last_instant_of_a_part_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    ours = '{"at": "2024-01-01T00:01:40Z", "row": {"branch": 1, "n": 2}}\n'
    path.write_text(ours + '{"instant": 125, "branch": 1, "n": 3}\n', encoding="utf-8")
    assert list(told_rows(path, BY_NAME["two_hop"], 100)) == [(100, Counter({(1, 2): 1}))]
    assert [instant for instant, _ in told_rows(path, BY_NAME["two_hop"], 125)] == [100, 125]


def test_two_parts_of_a_file_say_what_all_of_it_would_take() -> None:
    assert extrapolated([1_000], [3.0], 1_000) == 3.0
    assert extrapolated([1_000, 2_000], [3.0, 5.0], 10_000) == 21.0
    assert extrapolated([1_000, 2_000], [3.0, 2.9], 10_000) == 2.9  # noise takes nothing off


def test_an_engine_gets_two_parts_where_the_file_is_too_long_for_it() -> None:
    engine = WholeEngine("plain", most=lambda window, slide: 100 * slide)
    short, long = (Setting("ndjson", BY_NAME["filter"], 3_000, 100, events) for events in (13_000, 13_100))
    assert engine.parts(short) == [13_000]
    assert engine.parts(long) == [8_000, 13_000]
    assert WholeEngine("ours").parts(long) == [13_100]


def test_where_another_engine_took_less_is_told() -> None:
    record = {"format": "ndjson", "query": "pairs", "window": 3_000, "slide": 100}
    seconds = {"ours": 2.0, "DuckDB": 1.0, "plain": 9.0}
    times = product.times_of({name: {"cpu_seconds": cpu} for name, cpu in seconds.items()})
    assert times == {"times": {"DuckDB": 0.5, "plain": 4.5}}
    assert losses([record | times]) == ["ndjson pairs 3,000/100: 0.5 times DuckDB"]


def test_the_peak_of_a_command_is_not_that_of_the_process_that_asks(tmp_path: Path) -> None:
    kept = np.ones(40_000_000)  # 320 MB
    taken = commands.measured_command([sys.executable, "-c", "print(1)"], tmp_path, tmp_path / "said")
    assert 1 < taken.peak_mb < 100 < kept.nbytes / 1e6
    assert (tmp_path / "said").read_text(encoding="utf-8") == "1\n"


def test_the_seconds_of_children_are_counted(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    taken = commands.measured_command([sys.executable, "-c", parent], tmp_path, tmp_path / "said")
    assert taken.cpu_seconds >= 0.5


def test_a_command_that_fails_or_does_not_end_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(commands.CommandFailed, match="ended with 1: no such thing"):
        commands.measured_command([sys.executable, "-c", "exit('no such thing')"], tmp_path, tmp_path / "said")
    monkeypatch.setattr(commands, "PATIENCE", 0.2)
    with pytest.raises(commands.CommandFailed, match=r"stopped after 0\.2 s"):
        commands.measured_command([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, tmp_path / "said")
