"""The whole command, file in and rows out, beside other engines: the same file, the same rows, on one core.

    python bench/run.py product                    all of it
    python bench/product.py --events 100000 --only filter,pairs --formats ndjson,parquet --windows 3000/100,30000/20

Both write bench/results/product.json. Figures are processor seconds of the command and its children (user and system),
starting and imports included, and its peak memory. Streams and questions are in workloads/shop.py and shop_queries.py;
an event comes each second, windows and slides count events, and the first instant is that of the first full window.

    ours        anabranch run ... --engine local
    DuckDB, polars     the file is read once, then each window is asked anew, in a loop
    Pathway     an incremental dataflow, whose changes are added up to rows
    plain       anabranch run ... --engine local --force recompute: each window by the plain evaluator

Every engine's rows are compared with ours, as bags, instant by instant; a figure counts only if they are the same.
Engines that would take too long get two beginnings of the file, one longer than the other; the difference says what the
rest would take (`~`). That is a straight line: every window is full. Times are how many times fewer processor seconds
ours takes; below 1 is a loss.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from commands import CommandFailed, Taken, measured_command
from peers.remote import BENCH, HINT, PEERS_PYTHON
from peers.whole import WholeJob
from workloads import shop
from workloads.shop_queries import BY_NAME, QUERIES, ShopQuery

Rows = tuple[int, Counter[tuple[Any, ...]]]
"""An instant and its rows."""
OURS = "ours"
EVENTS = 40_000
WINDOWS = ((3_000, 1_500), (3_000, 100), (30_000, 100), (30_000, 20), (30_000, 10))
MIDDLE = (3_000, 100)  # measured in all formats; the other windows in NDJSON
LEAST_WINDOWS = 4  # windows' worth of events that a file has at least
ENOUGH = 10.0  # processor seconds after which a command is not repeated
_BEGAN = datetime.fromisoformat(str(shop.START)).replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class WholeEngine:
    """An engine: how its command is made, and how many events after the first window it is given at most."""

    name: str
    module: str | None = None
    apart: bool = False
    options: tuple[str, ...] = ()
    most: Callable[[int, int], int] | None = None

    def python(self) -> Path:
        return PEERS_PYTHON if self.apart else Path(sys.executable)

    def parts(self, setting: Setting) -> list[int]:
        """How many events of the file it gets: all, or two beginnings."""
        most = self.most(setting.window, setting.slide) if self.most else setting.events
        half = most // 2 // setting.slide * setting.slide
        if setting.window + 2 * half >= setting.events or not half:
            return [setting.events]
        return [setting.window + half, setting.window + 2 * half]


ENGINES = (
    WholeEngine(OURS),
    WholeEngine("DuckDB", "whole_duckdb", apart=True, most=lambda window, slide: 15_000_000 // window * slide),
    WholeEngine("polars", "whole_polars", most=lambda window, slide: 15_000_000 // window * slide),
    WholeEngine("Pathway", "whole_pathway", apart=True, most=lambda window, slide: 40_000),
    WholeEngine("plain", options=("--force", "recompute"), most=lambda window, slide: 300_000 // window * slide),
)


@dataclass(frozen=True, slots=True)
class Setting:
    format: str
    query: ShopQuery
    window: int
    slide: int
    events: int

    def __str__(self) -> str:
        return f"{self.format} {self.query.name} {self.window:,}/{self.slide:,}"


class Bench:
    """Makes files and runs commands in one folder."""

    def __init__(self, folder: Path, repetitions: int) -> None:
        self.folder = folder
        self.repetitions = repetitions

    def measured(self, setting: Setting, engines: Sequence[WholeEngine]) -> dict[str, Any]:
        """Figures of all engines at one setting; ours is the first."""
        record: dict[str, Any] = {
            "format": setting.format, "query": setting.query.name, "window": setting.window, "slide": setting.slide,
            "overlap": setting.window // setting.slide, "events": setting.events, "engines": {}, "without": {},
            "wrong": [],
        }  # fmt: skip
        for engine in engines:
            if reason := _absent(engine, setting):
                record["without"][engine.name] = reason
                continue
            try:
                figures, last, rows = self._figures(setting, engine)
            except CommandFailed as failed:
                if engine.name == OURS:
                    raise
                record["without"][engine.name] = str(failed)
                continue
            if engine.name == OURS:
                ours = rows.rename(self.folder / "rows-of-ours")
                record["rows"] = sum(1 for _ in ours.open("rb"))
            elif OURS in record["engines"]:
                told = difference(
                    told_rows(ours, setting.query, last), told_rows(rows, setting.query, last), engine.name
                )
                if told is not None:
                    record["wrong"].append(told)
                    record["without"][engine.name] = told
                    continue
            record["engines"][engine.name] = figures
        for path in self.folder.glob("rows-*"):
            path.unlink()
        return record | times_of(record["engines"])

    def _figures(self, setting: Setting, engine: WholeEngine) -> tuple[dict[str, Any], int, Path]:
        """The figures of an engine, the last instant of its rows, and its rows."""
        parts = engine.parts(setting)
        found = [self._repeated(setting, engine, events) for events in parts]
        seconds = [statistics.median(taken.cpu_seconds for taken in one) for one in found]
        cpu = extrapolated(parts, seconds, setting.events)
        figures = {
            "cpu_seconds": round(cpu, 3),
            "events_per_cpu_second": round(setting.events / cpu),
            "peak_mb": round(statistics.median(taken.peak_mb for taken in found[-1])),
            "repetitions": len(found[-1]),
            **({} if len(parts) == 1 else {"measured_on": dict(zip(parts, seconds, strict=True))}),
        }
        return figures, parts[-1], self._rows(engine)

    def _repeated(self, setting: Setting, engine: WholeEngine, events: int) -> list[Taken]:
        found: list[Taken] = []
        while len(found) < self.repetitions and sum(taken.cpu_seconds for taken in found) < ENOUGH:
            found.append(self.run(setting, engine, events))
        return found

    def run(self, setting: Setting, engine: WholeEngine, events: int) -> Taken:
        file, rows = self.file(setting, events), self._rows(engine)
        if engine.module is None:
            return measured_command(self._ours(setting, engine, file), self.folder, rows)
        job = WholeJob(
            setting.query.name, setting.query.stream, setting.format, str(file), str(rows), setting.window,
            setting.slide, events,
        )  # fmt: skip
        job.write(self.folder / "job.json")
        command = [str(engine.python()), "-m", f"peers.{engine.module}", str(self.folder / "job.json")]
        return measured_command(command, BENCH, self.folder / "said", apart=True)

    def _rows(self, engine: WholeEngine) -> Path:
        return self.folder / f"rows-{engine.name}"

    def _ours(self, setting: Setting, engine: WholeEngine, file: Path) -> list[str]:
        query = self.folder / f"query.{'rspql' if setting.format == 'triples' else 'seraph'}"
        query.write_text(setting.query.text(setting.format, file, setting.window, setting.slide), encoding="utf-8")
        # LOAD STREAM names the file itself.
        stream = [] if setting.format == "csv" else ["-s", f"{setting.query.stream_name(setting.format)}={file}"]
        return [
            sys.executable, "-m", "anabranch", "run", str(query), *stream, "--engine", "local", "--output", "json",
            "--quiet", *engine.options,
        ]  # fmt: skip

    def file(self, setting: Setting, events: int) -> Path:
        """The file with so many events, made where it is not there yet. Another stream takes the place of all files."""
        ending = shop.FORMATS[setting.format]
        kind = setting.query.stream if setting.query.stream == "purchases" else f"payments{setting.window}"
        path = self.folder / f"{kind}-{setting.events}-{events}.{ending}"
        if not path.exists():
            for old in self.folder.glob(f"p*-*-*.{ending}"):
                if not old.name.startswith(f"{kind}-{setting.events}-"):
                    old.unlink()
            _stream(setting.query.stream, setting.events, setting.window).cut(events).write(setting.format, path)
        return path


def _stream(name: str, events: int, window: int) -> shop.ShopStream:
    return shop.purchases(events) if name == "purchases" else shop.payments(events, window)


def _absent(engine: WholeEngine, setting: Setting) -> str | None:
    if not engine.python().exists():
        return f"absent: not installed, {HINT}"
    if engine.name == "Pathway" and setting.query.name == "connectivity":
        return "it has no components"
    return None


def extrapolated(parts: Sequence[int], seconds: Sequence[float], events: int) -> float:
    """The seconds of all events, along the line through the parts that were measured."""
    if len(parts) == 1:
        return seconds[0]
    per_event = (seconds[1] - seconds[0]) / (parts[1] - parts[0])
    return seconds[1] + max(0.0, per_event) * (events - parts[1])


def times_of(engines: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """How many times fewer processor seconds ours takes than each of the others."""
    if OURS not in engines:
        return {"times": {}}
    ours = engines[OURS]["cpu_seconds"]
    others = {name: figures["cpu_seconds"] for name, figures in engines.items() if name != OURS}
    return {"times": {name: float(f"{cpu / ours:.3g}") for name, cpu in others.items()}}


# --- rows ---


def told_rows(path: Path, query: ShopQuery, last: int) -> Iterator[Rows]:
    """The rows of each instant that has any, up to one, as they were written by an engine."""
    with path.open(encoding="utf-8") as file:
        records = (json.loads(line) for line in file)
        for instant, found in groupby(records, key=_instant):
            if instant <= last:
                yield instant, Counter(tuple(_row(one)[name] for name in query.columns) for one in found)


def _instant(record: dict[str, Any]) -> int:
    return int(record["instant"]) if "instant" in record else _seconds(record["at"])


@cache
def _seconds(at: str) -> int:
    return int((datetime.fromisoformat(at) - _BEGAN).total_seconds())


def _row(record: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = record.get("row", record)
    return row


def difference(ours: Iterator[Rows], theirs: Iterator[Rows], name: str) -> str | None:
    """Where the rows differ first, or None."""
    for mine, other in zip_longest(ours, theirs):
        if mine != other:
            instant = min(one[0] for one in (mine, other) if one is not None)
            (here, rows), (there, more) = mine or (None, Counter()), other or (None, Counter())
            rows, more = rows if here == instant else Counter(), more if there == instant else Counter()
            return f"other rows at event {instant}: ours alone {_few(rows - more)}, {name} alone {_few(more - rows)}"
    return None


def _few(rows: Counter[tuple[Any, ...]]) -> str:
    shown = ", ".join(map(str, list(rows)[:3]))
    return f"{rows.total()} ({shown})" if rows else "none"


# --- runs ---


def run(
    smoke: bool = False,
    settings: Sequence[Setting] | None = None,
    engines: Sequence[WholeEngine] = ENGINES,
    repetitions: int = 3,
) -> dict[str, Any]:
    if settings is None:
        settings = smoke_settings() if smoke else all_settings(EVENTS)
    records = []
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        bench = Bench(Path(folder), 1 if smoke else repetitions)
        starting = bench.measured(Setting("ndjson", BY_NAME["group"], 100, 100, 100), [] if smoke else engines)
        print(f"a file of 100 events: {_shown(starting)}")
        for setting in settings:
            record = bench.measured(setting, engines)
            print(f"{setting}: {_shown(record)}", flush=True)
            records.append(record)
    print(table(records, [engine.name for engine in engines]))
    lost, wrong = losses(records), [f"{_title(one)}: {text}" for one in records for text in one["wrong"]]
    for line in lost:
        print(f"lost: {line}")
    for line in wrong:
        print(f"wrong: {line}")
    return {
        "unit": "processor seconds of the whole command on one core",
        "engines": [engine.name for engine in engines],
        "starting": starting,
        "measured": records,
        "losses": lost,
        "wrong": wrong,
    }


def all_settings(events: int) -> list[Setting]:
    """The middle window in all formats, the others in NDJSON."""
    found = chosen_settings(events, list(shop.FORMATS), [query.name for query in QUERIES], [MIDDLE])
    others = [window for window in WINDOWS if window != MIDDLE]
    return found + chosen_settings(events, ["ndjson"], [query.name for query in QUERIES], others)


def chosen_settings(
    events: int, formats: Sequence[str], names: Sequence[str], windows: Sequence[tuple[int, int]]
) -> list[Setting]:
    """Every choice that there is; questions that read one stream stand together, since they share its file."""
    queries = sorted((BY_NAME[name] for name in names), key=lambda query: query.stream, reverse=True)
    return [
        Setting(format, query, window, slide, max(events, LEAST_WINDOWS * window) // slide * slide)
        for window, slide in windows
        for format in formats
        for query in queries
        if format != "triples" or query.sparql is not None
    ]


def smoke_settings() -> list[Setting]:
    pairs = (("ndjson", "pairs"), ("csv", "group"), ("parquet", "topk"), ("triples", "triangle"))
    return [Setting(format, BY_NAME[name], 200, 50, 600) for format, name in pairs]


# --- text ---


def losses(records: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"{_title(record)}: {times:g} times {name}"
        for record in records
        for name, times in record["times"].items()
        if times < 1
    ]


def table(records: Sequence[dict[str, Any]], engines: Sequence[str]) -> str:
    """Events per processor second of each engine, with how many times faster ours is; peak memory."""
    head = ["format", "query", "window/slide", "events", *engines, "peak MB"]
    lines = [head] + [
        [
            record["format"], record["query"], f"{record['window']:,}/{record['slide']:,}", f"{record['events']:,}",
            *(_cell(record, name) for name in engines),
            " ".join(str(record["engines"][name]["peak_mb"]) if name in record["engines"] else "-" for name in engines),
        ]
        for record in records
    ]  # fmt: skip
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) for line in lines)


def _cell(record: dict[str, Any], name: str) -> str:
    if name not in record["engines"]:
        return "-"
    figures = record["engines"][name]
    rate = f"{'~' if 'measured_on' in figures else ''}{figures['events_per_cpu_second']:,}"
    return f"{rate} ({record['times'][name]:g}x)" if name in record["times"] else rate


def _shown(record: dict[str, Any]) -> str:
    took = ", ".join(f"{name} {figures['cpu_seconds']:g}" for name, figures in record["engines"].items())
    left = "".join(f"; {name}: {reason}" for name, reason in record["without"].items())
    return f"{record.get('rows', 0):,} rows; CPU s: {took}{left}"


def _title(record: dict[str, Any]) -> str:
    return f"{record['format']} {record['query']} {record['window']:,}/{record['slide']:,}"


def _windows(text: str) -> list[tuple[int, int]]:
    return [(int(window), int(slide)) for window, slide in (one.split("/") for one in text.split(","))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="tiny input; nothing is written")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--only", type=lambda text: text.split(","), help="questions, with commas in between")
    parser.add_argument("--formats", type=lambda text: text.split(","))
    parser.add_argument("--windows", type=_windows, help="such as 3000/100,30000/20")
    parser.add_argument("--engines", type=lambda text: text.split(","), help="names, besides ours")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    settings = None
    if not options.smoke:
        settings = all_settings(options.events)
        if options.only or options.formats or options.windows:
            formats, windows = options.formats or ["ndjson"], options.windows or [MIDDLE]
            settings = chosen_settings(options.events, formats, options.only or list(BY_NAME), windows)
    asked = {OURS.lower(), *(name.lower() for name in options.engines or [engine.name for engine in ENGINES])}
    engines = [engine for engine in ENGINES if engine.name.lower() in asked]
    measured = run(options.smoke, settings, engines, options.repetitions)
    if not options.smoke:
        from run import write_result

        write_result("product", measured)
    if measured["wrong"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
