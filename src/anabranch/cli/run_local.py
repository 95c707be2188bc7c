"""`anabranch run --engine local`: the whole run in this process, for small inputs and for looking closely.

Invariant: it answers as Spark does, byte for byte, for inputs that end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from anabranch.cli.asked import Asked
from anabranch.cli.console import Terminal
from anabranch.cli.deadletters import SetAside
from anabranch.cli.failures import OK, draw_error
from anabranch.cli.inputs import open_inputs
from anabranch.cli.replay import Replay
from anabranch.cli.signals import INTERRUPTED, interruptible
from anabranch.cli.summary import Bar, Summary, first_words
from anabranch.cli.values import clock
from anabranch.cli.writers import make_writer
from anabranch.engine.answers import Answer
from anabranch.engine.query import QueryWarning
from anabranch.engine.session import Session
from anabranch.errors import StreamError
from anabranch.sources.static import GraphFile, Watch


class Refresh:
    """Looks at the files of static graphs now and then, and lets the session see those that have changed. One that
    cannot be read, half written perhaps, leaves the graph that was there."""

    def __init__(self, session: Session, files: Sequence[GraphFile], every: int) -> None:
        self._session = session
        self._watch = Watch(files)
        self._every = every / 1_000_000
        self._looked_at = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._looked_at < self._every:
            return
        self._looked_at = time.monotonic()
        for file in self._watch.changed():
            with suppress(StreamError, OSError):
                self._session.graph(file.name, file.load())


def run_local(asked: Asked, terminal: Terminal) -> tuple[int, Summary, bool]:
    """The exit code so far, what was done, and whether a query failed."""

    def trouble(text: str) -> None:
        with bar.aside():
            terminal.note(f"warning: {text}", style="yellow")

    inputs = open_inputs(asked.streams, asked.texts, trouble)
    session = Session.local(
        inputs.names or None,
        asked.lateness,
        asked.windows,
        asked.conflicts,
        asked.late,
        asked.mapping,
        asked.rules,
        asked.evaluator,
        asked.running,
        asked.timing.ahead,
    )
    for name, graph in asked.graphs.items():
        session.graph(name, graph)
    queries = session.register_texts(asked.texts, parameters=asked.parameters)
    columns = [one.columns for one in queries]
    writer = make_writer(asked.output, terminal.out, asked.windows, columns, asked.late.corrects, asked.prefixes())
    set_aside = SetAside(asked.dead_letter)
    refresh = Refresh(session, asked.graph_files, asked.refresh) if asked.refresh is not None else None
    replay = Replay(session, queries, inputs, set_aside, asked.lateness, refresh)
    bar = Bar(terminal.err, inputs.meter, shown=not asked.quiet)
    begun = time.perf_counter()
    code = OK

    def tell(answer: Answer) -> None:
        with bar.aside():
            writer.write(answer)

    def warn(warning: QueryWarning) -> None:
        with bar.aside():
            terminal.note(f"warning: {warning.query} at {clock(warning.at)}: {warning}", style="yellow")

    with interruptible() as interrupted:

        def progress(events: int) -> None:
            if interrupted():
                raise KeyboardInterrupt
            bar.update(events)

        try:
            replay.run(tell, warn, progress, asked.until, asked.drain)
        except KeyboardInterrupt:
            code = INTERRUPTED
        finally:
            bar.close()
            set_aside.close()
        code = INTERRUPTED if interrupted() else code
    for failure in replay.failures:
        draw_error(failure, terminal)
    done = Summary(
        replay.events,
        replay.instants,
        replay.evaluations,
        replay.rows,
        set_aside.malformed,
        set_aside.late,
        set_aside.ahead,
        time.perf_counter() - begun,
        set_aside.paths,
        replay.verified,
        replay.differing,
        sum(query.skipped for query in queries),
        first_words([query.first_skipped for query in queries]),
    )
    for name, jumps in session.jumps().items():
        done.note_jumps(name, *jumps)
    return code, done, bool(replay.failures)
