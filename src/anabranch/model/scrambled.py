"""Scrambled numbers of nodes: the same everywhere and always, and spread evenly.

The node with the largest number stands for its component, so that the name of a component depends on its nodes alone.
An order of ids would do as well, but trees that are built by it grow deep when ids come in order.
"""

from __future__ import annotations

from hashlib import blake2b

from anabranch.model.terms import Blank, Iri, Literal

TEXT_KIND = b"s"
"""The person of the BLAKE2b of a text."""

_MASK = (1 << 64) - 1


def scrambled(node: object) -> int:
    """Return 64 bits, signed. Two integers of 64 bits never collide; two other ids collide once in 2**64."""
    match node:
        case bool():
            pass
        case int() if -(1 << 63) <= node < 1 << 63:
            return _signed(_mixed(node & _MASK))
        case str():
            return _digest(TEXT_KIND, node)
        case Iri(value):
            return _digest(b"i", value)
        case Blank(label, document):
            return _digest(b"b", f"{document} {label}")
        case Literal():
            return _digest(b"l", repr(node))
    return _digest(b"o", repr(node))


def _mixed(bits: int) -> int:
    """Steele, Lea and Flood's finisher of SplitMix (OOPSLA 2014): one to one."""
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & _MASK
    return bits ^ (bits >> 31)


def _digest(kind: bytes, text: str) -> int:
    data = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind)
    return int.from_bytes(data.digest(), "little", signed=True)


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits
