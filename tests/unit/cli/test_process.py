"""The command as a process: pipes, signals, live input, and no traceback for anyone."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from anabranch.cli import failures
from anabranch.cli.console import open_terminal
from anabranch.errors import EngineError, EvaluationError, InternalError, QueryError, StreamError
from anabranch.runner.processes import children_of

from .conftest import Invoke

COMMAND = [sys.executable, "-c", "from anabranch.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "80"}
PATIENCE = 180  # seconds: a process that finds no cache of the kernels compiles them first, on a busy machine slowly


def start(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=ENVIRONMENT,
    )


def test_rows_come_out_while_the_input_is_open_and_ctrl_c_sums_up(trick: Path, events: Path, tmp_path: Path) -> None:
    process = start("run", trick, "-s", "rides=-", "-o", "json", cwd=tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(events.read_text().splitlines(keepends=True)[:4]))
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["row"]["r.user_id"] == 1234
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.startswith("4 events · ")


@pytest.mark.parametrize("form", ["json", "csv", "table"])
def test_output_without_room_is_said_to_be_so(trick: Path, events: Path, tmp_path: Path, form: str) -> None:
    command = [*COMMAND, "run", str(trick), "-s", f"rides={events}", "-o", form, "--engine", "local"]
    with open("/dev/full", "w") as full:
        process = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=ENVIRONMENT, check=False
        )
    assert process.returncode == failures.FAILED
    doing = "write" if form == "table" else "print the answers"
    assert process.stderr.startswith(f"error: cannot {doing}: no space left on device\nhint: make room")
    assert "Traceback" not in process.stderr


def test_a_file_without_room_is_named_and_one_that_is_missing_is_input(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def code_of(error: OSError) -> int:
        def command() -> None:
            raise error

        with pytest.raises(typer.Exit) as left:
            failures.guarded(command)()
        return left.value.exit_code

    assert code_of(OSError(errno.EROFS, "Read-only file system", "/out/a")) == failures.FAILED
    assert capsys.readouterr().err.startswith("error: cannot write /out/a: read-only file system\nhint: ")
    assert code_of(FileNotFoundError(errno.ENOENT, "No such file or directory", "/in/a")) == failures.NO_INPUT
    assert capsys.readouterr().err == "error: /in/a: No such file or directory\n"


def test_sigterm_sums_up_too(trick: Path, events: Path, tmp_path: Path) -> None:
    process = start("run", trick, "-s", "rides=-", "-o", "json", cwd=tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("".join(events.read_text().splitlines(keepends=True)[:4]))
    process.stdin.flush()
    process.stdout.readline()
    process.terminate()
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.startswith("4 events · ")


LOADING = """
import importlib.abc, os, sys

number, wanted = int(sys.argv.pop(1)), sys.argv.pop(1)

class Terminated(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == wanted:
            exec("os.kill(os.getpid(), number)")  # as where a module makes its dataclasses

sys.meta_path.insert(0, Terminated())
from anabranch.cli import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "module", ["typer", "anabranch.cli.app", "anabranch.engine.evaluation_options", "anabranch.runner.opening"]
)
def test_signals_while_modules_load_end_with_130_and_no_word(
    trick: Path, module: str, number: signal.Signals, tmp_path: Path
) -> None:
    # Where KeyboardInterrupt leaves exec(), python -m leaves by the signal.
    (tmp_path / "loading.py").write_text(LOADING)
    command = [sys.executable, "-m", "loading", str(number.value), module, "run", str(trick), "-s", "rides=-"]
    process = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
        check=False,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # the tests themselves may run in the background
    )
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "")


def test_a_command_whose_parent_ignores_ctrl_c_goes_on(trick: Path, tmp_path: Path) -> None:
    (tmp_path / "loading.py").write_text(LOADING)
    module = [sys.executable, "-m", "loading", str(signal.SIGINT.value), "anabranch.runner.opening"]
    process = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *module, "run", str(trick), "-s", "rides=-", "--engine", "local"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT, check=False,
    )  # fmt: skip
    assert process.returncode == 0
    assert process.stderr.startswith("0 events")


STUCK = """
import subprocess, sys, time
from anabranch.cli import signals

signals._IN_ORDER = signals._AFTERWARDS = 0.2
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
with signals.stopping() as stopped:
    stopped()
    print(child.pid, flush=True)
    while True:
        time.sleep(1)
"""


def test_who_does_not_stop_in_time_is_ended_with_his_children() -> None:
    command = [sys.executable, "-c", STUCK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.terminate()
        assert process.wait(PATIENCE) == 130
    while child in children_of(os.getpid()) or Path(f"/proc/{child}/exe").exists():
        time.sleep(0.01)


def test_a_peer_that_does_not_answer_is_told_once_and_asked_again(trick: Path, tmp_path: Path) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{deaf.getsockname()[1]}/rides"
        process = start("run", trick, "-s", f"rides=http+poll://{address}?every=1", "-o", "json", cwd=tmp_path)
        assert process.stderr is not None
        assert (
            process.stderr.readline() == f"warning: stream rides: http://{address}: Connection refused; trying again\n"
        )
        time.sleep(1)  # it is asked again meanwhile
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert err.startswith("0 events · ")


def test_a_reader_that_leaves_is_no_failure(trick: Path, events: Path, tmp_path: Path) -> None:
    process = start("run", trick, "-s", "rides=-", "-o", "json", "--quiet", cwd=tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    lines = events.read_text().splitlines(keepends=True)
    process.stdin.write("".join(lines[:4]))
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write(lines[4])
    process.stdin.close()
    assert process.wait(timeout=PATIENCE) == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_importing_the_package_loads_no_room() -> None:
    heavy = "[m for m in ('lark', 'numpy', 'pyarrow', 'numba', 'rich', 'httpx', 'anabranch.model', 'anabranch.errors')]"
    code = f"import sys, anabranch; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_building_the_app_loads_no_grammar_and_no_arrow() -> None:
    heavy = "('lark', 'numpy', 'pyarrow', 'httpx')"
    code = f"import sys, anabranch.cli.app; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_defect_of_ours_asks_to_be_reported(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr("anabranch.cli.texts.statements_of", broken)
    ran = invoke("explain", "--text", "RETURN 1")
    assert ran.code == 1
    assert ran.err.startswith("error: a defect in Anabranch, not in your query: KeyError: 'lost' (test_process.py:")
    assert "hint: please report it" in ran.err
    monkeypatch.setenv("ANABRANCH_TRACEBACK", "1")
    with pytest.raises(KeyError):
        invoke("explain", "--text", "RETURN 1")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EvaluationError("SER-304", "x"), 1),
        (EngineError("x"), 1),
        (InternalError("x"), 1),
        (QueryError([]), 3),
        (StreamError("x"), 4),
        (failures.InputError("x"), 4),
    ],
)
def test_every_error_has_its_exit_code(error: Exception, code: int) -> None:
    assert failures.exit_code(error) == code  # type: ignore[arg-type]


def test_colour_changes_no_letter_of_a_diagnostic() -> None:
    drawn = "error[SER-1]: a\n  f:1:2\n  1 | x y\n    |   ^ here\nhint: try\n\nwarning[LINT-1]: b"
    assert failures.colored(drawn).plain == drawn
    assert open_terminal(False).err.no_color
