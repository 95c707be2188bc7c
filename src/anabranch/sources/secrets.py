"""Secrets that an address refers to, instead of holding them:

    mqtt://bob:${env:MQTT_PASSWORD}@host/topic      the value of an environment variable
    kafka://host/topic?user=bob&password=${file:/run/secrets/kafka}      the content of a file, without its last newline

References are allowed in secrets and in values sent as such: user, password, and the request to a web service (`query`,
`subscribe`). A reference is passed on unresolved, through catalogues and checkpoints, and resolved where a client is
made.

Invariant: the secret itself is in no address, no message and no file of ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from urllib.parse import quote

from anabranch.errors import StreamError
from anabranch.model.masking import REFERENCE
from anabranch.sources.reach import ANYWHERE, OutOfReach, Reach

OF_CLIENTS = "ANABRANCH_SECRET_"
"""Variables whose names begin so are there for the addresses of a server's clients."""

_LONGEST = 1 << 16


def quoted_references(text: str) -> str:
    """The text with its references percent-encoded, so that slashes and signs in them take no part in an address."""
    return REFERENCE.sub(lambda found: "${" + quote(f"{found['kind']}:{found['name']}", safe="") + "}", text)


def revealed(text: str, reach: Reach = ANYWHERE, encode: Callable[[str], str] = str) -> str:
    """Return the text with its references resolved."""
    return REFERENCE.sub(lambda found: encode(_looked_up(found["kind"], found["name"], reach)), text)


def refuse_secrets(text: str, reach: Reach) -> None:
    """Refuse references to what may not be looked up."""
    for found in REFERENCE.finditer(text):
        if found["kind"] == "env":
            refuse_variable(found["name"], reach)
        else:
            reach.path(found["name"])


def refuse_variable(name: str, reach: Reach) -> None:
    """Refuse a variable that clients may not use: they could have it sent to a server of their own."""
    if reach.variables is not None and name not in reach.variables and not name.startswith(OF_CLIENTS):
        raise OutOfReach(
            f"the variable {name} of this server is not there for addresses\n"
            f"hint: the server can be told: --secret {name}; those that begin with {OF_CLIENTS} are"
        )


def _looked_up(kind: str, name: str, reach: Reach) -> str:
    if kind == "env":
        refuse_variable(name, reach)
        found = os.environ.get(name)
        if not found:
            raise StreamError(f"${{env:{name}}}: there is no such variable in the environment\nhint: export {name}=...")
        return found
    try:
        with reach.open(reach.path(name), name) as file:
            data = file.read(_LONGEST + 1)
    except OSError as error:
        raise StreamError(f"${{file:{name}}}: {error.strerror or error}") from None
    try:
        text = data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise StreamError(f"${{file:{name}}} holds no text") from None
    if not text or len(data) > _LONGEST:
        raise StreamError(f"${{file:{name}}} is {'empty' if not text else 'too long for a secret'}")
    return text
