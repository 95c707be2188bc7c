"""BLAKE2b of many texts at a time, cut to 64 bits.

RFC 7693, with a digest of eight bytes, no key, and a person of up to eight bytes as a number: as a signed number, what
`anabranch.model.scrambled` says of a text.

`scratch` holds the sixteen words of one block of a message.
"""

from __future__ import annotations

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Int, UnsignedPlaces, inlined, kernel, unsigned
from anabranch.delta.kernels.texts import word_at
from anabranch.model.graph_block import Bytes

_BLOCK = 128
WORDS = 16
_ROUNDS = 12
_V0, _V1, _V2, _V3, _V4, _V5, _V6, _V7 = (
    np.uint64(word)
    for word in (
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    )
)  # fmt: skip
_SETTING = np.uint64(0x01010008)  # one leaf, no key, a digest of eight bytes
_NONE = np.uint64(0)
_ORDERS = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.uint64,
)


@inlined
def _turned(word: Int, bits: Int) -> Int:
    return (word >> np.uint64(bits)) | (word << np.uint64(64 - bits))


@inlined
def _mixed(a: Int, b: Int, c: Int, d: Int, x: Int, y: Int) -> tuple[Int, Int, Int, Int]:
    a = a + b + x
    d = _turned(d ^ a, 32)
    c = c + d
    b = _turned(b ^ c, 24)
    a = a + b + y
    d = _turned(d ^ a, 16)
    c = c + d
    b = _turned(b ^ c, 63)
    return a, b, c, d


@inlined
def _load(data: Bytes, first: Int, stop: Int, scratch: UnsignedPlaces) -> None:
    """Write the words of a block, zeros behind the end of the text."""
    for word in range(WORDS):
        place = first + 8 * word
        if place + 8 <= stop:
            scratch[word] = word_at(data, place)
        elif place < stop:
            scratch[word] = word_at(data, place) & ((np.uint64(1) << np.uint64(8 * (stop - place))) - np.uint64(1))
        else:
            scratch[word] = _NONE


@inlined
def _digest(data: Bytes, first: Int, stop: Int, person: Int, scratch: UnsignedPlaces) -> Int:
    h0, h1, h2, h3, h4, h5, h6, h7 = _V0 ^ _SETTING, _V1, _V2, _V3, _V4, _V5, _V6 ^ np.uint64(person), _V7
    place = first
    while True:
        _load(data, place, stop, scratch)
        place += _BLOCK
        is_last = place >= stop
        a0, a1, a2, a3, b0, b1, b2, b3 = h0, h1, h2, h3, h4, h5, h6, h7
        c0, c1, c2, c3 = _V0, _V1, _V2, _V3
        d0, d1, d2, d3 = _V4 ^ np.uint64(min(place, stop) - first), _V5, _V6, _V7
        if is_last:
            d2 = ~d2
        for turn in range(_ROUNDS):
            at = _ORDERS[unsigned(turn)]
            a0, b0, c0, d0 = _mixed(a0, b0, c0, d0, scratch[at[0]], scratch[at[1]])
            a1, b1, c1, d1 = _mixed(a1, b1, c1, d1, scratch[at[2]], scratch[at[3]])
            a2, b2, c2, d2 = _mixed(a2, b2, c2, d2, scratch[at[4]], scratch[at[5]])
            a3, b3, c3, d3 = _mixed(a3, b3, c3, d3, scratch[at[6]], scratch[at[7]])
            a0, b1, c2, d3 = _mixed(a0, b1, c2, d3, scratch[at[8]], scratch[at[9]])
            a1, b2, c3, d0 = _mixed(a1, b2, c3, d0, scratch[at[10]], scratch[at[11]])
            a2, b3, c0, d1 = _mixed(a2, b3, c0, d1, scratch[at[12]], scratch[at[13]])
            a3, b0, c1, d2 = _mixed(a3, b0, c1, d2, scratch[at[14]], scratch[at[15]])
        h0, h1, h2, h3 = h0 ^ a0 ^ c0, h1 ^ a1 ^ c1, h2 ^ a2 ^ c2, h3 ^ a3 ^ c3
        h4, h5, h6, h7 = h4 ^ b0 ^ d0, h5 ^ b1 ^ d1, h6 ^ b2 ^ d2, h7 ^ b3 ^ d3
        if is_last:
            return h0


@kernel
def digest(data: Bytes, starts: Ids, stops: Ids, person: Int, scratch: UnsignedPlaces, digests: Ids) -> None:
    """Write the digest of each text; `data` has PADDING bytes behind the texts."""
    for at in range(digests.size):
        digests[at] = np.int64(_digest(data, starts[at], stops[at], person, scratch))
