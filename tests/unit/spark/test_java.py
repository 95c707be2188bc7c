"""Java: found, missing, too old."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.spark.java import JavaError, require_java


def java(folder: Path, version: str) -> Path:
    """A home of a Java that says it has a version."""
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2024-01-01' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(("version", "number"), [("17.0.15", 17), ("21", 21), ("25.0.1-ea", 25)])
def test_a_new_java_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, number: int) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, version)))
    assert require_java() == number


@pytest.mark.parametrize(("version", "said"), [("11.0.2", "is Java 11"), ("1.8.0_392", "is Java 8")])
def test_an_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, said: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, version)))
    with pytest.raises(JavaError, match=said):
        require_java()


def test_no_java_at_all_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match=r"(?s)needs Java 17 or later, and no java.*openjdk-17.*--engine local"):
        require_java()


def test_a_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaError, match="has no bin/java"):
        require_java()
