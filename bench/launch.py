"""Runs one command on one core and writes what it took: processor seconds of it and its children, peak memory, time.

    python -I -S bench/launch.py CORE PATIENCE RESULT STDOUT COMMAND ...

This is a process of its own because a process starts with the peak memory of the one that started it: a benchmark that
has made large files would show in the figure of every command that it runs. What the command says goes to STDOUT, its
complaints to STDOUT.log.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from types import FrameType


def main() -> None:
    core, patience, result, stdout, *command = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [(os.POSIX_SPAWN_OPEN, 1, stdout, flags, 0o644), (os.POSIX_SPAWN_OPEN, 2, f"{stdout}.log", flags, 0o644)]
    began = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=actions)

    def stop(number: int, frame: FrameType | None) -> None:
        os.kill(process, signal.SIGKILL)

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, float(patience))
    _, status, used = os.wait4(process, 0)
    measured = {
        "returncode": os.waitstatus_to_exitcode(status),
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / 1024,
        "seconds": time.perf_counter() - began,
    }
    with open(result, "w", encoding="utf-8") as file:
        json.dump(measured, file)


if __name__ == "__main__":
    main()
