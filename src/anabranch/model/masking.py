"""Addresses as they may be shown: passwords and keys are masked, references to them are not.

A reference, `${env:NAME}` or `${file:PATH}`, stands in an address for a secret that a variable of the environment or a
file holds; `anabranch.sources.secrets` looks it up when a client is made.

Invariant: an address that is shown holds no secret that its options name as one.
"""

from __future__ import annotations

import re

REFERENCE = re.compile(r"\$\{(?P<kind>env|file):(?P<name>[^{}]+)\}")

_NAMES = r"(?:password|passwd|secret|token|credential|signature|api[-_.]?key|access[-_.]?key|[.]pem)"
_LOGIN = re.compile(r"^([A-Za-z][\w+.-]*://(?:[^/?@]*?):)((?:\$\{[^{}]*\}|[^/?])*)(?=@)")
_OPTION = re.compile(rf"([?&](?!query=)[^=&]*{_NAMES}[^=&]*=)([^&]*)", re.IGNORECASE)
_INNER = r"(?:(?!%26|%3D)[^=&])*"  # of a name inside of `query=`, which is percent-encoded
_ASKED = re.compile(rf"((?:%26|[?&]query=){_INNER}{_NAMES}{_INNER}(?:%3D|=))((?:(?!%26)[^&])*)", re.IGNORECASE)


def without_password(address: str) -> str:
    """Return an address as it may be shown."""
    for pattern in (_LOGIN, _OPTION, _ASKED):
        address = pattern.sub(lambda found: found[1] + _masked(found[2]), address)
    return address


def _masked(value: str) -> str:
    return value if not value or REFERENCE.fullmatch(value) else "***"
