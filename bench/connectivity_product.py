"""Connectivity as users have it: the public class in this process, and the command over files.

The class is given slides of a stream: 64-bit numbers, Arrow's texts, or Python's. A slide is timed from its push to its
answer; windows of edges are answered when the next edge comes, so the answer is that of the slide before. The command
reads files with a time column, from its start to its end, and the processor's time of the whole process is told, with
that of a run over a few edges beside it: it is the start of Python and of the compiled code.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as parquet
from connectivity_records import Record, Setting, Times, percentiles, three

from anabranch import ConnectivityWorkload
from anabranch.delta.batch import Ids, Mask
from anabranch.planner.choices import IndexName

NUMBERS, ARROW, PYTHON = "64-bit ids", "texts in Arrow", "texts in lists"
_SCRAMBLE, _BITS = 0x9E3779B1, (1 << 61) - 1
_TINY = 1_000  # edges
_COUNTED = """
import json, resource, subprocess, sys, time
begun = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
seconds, used = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, seconds, used.ru_maxrss]))
"""


@dataclass(frozen=True, slots=True)
class VertexForms:
    """The ids of all vertices in the forms in which they are pushed: text i is a `v` and number i."""

    numbers: Ids
    arrow: pa.Array
    python: list[str]

    @classmethod
    def of(cls, vertices: int) -> VertexForms:
        numbers = np.arange(vertices) * _SCRAMBLE & _BITS
        texts = [f"v{number}" for number in numbers.tolist()]
        return cls(numbers, pa.array(texts), texts)

    def ends(self, form: str, places: Ids) -> Any:
        match form:
            case "64-bit ids":
                return self.numbers[places]
            case "texts in Arrow":
                return self.arrow.take(pa.array(places))
        return [self.python[place] for place in places.tolist()]

    def pairs(self, form: str, setting: Setting) -> list[tuple[Any, Any]]:
        names = self.numbers.tolist() if form == NUMBERS else self.python
        return [
            (names[left], names[right])
            for left, right in zip(setting.left.tolist(), setting.right.tolist(), strict=True)
        ]


def through_the_class(setting: Setting, truth: Callable[[Setting, int], list[Mask]]) -> Record:
    """Both indexes, and ids in three forms; one window before the clock, and the others of the stream beside it."""
    forms, slides = VertexForms.of(setting.vertices), len(setting.edges) // setting.slide_size
    expected = truth(setting, slides)
    times: dict[str, Times] = {}
    sizes: dict[str, int] = {}
    indexes: tuple[IndexName, ...] = ("recency", "bic")
    for index in indexes:
        for form in (NUMBERS, ARROW, PYTHON):
            name = f"{index}, {form}"
            workload = ConnectivityWorkload(
                setting.window, setting.slide_size, pairs=forms.pairs(form, setting), index=index
            )
            times[name] = Times()
            for number in range(slides):
                edges = setting.slide(number)
                left, right = forms.ends(form, edges[:, 0]), forms.ends(form, edges[:, 1])
                processor, begun = time.process_time(), time.perf_counter()
                answers = [answer.connected for answer in workload.push(left, right)]
                seconds, processor = time.perf_counter() - begun, time.process_time() - processor
                if number >= setting.slides:
                    times[name].whole.append(seconds)
                    times[name].processor.append(processor)
                if number and not np.array_equal(answers, expected[number - 1 : number]):
                    raise AssertionError(f"{name} answers slide {number} of {setting.told()} in its own way")
            sizes[name] = workload.size().bytes
    size = setting.slide_size
    return {
        **setting.told(),
        "million_edges_per_second": {
            name: three(len(one.whole) * size / sum(one.whole) / 1e6) for name, one in times.items()
        },
        "million_edges_per_processor_second": {name: one.rate_by_processor(size) for name, one in times.items()},
        "slide_ms": {name: percentiles(one.whole) for name, one in times.items()},
        "slide_processor_ms": {name: percentiles(one.processor) for name, one in times.items()},
        "timed_slides": {name: len(one.whole) for name, one in times.items()},
        "bytes": sizes,
    }


# --- the command ---


def through_the_command(setting: Setting) -> Record:
    """Files of all edges of a stream, a millisecond apart, with numbers and with texts."""
    forms, edges = VertexForms.of(setting.vertices), setting.edges
    found: dict[str, Record] = {}
    started = 0.0
    with tempfile.TemporaryDirectory(prefix="anabranch-bench-") as folder:
        for form in (NUMBERS, ARROW):
            pairs = Path(folder, "pairs.csv")
            pairs.write_text("".join(f"{left},{right}\n" for left, right in forms.pairs(form, setting)))
            table = pa.table({
                "source": forms.ends(form, edges[:, 0]),
                "target": forms.ends(form, edges[:, 1]),
                "time": np.arange(len(edges)) + 1_700_000_000_000,
            })  # fmt: skip
            for ending, write in (("csv", arrow_csv.write_csv), ("parquet", parquet.write_table)):
                if not found:
                    write(table.slice(0, _TINY), str(Path(folder, "tiny.csv")))
                    started = _timed(Path(folder, "tiny.csv"), pairs, setting)[0]
                path = Path(folder, f"edges.{ending}")
                write(table, str(path))
                processor, seconds, memory = _timed(path, pairs, setting)
                found[f"{ending}, {'numbers' if form == NUMBERS else 'texts'}"] = {
                    "million_edges_per_second": three(len(edges) / seconds / 1e6),
                    "million_edges_per_processor_second": three(len(edges) / processor / 1e6),
                    "behind_the_start": three((len(edges) - _TINY) / max(processor - started, 1e-3) / 1e6),
                    "megabytes": three(memory / 1e6),
                }
    names = next(iter(found.values()))
    return {
        **setting.told(),
        "edges": len(edges),
        "start_processor_seconds": three(started),
        **{key: {name: one[key] for name, one in found.items()} for key in names},
    }


def _timed(path: Path, pairs: Path, setting: Setting) -> tuple[float, float, int]:
    """Run the command; returns the processor's seconds, the clock's, and the most bytes in memory."""
    width, slide = (f"PT{size / 1000:g}S" for size in (setting.window, setting.slide_size))
    command = [
        sys.executable, "-m", "anabranch", "connectivity", str(path), "--window", width, "--slide", slide,
        "--pairs", str(pairs), "--format", "json", "--quiet",
    ]  # fmt: skip
    # Through a small process: what a process takes at most counts from before it becomes another program.
    done = subprocess.run([sys.executable, "-c", _COUNTED, *command], capture_output=True, text=True, check=True)
    processor, seconds, kilobytes = json.loads(done.stdout)
    return processor, seconds, kilobytes * 1024


def shown_commands(record: Record) -> str:
    lines = [
        f"  {name:16} {rate:8g} M edges/s, {record['million_edges_per_processor_second'][name]:g} by the processor, "
        f"{record['behind_the_start'][name]:g} behind a start of {record['start_processor_seconds']:g} s   "
        f"{record['megabytes'][name]:g} MB"
        for name, rate in record["million_edges_per_second"].items()
    ]
    return "\n".join(["anabranch connectivity, {edges:,} edges, window {window:,}".format(**record), *lines])
