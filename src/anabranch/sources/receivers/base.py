"""A receiver: the thread that writes the records of a push source into a spool.

It starts and stops once. A connection that breaks is made again after a pause that doubles from 0.2 s to 30 s and falls
back when records come. A peer that refuses from the beginning (a wrong path, a wrong password) ends the receiver:
retries would not help. A peer that refuses later is asked again, because it accepted us before.

Invariant: a record is acknowledged to its source only after the spool has it.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from anabranch.errors import StreamError
from anabranch.sources.receivers.dialing import Dialer
from anabranch.sources.spool import Spool

OnState: TypeAlias = Callable[[str], None]
STOP_WITHIN = 2.0  # seconds
POLL_STOP = 0.2  # seconds between two checks whether to stop


class PeerRefusal(StreamError):
    """The peer answers, and refuses us."""


class Backoff:
    """Pauses between attempts; the jitter keeps many receivers from coming back at the same moment."""

    def __init__(self, seed: int | None = None, least: float = 0.2, most: float = 30.0) -> None:
        self._random = random.Random(seed)
        self._least = least
        self._most = most
        self._failures = 0

    @property
    def most(self) -> float:
        return self._most

    def reset(self) -> None:
        self._failures = 0

    def pause(self) -> float:
        """Seconds until the next attempt."""
        # The exponent is bounded: a float cannot hold what years of failures would make of it.
        base = min(self._most, self._least * 2.0 ** min(self._failures, 64))
        self._failures += 1
        return max(self._least, min(self._most, base * self._random.uniform(0.75, 1.25)))


class Receiver(ABC):
    """One push source. `on_state` receives a description of each event; it is called from the receiver's thread."""

    finite = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: StreamError | None = None
        self.received = 0
        self.state = "not started"
        self.trouble = ""  # the problem that keeps the peer from answering, until it does
        self.on_state: OnState = lambda state: None
        self._stopping = threading.Event()
        self._dialer = Dialer(self._stopping)
        self._backoff = Backoff()
        self._welcome = False  # whether the peer has ever accepted us
        self._thread: threading.Thread | None = None
        self._spool: Spool | None = None

    def start(self, spool: Spool) -> None:
        """Begin to receive. A spool that is finished stays so: nothing is received again."""
        if self._thread is not None:
            raise StreamError(f"{self.name} was started before\nhint: make a new receiver")
        self._spool = spool
        if not spool.finished:
            self._prepare()
        self._thread = threading.Thread(target=self._run, name=f"receiver {self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End within two seconds; what the spool has stays."""
        self._stopping.set()
        self._dialer.cut()
        self.join(STOP_WITHIN)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the receiver has ended; return whether it has."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return thread is None
        thread.join(timeout)
        return not thread.is_alive()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @abstractmethod
    def _receive(self) -> None:
        """Receive until the input ends or the receiver shall stop."""

    def _prepare(self) -> None:
        """Check what can be refused before the thread begins."""
        self.state = "starting"

    @property
    def spool(self) -> Spool:
        assert self._spool is not None, "a receiver works between start and stop"
        return self._spool

    def _run(self) -> None:
        try:
            if self.spool.finished:
                self._tell("the input had ended before: its spool is finished")
                return
            self._receive()
            self._tell("the input has ended" if self.spool.finished else "stopped")
        except StreamError as error:
            self.error = error
        except Exception as error:  # a thread that dies silently would look like a quiet stream
            self.error = StreamError(f"{self.name}: {type(error).__name__}: {error}")
            self.error.__cause__ = error
        finally:
            self._dialer.release()
            if self.error is not None:
                self._tell(str(self.error))

    def _tell(self, state: str) -> None:
        self.state = state
        self.on_state(state)

    def _take(self, records: Iterable[bytes], cursor: Any = None) -> None:
        """Append to the spool; when it returns, the records may be acknowledged."""
        self.received += self.spool.append(records, cursor)

    def _accepted(self, state: str) -> None:
        """Note that the peer has accepted us."""
        self._welcome = True
        self.trouble = ""
        self._tell(state)

    def _tell_failure(self, reason: str, pause: float) -> None:
        said = reason.partition("\n")[0].removeprefix(f"{self.name}: ")
        self.trouble = f"{self.name}: {said}"
        self._tell(f"{self.trouble}; trying again in {pause:.1f} s")

    def _pause(self, seconds: float) -> bool:
        """Wait; return whether the receiver shall go on."""
        return not self._stopping.wait(seconds)

    def _keep_connected(self, once: Callable[[], bool], least_pause: Callable[[], float] = lambda: 0.0) -> None:
        """Run a connection again and again, until it says that the input has ended."""
        while not self._stopping.is_set():
            before, began = self.received, time.monotonic()
            try:
                if once():
                    return
                reason = "the connection was closed"
            except PeerRefusal as error:
                if not self._welcome:
                    raise
                reason = str(error)
            except OSError as error:
                reason = error.strerror or str(error) or type(error).__name__
            if self.received > before or time.monotonic() - began > self._backoff.most:
                self._backoff.reset()
            if not self._stopping.is_set():
                pause = max(self._backoff.pause(), least_pause())
                self._tell_failure(reason, pause)
                self._pause(pause)
