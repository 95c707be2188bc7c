"""MD5 and the SHA family over strings, as lower-case hexadecimal digits.

Invariant: only strings without a language are hashed; everything else has no hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from anabranch.model.terms import XSD_STRING, Literal
from anabranch.model.values import Value


def digest(algorithm: str) -> Callable[[Value], Literal | None]:
    """The function of SPARQL that computes a hash of the UTF-8 bytes of a string."""

    def function(term: Value) -> Literal | None:
        if not isinstance(term, Literal) or term.datatype != XSD_STRING:
            return None
        data = term.lexical.encode("utf-8", "replace")
        return Literal(hashlib.new(algorithm, data, usedforsecurity=False).hexdigest())

    return function
