"""Signals: how Ctrl-C and SIGTERM end a command in each of its phases.

    while modules load        at once: nothing is open yet
    in a command              KeyboardInterrupt, as Python has it for Ctrl-C
    while Spark starts        its Java process is ended, and so is this one
    in a run on Spark         between two looks at the run, sinks and Spark closed in order

A command that does not end in time after a SIGTERM is killed: child processes after `_IN_ORDER` seconds, this process
soon after them. An interrupted batch is run again from the checkpoint.

Invariant: this module loads nothing that takes time; the exit code is 130.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from anabranch.runner.processes import children_of, end_processes

INTERRUPTED = 130

_IN_ORDER = 2.0  # seconds to end by itself
_AFTERWARDS = 1.5  # seconds to clear up once child processes were ended

SignalHandler = Callable[[int, FrameType | None], None]


class Interrupted(KeyboardInterrupt):
    """What a signal raises. Python notes where a plain KeyboardInterrupt leaves exec(), as it may where a module makes
    its dataclasses, and `python -m` then dies of SIGINT, whatever the exit code is."""


def end_at_once() -> None:
    """Until a command begins Ctrl-C and SIGTERM end the process, with the exit code of an interrupted one."""
    if threading.current_thread() is threading.main_thread():
        for number in _heard():
            signal.signal(number, lambda number, frame: os._exit(INTERRUPTED))


@contextmanager
def terminable() -> Iterator[None]:
    """Ctrl-C and SIGTERM interrupt what is inside."""
    with _handling(_Interruption(), *_heard()):
        yield


def _heard() -> list[signal.Signals]:
    """The signals that end a command: not Ctrl-C where it was started to ignore it, as jobs of a shell are."""
    signals = (signal.SIGTERM, signal.SIGINT)
    return [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Raise KeyboardInterrupt on Ctrl-C and SIGTERM, and remember them: Python drops an exception that is raised during
    garbage collection, and the run must stop even then. Yields a function that says whether a signal came."""
    handler = _Interruption()
    with _handling(handler, signal.SIGINT, signal.SIGTERM):
        yield lambda: bool(handler.seen)


@contextmanager
def stopping(clear_up: Callable[[], None] = lambda: None) -> Iterator[Callable[[], bool]]:
    """Stop a run in order on Ctrl-C and SIGTERM, with sinks and Spark closed; a second signal interrupts at once. Until
    the yielded function is first called nothing runs yet: then a signal ends the child processes, calls `clear_up` and
    ends this process, because libraries that are starting would answer an exception with tracebacks, and continue."""
    handler = _Stop(clear_up)
    with _handling(handler, signal.SIGINT, signal.SIGTERM):
        yield handler.is_wanted


class _Interruption:
    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.seen.append(number)
        if number == signal.SIGTERM and self.seen.count(number) == 1:
            _end_in_time()
        raise Interrupted


class _Stop:
    def __init__(self, clear_up: Callable[[], None]) -> None:
        self._clear_up = clear_up
        self._seen: list[int] = []
        self._is_asked = False

    def is_wanted(self) -> bool:
        self._is_asked = True
        return bool(self._seen)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._seen.append(number)
        if number == signal.SIGTERM and self._seen.count(number) == 1:
            _end_in_time()
        if not self._is_asked:
            end_children()
            with suppress(Exception):
                self._clear_up()
            os._exit(INTERRUPTED)
        if len(self._seen) > 1:
            raise Interrupted


@contextmanager
def _handling(handler: SignalHandler, *numbers: signal.Signals) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, one in before.items():
            signal.signal(number, one)


def _end_in_time() -> None:
    """Kill child processes, then this one, unless it ends by itself before."""

    def end() -> None:
        pause.wait(_IN_ORDER)
        end_children()
        pause.wait(_AFTERWARDS)
        os._exit(INTERRUPTED)

    pause = threading.Event()
    threading.Thread(target=end, name="end in time", daemon=True).start()


def end_children() -> None:
    """Kill the child processes of this process."""
    end_processes(children_of(os.getpid()))
