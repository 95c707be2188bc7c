"""Texts as ids: an exact table of very many texts, without an object for each.

State: the bytes of each distinct text once, and eight int64 for each. Work: O(bytes) per text that is looked up.

Law: two texts of one form have one id exactly when they are the same; `text` returns the text that was added.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import Ids
from anabranch.delta.kernels import digests as digest_kernels
from anabranch.delta.kernels import texts as kernels
from anabranch.delta.kernels.compiling import Records
from anabranch.model.graph_block import Bytes

PADDING = kernels.PADDING
_SLOTS = 1024
LOOKED_UP_AT_ONCE = 1 << 14
"""How many texts are looked up together; there is room for as many new ones before."""
_LENGTH = (1 << kernels.LENGTH_BITS) - 1


class TextTable:
    """A table of texts. Texts are added in runs of one form, which is a small number: `data` is UTF-8 followed by
    PADDING bytes, `starts` and `stops` are the places of each text in it."""

    __slots__ = ("_seed", "_slots", "_spots", "_states", "_store")

    def __init__(self, next_id: int = 0, room: int = 0) -> None:
        """Create an empty table, with `room` for this many texts before it grows."""
        slots = _slots(max(room, _SLOTS // 2))
        self._seed = hash("texts")  # differs between processes, as Python's own hashes do
        self._slots: Records = np.zeros(slots, kernels.SLOT)
        self._store: Bytes = np.zeros(1 << 14, np.uint8)
        self._spots: Records = _no_spots(slots // 2)
        self._states: Records = np.zeros(1, kernels.STATE)
        self.next_id = next_id

    def __len__(self) -> int:
        return int(self._states["taken"][0])

    @property
    def nbytes(self) -> int:
        return int(self._slots.nbytes + self._store.nbytes + self._spots.nbytes)

    @property
    def next_id(self) -> int:
        """The id of the next new text."""
        return int(self._states["next_id"][0])

    @next_id.setter
    def next_id(self, value: int) -> None:
        self._states["next_id"][0] = value

    def add(self, data: Bytes, starts: Ids, stops: Ids, form: int, ids: Ids | None = None) -> Ids:
        """Return the ids of texts; new texts get the next ids, or the given ones."""
        found = np.empty(len(starts), np.int64) if ids is None else ids.copy()
        # In parts, so that room is made for distinct texts and not for all texts.
        for first in range(0, len(found), LOOKED_UP_AT_ONCE):
            part = slice(first, first + LOOKED_UP_AT_ONCE)
            self._add(data, starts[part], stops[part], form, found[part], ids is not None)
        return found

    def _add(self, data: Bytes, starts: Ids, stops: Ids, form: int, ids: Ids, given: bool) -> None:
        texts = self._texts(data, starts, stops)
        self._make_room(len(ids), int((stops - starts).sum()), int(ids.max()) + 1 if given else 0)
        kernels.add(texts, int(form), int(given), self._table(), ids)  # a form may be of an enumeration

    def find(self, text: bytes, form: int) -> int:
        """Return the id of a text, or -1."""
        data = np.frombuffer(text + bytes(PADDING), np.uint8).copy()
        ends = np.array([0, len(text)], np.int64)
        return int(self.find_all(data, ends[:1], ends[1:], form)[0])

    def find_all(self, data: Bytes, starts: Ids, stops: Ids, form: int) -> Ids:
        """Return the ids of texts, -1 for unknown ones."""
        found = np.empty(len(starts), np.int64)
        kernels.find(self._texts(data, starts, stops), int(form), self._table(), found)
        return found

    def has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Return which ids belong to texts of this table."""
        known = ids < len(self._spots)
        known[known] = self._spots["place"][ids[known]] >= 0
        return known

    def forms(self, ids: Ids) -> Ids:
        """Return the forms of the texts with these ids, -1 for an id that has none in this table."""
        known = np.minimum(np.maximum(ids, 0), len(self._spots) - 1)
        forms: Ids = self._spots["extent"][known] >> kernels.LENGTH_BITS
        if (known != ids).any():
            forms[known != ids] = -1
        return forms

    def size_of(self, ids: Ids) -> int:
        """Return how many bytes the texts with these ids have."""
        return int((self._spots["extent"][ids] & _LENGTH).sum())

    def text(self, identifier: int) -> tuple[int, bytes]:
        """Return the form and the text of an id."""
        place, extent = self._spots[identifier].item()
        return extent >> kernels.LENGTH_BITS, self._store[place : place + (extent & _LENGTH)].tobytes()

    def texts(self, ids: Ids) -> list[bytes]:
        """Return the texts with these ids, whatever their forms."""
        spots = self._spots[ids]
        starts, stops = spots["place"], spots["place"] + (spots["extent"] & _LENGTH)
        store = self._store.data
        return [bytes(store[start:stop]) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]

    def words(self, ids: Ids) -> Ids:
        """Return the texts of ids, each of eight bytes, as numbers."""
        # The words that begin at each byte of the store: they overlap.
        everywhere = np.ndarray(len(self._store) - 7, np.int64, self._store, strides=(1,))
        words: Ids = everywhere[self._spots["place"][ids]]
        return words

    def digests(self, first: int, person: bytes) -> Ids:
        """Return 64 bits of the BLAKE2b of each text from this id on; they depend on the text and the person alone."""
        spots = self._spots[first : self.next_id]
        starts = np.ascontiguousarray(spots["place"])
        found, scratch = np.empty(len(spots), np.int64), np.empty(digest_kernels.WORDS, np.uint64)
        stops, number = starts + (spots["extent"] & _LENGTH), int.from_bytes(person, "little")
        digest_kernels.digest(self._store, starts, stops, number, scratch, found)
        return found

    def picked(self, ids: Ids) -> TextTable:
        """Return a table of these texts alone, which must be of one form; their ids are their places in `ids`. It has
        room for as many again."""
        table = TextTable(room=2 * len(ids))
        if len(ids):
            spots = self._spots[ids]
            starts = np.ascontiguousarray(spots["place"])
            form = int(spots["extent"][0]) >> kernels.LENGTH_BITS
            table.add(self._store, starts, starts + (spots["extent"] & _LENGTH), form)
        return table

    def stored(self) -> tuple[Bytes, Ids]:
        """Return all bytes, with PADDING bytes behind them, and the length of each text in the order of arrival; only
        for a table whose ids start at 0."""
        count = len(self)
        return self._store[: self._filled + PADDING], self._spots["extent"][:count] & _LENGTH

    @property
    def _filled(self) -> int:
        return int(self._states["filled"][0])

    def _table(self) -> kernels.TextStore:
        return kernels.TextStore(self._slots, self._store, self._spots, self._states)

    def _texts(self, data: Bytes, starts: Ids, stops: Ids) -> kernels.TextSlices:
        texts = kernels.TextSlices(data, starts, stops, np.empty(len(starts), np.int64))
        kernels.fill_hashes(texts, self._seed)
        return texts

    def _make_room(self, texts: int, size: int, ids: int) -> None:
        wanted = _slots(len(self) + texts)
        if wanted > len(self._slots):
            grown = np.zeros(wanted, kernels.SLOT)
            kernels.plant(self._slots, grown)
            self._slots = grown
        filled = self._filled
        if filled + size + PADDING > len(self._store):
            bytes_grown = np.zeros(max(2 * len(self._store), filled + size + PADDING), np.uint8)
            bytes_grown[:filled] = self._store[:filled]
            self._store = bytes_grown
        spots = max(self.next_id + texts, ids)
        if spots > len(self._spots):
            more = _no_spots(max(2 * len(self._spots), spots))
            more[: len(self._spots)] = self._spots
            self._spots = more


def _no_spots(count: int) -> Records:
    return np.full(count, -1, kernels.SPOT)


def _slots(texts: int) -> int:
    """Return the number of slots of a table for this many texts."""
    return 1 << (2 * texts - 1).bit_length()


def spelled_integers(data: Bytes, starts: Ids, stops: Ids) -> tuple[Ids, Ids]:
    """Return the values of texts that spell integers of at most 18 digits, and the places of all other texts, whose
    values are arbitrary."""
    values, others = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
    return values, others[: kernels.integers(data, starts, stops, values, others)]


_CLASSES = kernels.byte_classes()


def plain_iris(data: Bytes, ends: Ids) -> tuple[Ids, Ids] | None:
    """Return the places of plain IRIs in adjacent texts, each an IRI or an IRI in brackets; None when a text may be
    something else. Plain IRIs are ASCII, with a host and neither user nor port."""
    starts, stops = np.empty(len(ends) - 1, np.int64), np.empty(len(ends) - 1, np.int64)
    return (starts, stops) if kernels.plain_iris(data, ends, _CLASSES, starts, stops) else None
