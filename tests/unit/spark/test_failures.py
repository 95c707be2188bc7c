"""What is said of a batch that Spark could not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.errors import EngineError, StreamError
from anabranch.spark.run import failure

FAILED = """\
[STREAM_FAILED] Query [id = 9651bf55, runId = c50dc034] terminated with exception: \
[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink. Reason: \
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "py4j/protocol.py", line 327, in get_return_value
    raise Py4JJavaError(
py4j.protocol.Py4JJavaError: An error occurred while calling o160.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: {why}  SQLSTATE: 58030
\t... 21 more
Caused by: java.io.EOFException: Stream ended prematurely
\t... 31 more
"""


def test_state_that_cannot_be_loaded_is_told_as_such() -> None:
    text = FAILED.format(why="[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.")
    failed = failure(text, Path("/run/state"), Path("/run/state/spark.log"))
    assert isinstance(failed.error, EngineError)
    assert str(failed.error) == (
        "Spark cannot load the state of the checkpoint /run/state: Stream ended prematurely\n"
        "hint: if its files are damaged, take the folder from a copy, or begin again in another folder; "
        "Spark's log is /run/state/spark.log"
    )
    assert not failed.is_ours


def test_the_innermost_cause_is_told_and_no_traceback() -> None:
    failed = failure(FAILED.format(why="Job aborted."), Path("/run/state"), Path("/run/state/spark.log"))
    assert str(failed.error) == "Spark gave up: Stream ended prematurely\nhint: its log is /run/state/spark.log"


def test_what_java_says_of_a_call_is_told() -> None:
    text = "An error occurred while calling o1.start.\n: java.io.IOException: not a checkpoint\n\tat x.Y.z(Y.java:1)\n"
    failed = failure(text, Path("/run/state"), Path("/run/state/spark.log"))
    assert str(failed.error) == "Spark gave up: not a checkpoint\nhint: its log is /run/state/spark.log"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("anabranch.errors.StreamError: s.ndjson is gone\nhint: bring it back", StreamError),
        ("anabranch.errors.EngineError: it is full\nhint: make room", EngineError),
    ],
)
def test_an_error_of_ours_comes_out_as_it_is(line: str, kind: type[Exception]) -> None:
    failed = failure(f"Traceback (most recent call last):\n{line}\n", Path("/run/state"), Path("/run/state/spark.log"))
    assert (type(failed.error), str(failed.error), failed.is_ours) == (kind, line.partition(": ")[2], True)


def test_without_a_cause_the_last_error_or_the_first_line_is_told() -> None:
    places = (Path("/run/state"), Path("/run/state/spark.log"))
    assert str(failure("one\nValueError: two\nthree", *places).error).startswith("Spark gave up: ValueError: two\n")
    assert str(failure("one\ntwo", *places).error).startswith("Spark gave up: one\n")
    text = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: it ends too soon"
    assert str(failure(text, *places).error).startswith("Spark gave up: it ends too soon\n")
