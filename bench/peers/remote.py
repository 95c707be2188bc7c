"""Our side of a peer's process: starts it, hands it work through files, and waits for its answers.

A peer that is not installed, or does not answer, is never passed over in silence: `absent` says why.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from peers.jobs import Ids, Plan, Slides, Window

BENCH = Path(__file__).parents[1]
PEERS_PYTHON = BENCH.parent / ".venv-peers" / "bin" / "python"
PATHWAY = "Pathway"
PATHWAY_READING = "Pathway with reading"
HINT = "`make bench-peers` installs it"


class PeerFailed(Exception):
    """A peer could not do what it was asked."""


@dataclass(frozen=True, slots=True)
class Known:
    """A peer: the module that is its code, and whether it lives in the peers' own environment. It is given whole
    windows, or `follows` the changes of one; it asks its query again each time, or derives the answer's changes."""

    name: str
    module: str
    apart: bool
    follows: bool = False
    asks_again: bool = True


KNOWN = (
    Known("polars", "polars_joins", apart=False),
    Known("polars lazy", "polars_lazy", apart=False),
    Known("pyoxigraph", "oxigraph_store", apart=False),
    Known("DuckDB", "duckdb_joins", apart=True),
    Known("DataFusion", "datafusion_joins", apart=True),
    Known("pyoxigraph kept", "oxigraph_store", apart=False, follows=True),
    Known(PATHWAY, "pathway_flow", apart=True, follows=True, asks_again=False),
)


class Peer:
    def __init__(self, known: Known, folder: Path, patience: float = 600.0) -> None:
        self.known = known
        self.name = known.name
        self.absent: str | None = None
        self.version = ""
        self._folder = folder
        self._patience = patience
        self._process: subprocess.Popen[str] | None = None
        self._start()  # `greet` waits for it

    def _start(self) -> None:
        python = PEERS_PYTHON if self.known.apart else Path(sys.executable)
        if not python.exists():
            self.absent = f"not installed: {HINT}"
            return
        # Our own environment must not show through into theirs.
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        log = (self._folder / f"{self.known.module}.log").open("a", encoding="utf-8")
        with log:
            self._process = subprocess.Popen(
                [str(python), "-m", "peers.worker", self.known.module],
                cwd=BENCH, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    def greet(self) -> None:
        """Waits until it is there, or says why it is not."""
        if self._process is None:
            return
        try:
            said = self._answer()
        except (EOFError, TimeoutError) as gone:
            said = {"absent": str(gone)}
        self.version = str(said.get("version", ""))
        if "absent" in said:
            self.absent = f"{said['absent']}: {HINT}"
            self.stop()

    # --- windows, each evaluated anew ---

    def load(self, plan: Plan, windows: Sequence[Path]) -> None:
        self._ask(do="load", plan=plan.as_dict(), files=[str(path) for path in windows])

    def evaluate(self, budget: float) -> list[float]:
        """Seconds of each window; fewer windows than were loaded where they take longer than the budget."""
        seconds: list[float] = self._ask(do="evaluate", budget=budget)["seconds"]
        return seconds

    def answers(self, window: int) -> Ids:
        return self._read(do="answers", window=window)

    def drop(self) -> None:
        self._ask(do="drop")

    # --- slides, one after the other ---

    def slides(self, plan: Plan, slides: Path, budget: float) -> tuple[float, float]:
        """Seconds per slide, and with the reading of its input where that was taken off."""
        said = self._ask(do="slides", plan=plan.as_dict(), file=str(slides), budget=budget)
        count, seconds = int(said["slides"]), float(said["seconds"])
        return seconds / count, float(said.get("with_reading", seconds)) / count

    def slide_answers(self, plan: Plan, slides: Path) -> Ids:
        return self._read(do="slide_answers", plan=plan.as_dict(), file=str(slides))

    def stop(self) -> None:
        if self._process is not None:
            process, self._process = self._process, None
            process.kill()
            process.communicate()

    def _read(self, **command: Any) -> Ids:
        path = self._folder / f"{self.known.module}-answers.npy"
        self._ask(**command, to=str(path))
        found: Ids = np.load(path)
        path.unlink()
        return found

    def _ask(self, **command: Any) -> dict[str, Any]:
        if self._process is None:
            raise PeerFailed(self.absent or "stopped")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            said = self._answer()
        except (BrokenPipeError, EOFError, TimeoutError) as gone:
            # It may have run out of memory or of time: others go on, and it begins anew with the next question.
            self.stop()
            self._start()
            self.greet()
            raise PeerFailed(f"gave up: {gone or type(gone).__name__}") from gone
        if "failed" in said:
            raise PeerFailed(said["failed"])
        return said

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = _line(self._process.stdout, self._patience)
        if not line:
            raise EOFError("its process ended")
        found: dict[str, Any] = json.loads(line)
        return found


def _line(pipe: IO[str], patience: float) -> str:
    with selectors.DefaultSelector() as waiting:
        waiting.register(pipe, selectors.EVENT_READ)
        if not waiting.select(patience):
            raise TimeoutError(f"no answer within {patience:g} s")
    return pipe.readline()


def write_windows(folder: Path, windows: Sequence[Window]) -> list[Path]:
    paths = [folder / f"window{number}.npz" for number in range(len(windows))]
    for path, window in zip(paths, windows, strict=True):
        window.write(path)
    return paths


def write_slides(folder: Path, slides: Slides) -> Path:
    path = folder / "slides.npz"
    slides.write(path)
    return path
