"""Java: checks the version that Spark needs, and reports a missing or old one in one sentence.

Invariant: the check never takes longer than one start of `java -version`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from anabranch.errors import EngineError

OLDEST = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


class JavaError(EngineError):
    """Spark cannot start, because Java is missing or too old."""


def require_java() -> int:
    """Return the version of the Java that Spark will start; a JavaError says what to install."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        raise _missing(f"Spark needs Java {OLDEST} or later, and no java is on the PATH")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except FileNotFoundError:
        raise _missing(f"Spark needs Java {OLDEST} or later, and JAVA_HOME={home} has no bin/java") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise _missing(f"Spark needs Java {OLDEST} or later, and {java} does not run: {error}") from None
    found = _VERSION.search(said)
    if found is not None and int(found[1]) < OLDEST:
        raise _missing(f"Spark needs Java {OLDEST} or later, and {java} is Java {found[1]}")
    return int(found[1]) if found else OLDEST


def _missing(message: str) -> JavaError:
    return JavaError(
        f"{message}\n"
        "hint: install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17), "
        "or run without Spark: --engine local"
    )
