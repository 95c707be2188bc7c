"""Compiled kernels of sources that are gone do not stay on the disk for ever."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from anabranch.delta import kernels
from anabranch.delta.kernels import cache

DAY = 86_400


def folder(base: Path, name: str, age_in_days: float, now: float) -> Path:
    made = base / name
    made.mkdir()
    (made / "kernel.nbc").write_text("compiled")
    os.utime(made, (now - age_in_days * DAY,) * 2)
    return made


def test_a_new_folder_removes_those_that_nobody_used_for_a_month(tmp_path: Path) -> None:
    now = tmp_path.stat().st_mtime
    old = folder(tmp_path, "kernels-0123456789ab", 31, now)
    young = folder(tmp_path, "kernels-ba9876543210", 29, now)
    other = folder(tmp_path, "kernels-of-somebody", 400, now)
    cache._remove_unused(str(tmp_path), now)
    assert [one.exists() for one in (old, young, other)] == [False, True, True]


def test_a_folder_that_is_used_is_young_again(tmp_path: Path) -> None:
    now = tmp_path.stat().st_mtime
    used = folder(tmp_path, "kernels-0123456789ab", 31, now)
    cache._say_in_use(str(used))
    cache._remove_unused(str(tmp_path), now)
    assert used.exists()


def test_the_folder_of_these_sources_is_made_and_cleans_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = folder(tmp_path, "kernels-0123456789ab", 31, tmp_path.stat().st_mtime)
    monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path))
    made = cache._folder()
    assert Path(made).parent == tmp_path
    assert Path(made).is_dir()
    assert not old.exists()


def test_a_folder_that_is_there_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path))
    cache._folder()
    old = folder(tmp_path, "kernels-0123456789ab", 31, tmp_path.stat().st_mtime)
    cache._folder()
    assert old.exists()


def test_no_kernel_calls_another_because_a_loaded_kernel_cannot_be_inlined() -> None:
    calls = []
    for place in pkgutil.iter_modules(kernels.__path__):
        module = importlib.import_module(f"{kernels.__name__}.{place.name}")
        for function in vars(module).values():
            if isinstance(function, Dispatcher):
                names = function.py_func.__code__.co_names
                called = (function.py_func.__globals__.get(name) for name in names)
                calls += [
                    (function.__name__, one.__name__)
                    for one in called
                    if isinstance(one, Dispatcher) and one._cache.__class__ is not NullCache
                ]
    assert calls == []


@pytest.mark.parametrize("is_lean", [True, False])
def test_a_kernel_is_loaded_without_what_compiles_it(is_lean: bool, tmp_path: Path) -> None:
    version = "" if is_lean else "import numba; numba.__version__ = '0.61.0'\n"
    code = (
        f"{version}"
        "import sys, numpy as np\n"
        "from anabranch.delta.kernels.rows import sums\n"  # one that makes arrays
        "print(sums(np.array([[1, 2], [3, 4], [1, 2]]), np.array([1, 1, 1]))[1].tolist())\n"
        "print('numba.np.arrayobj' in sys.modules)\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    compiled, loaded = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split("\n")
        for _ in range(2)
    )
    assert (compiled[1], loaded[1]) == ("True", str(not is_lean))
    assert compiled[0] == loaded[0] != ""
