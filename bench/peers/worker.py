"""A peer's own process: reads one JSON command per line, writes one JSON answer per line.

    python -m peers.worker polars_joins

Commands: `load` windows, `evaluate` them by number and say the seconds that each took, `answers` of one into a file,
`drop` what was loaded; `slides` runs a stream of changes and says the seconds per slide; `slide_answers` gives the
matches after its last slide. A command that fails is answered with its error.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from types import ModuleType
from typing import Any

import numpy as np

from peers.jobs import Ids, Plan, Slides, Window

Command = dict[str, Any]


class Worker:
    def __init__(self, peer: ModuleType) -> None:
        self._peer = peer
        self._plan = Plan(0, (), ())
        self._prepared: list[Any] = []

    def answer(self, command: Command) -> dict[str, Any]:
        match command["do"]:
            case "load":
                self._drop()
                self._plan = Plan.read(command["plan"])
                self._prepared = [self._peer.prepare(self._plan, Window.read(path)) for path in command["files"]]
                return {}
            case "evaluate":
                return self._evaluate(command["budget"])
            case "answers":
                rows = self._peer.rows(self._plan, self._peer.evaluate(self._plan, self._prepared[command["window"]]))
                return _written(rows, command["to"])
            case "drop":
                self._drop()
                return {}
            case "slides":
                return self._slides(Plan.read(command["plan"]), Slides.read(command["file"]), command["budget"])
            case "slide_answers":
                return self._slide_answers(Plan.read(command["plan"]), Slides.read(command["file"]), command["to"])
        raise ValueError(f"unknown command {command['do']!r}")

    def _evaluate(self, budget: float) -> dict[str, Any]:
        """All windows, or as many as fit into so many seconds."""
        seconds: list[float] = []
        for prepared in self._prepared:
            began = time.perf_counter()
            answer = self._peer.evaluate(self._plan, prepared)
            seconds.append(time.perf_counter() - began)
            del answer
            if sum(seconds) > budget:
                break
        return {"seconds": seconds}

    def _slides(self, plan: Plan, slides: Slides, budget: float) -> dict[str, Any]:
        if hasattr(self._peer, "stream"):
            seconds, with_reading = self._peer.stream(plan, slides)
            return {"seconds": seconds, "with_reading": with_reading, "slides": slides.count - 1}
        kept = self._peer.Kept(plan, slides)
        began, done = time.perf_counter(), 0
        for number in range(1, slides.count):
            kept.slide(number)
            done += 1
            if time.perf_counter() - began > budget:
                break
        return {"seconds": time.perf_counter() - began, "slides": done}

    def _slide_answers(self, plan: Plan, slides: Slides, to: str) -> dict[str, Any]:
        if hasattr(self._peer, "stream"):
            return _written(self._peer.answers(plan, slides), to)
        kept = self._peer.Kept(plan, slides)
        answer: Any = []
        for number in range(1, slides.count):
            answer = kept.slide(number)
        return _written(self._peer.rows(plan, answer), to)

    def _drop(self) -> None:
        if hasattr(self._peer, "drop"):
            for prepared in self._prepared:
                self._peer.drop(prepared)
        self._prepared = []


def _written(rows: Ids, to: str) -> dict[str, Any]:
    np.save(to, rows)
    return {}


def main() -> None:
    # Libraries that print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        peer = importlib.import_module(f"peers.{sys.argv[1]}")
    except ImportError as absent:
        print(json.dumps({"absent": str(absent)}), file=answers, flush=True)
        return
    print(json.dumps({"version": peer.VERSION}), file=answers, flush=True)
    worker = Worker(peer)
    gc.disable()
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as failed:
            answer = {"failed": f"{type(failed).__name__}: {failed}"}
        print(json.dumps(answer), file=answers, flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
