"""Commands whose processor seconds and peak memory are measured, each on one core; bench/launch.py runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

LAUNCHER = Path(__file__).parent / "launch.py"
PATIENCE = 900.0  # seconds


@dataclass(frozen=True, slots=True)
class Taken:
    """What one command took: its children are counted with it."""

    cpu_seconds: float
    peak_mb: float


class CommandFailed(Exception):
    """A command ended with an error, or did not end."""


def measured_command(command: list[str], place: Path, stdout: Path, apart: bool = False) -> Taken:
    """Run a command in a folder; `apart` keeps our own environment from showing through into it."""
    result = Path(f"{stdout}.json")
    environment = dict(os.environ)
    if apart:
        for name in ("PYTHONPATH", "VIRTUAL_ENV"):
            environment.pop(name, None)
    elif "PYTHONPATH" in environment:  # it may be meant from here
        given = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(str(Path(one).absolute()) for one in given)
    core = max(os.sched_getaffinity(0))
    launcher = [sys.executable, "-I", "-S", str(LAUNCHER), str(core), str(PATIENCE), str(result), str(stdout)]
    subprocess.run([*launcher, *command], cwd=place, env=environment, check=True)
    measured = json.loads(result.read_text(encoding="utf-8"))
    if measured["returncode"] != 0:
        said = Path(f"{stdout}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        late = measured["returncode"] == -signal.SIGKILL
        ended = f"stopped after {PATIENCE:g} s" if late else f"ended with {measured['returncode']}"
        raise CommandFailed(f"{ended}: {' '.join(said[-3:]) or 'said nothing'}")
    return Taken(measured["cpu_seconds"], measured["peak_mb"])
