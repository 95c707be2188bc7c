"""The records of the log matcher, by name: its state, its plan, and the arrays that its kernels take together.

Plans are data, so one compiled kernel serves every conjunction. Counts and places of a plan are unsigned, since they
are indices; positions, values and numbers of rows are signed.

An entry of the log and a row of the node table are as many words as the plan asks for, so that each is one line of a
processor's cache: words are counted from where the entry or the row begins.

    entry   [0]        number of the arrival that made the fact new << 8 | pattern; of an entry not in use, the next one
            [HANGS]    distance to the newer copy of the same fact << 32 | first match hanging here + 1; -1: not in use
            [ARRIVED]  number of the arrival
            [SIDES..]  per side: row << 32 | distance to the next older entry of the chain; then the leaves; then, where
                       entries leave in any order, per side the next newer entry
    row     [VALUE], [VARIABLE] (negative: free, -2 - next free row), [HEADS..]: the newest entry of each chain
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anabranch.delta.batch import Ids
from anabranch.delta.kernels.compiling import Floats, Record, Records, UnsignedPlaces, fields

MOST_PATTERNS = 64
MOST_COLUMNS = 5
MOST_SIDES = MOST_COLUMNS + 1  # one more ties parts together that share no variable
MOST_VARIABLES = MOST_PATTERNS * MOST_COLUMNS + 1  # and one that no match shows
MOST_CHAINS = 128  # that are looked ahead along
AHEAD = 16  # arrivals, rows or entries to look ahead

# --- why a kernel returned: everything but DONE asks for something and is called again ---
DONE, OUT_FULL, LOG_FULL, ROWS_FULL, LISTS_FULL, HASH_WANTED, POOL_FULL, PAUSED, TOO_MANY, KEEP_AGAIN = range(10)

# --- phases: of a slide, of a change, of an enumeration ---
OPEN, TAKE_IN, LEAVE, JOIN_LEAVING, JOIN_FRESH = range(5)
MARK, JOIN_REMOVED, ADD, JOIN_ADDED = range(4)
COLLECT, JOIN_ALL = range(2)

# --- roles of a join ---
ROLE_LEAVE, ROLE_ENTER, ROLE_LIST, ROLE_HANG = range(4)

# --- words of entries and rows ---
HANGS, ARRIVED, SIDES = np.uint64(1), np.uint64(2), np.uint64(3)
VALUE, VARIABLE, HEADS = np.uint64(0), np.uint64(1), np.uint64(2)
LOW = 0xFFFFFFFF
SUPERSEDED = 1 << 32  # from here on, HANGS knows a newer copy
FARTHEST = (1 << 31) - 1
NEVER = 1 << 62  # a ceiling that hides nothing

# --- ranks that are none: of a value that cannot be compared by its rank, and of null ---
UNRANKED, NO_RANK = 0, -(1 << 63)

# --- tests of a pattern ---
TEST_ID, TEST_SAME, TEST_RANGE = range(3)

NOT_HASHED, HASHED, TO_BE_HASHED = range(3)

_FIGURES = np.dtype([
    *fields("living"),  # facts
    *fields("floor ceiling"),  # entries before the floor, or born at or after the ceiling, are hidden in a join
    *fields("bound_at"),  # the position of its entry in the match that is being bound
    *fields("hashed"),
    *fields("preferred", np.uint64),  # the side with the chain on which single facts are looked for first
    *fields("debt wasted"),  # steps of such searches / 16, and those that began on a chain which was too long
])  # fmt: skip
_SEEDS = np.dtype([
    *fields("patterns"),  # how many patterns have seeds: the first so many of `order`
    ("order", np.uint64, MOST_PATTERNS),
    ("heads", np.int64, MOST_PATTERNS),  # per pattern its last item of `lists`, plus 1
    ("sizes", np.int64, MOST_PATTERNS),
])  # fmt: skip
_DEPTH = np.dtype([*fields("cursor before"), *fields("step side", np.uint64)])
_BOUND = np.dtype(fields("row value"))

STATE = np.dtype([
    # the window
    *fields("end tail new_tail"),  # positions: the next of the log, the first living one, the same after this slide
    *fields("next base slide phase"),  # arrival to take in, the first one of this call, where a call has come to
    *fields("marked"),  # removed facts of this call that are seeds already
    *fields("bound old_end"),  # facts born at or after `bound`, or entries from `old_end` on (0: unknown), are new
    *fields("empty living free_entry"),  # patterns without a living fact; living facts; first entry not in use
    # rows
    *fields("rows_end rows_free rows_used hand created to_sweep"),
    # the hash of facts
    *fields("hash_used hashing hash_wanted"),
    # matches
    *fields("is_kept is_auto matches pool_end pool_free pool_used limit"),
    *fields("out out_start"),  # matches in the output, and how many of them before this slide
    # the join
    *fields("lists list_base listed most_listed"),
    *fields("rank item depth fuel"),
    *fields("seed", np.uint64),  # the pattern of the joined seeds
    # how the stream behaves
    *fields("entered found since_switch peeked is_scattered chained cold"),
    ("fresh", _SEEDS),
    ("leaving", _SEEDS),
    ("figures", _FIGURES, MOST_PATTERNS),
    ("depths", _DEPTH, MOST_PATTERNS),
    ("variables", _BOUND, MOST_VARIABLES),
    ("key", np.int64, MOST_SIDES),  # the fact that is looked for or written: its rows, then its leaves
    ("race", np.int64, MOST_PATTERNS),
    ("ahead", np.int64, AHEAD),
    ("chains", np.int64, MOST_CHAINS),
])  # fmt: skip

_PATTERN = np.dtype([
    *fields("sides leaves tests tests_end looks looks_end", np.uint64),
    *fields("seed_step steps", np.uint64),  # as a seed: the step that binds all of it, and where those after it are
    *fields("depths is_bit"),
    ("column", np.int64, MOST_SIDES),  # of each side; -1: none
    ("variable", np.uint64, MOST_SIDES),
    ("head", np.uint64, MOST_SIDES),
    ("leaf_column", np.uint64, MOST_SIDES),
    ("leaf_variable", np.uint64, MOST_SIDES),
])  # fmt: skip
_BIT = np.dtype(fields("pattern variable head", np.uint64))

PLAN = np.dtype([
    *fields("width kind patterns told entry_size row_size", np.uint64),
    *fields("is_merged"),  # matches that follow each other may look the same
    *fields("compared", np.uint64),  # how many comparisons by rank there are; those of single steps follow them
    *fields("newer", np.uint64),  # where the links to newer entries begin in an entry; 0: a FIFO, which needs none
    *fields("last"),  # the log's capacity, a power of two, less 1: the one number here that changes
    *fields("multiplier shift bits", np.uint64),
    ("pattern", _PATTERN, MOST_PATTERNS),
    ("bit", _BIT, MOST_PATTERNS),  # the patterns that are a bit of a variable
])  # fmt: skip

TEST = np.dtype([*fields("what"), *fields("column", np.uint64), *fields("argument")])
# By slot of the dispatch: the patterns that facts of a kind may fit. Exact: whether a fact fits never changes, hence a
# fact that lives lives for all of its patterns.
FITTING = np.dtype([*fields("kind is_exact sides"), *fields("first count", np.uint64)])
STEP = np.dtype([
    *fields("group is_unique"),  # how many patterns bind the same variable; whether at most one fact fits
    *fields("is_single"),  # whether that is so although it has leaves
    *fields("pattern bound new pairs pairs_end ranks ranks_end", np.uint64),
    ("bound_sides", np.uint64, MOST_SIDES),
    ("new_sides", np.uint64, MOST_SIDES),
])  # fmt: skip
TOLD = np.dtype([*fields("variable", np.uint64), *fields("is_spared")])
RANKS = np.dtype([*fields("low high", np.uint64), *fields("or_equal")])
INCIDENCE = np.dtype(fields("head pattern side", np.uint64))
SHOWN = np.dtype([*fields("first end pattern word", np.uint64), *fields("is_row")])
# A chain that a seed leads to: the side of the seed whose row has its head, and a further side of its entries, or -1.
LOOK = np.dtype([*fields("row head pattern side", np.uint64), *fields("other")])


class LogTables(NamedTuple):
    """The log, its rows and hash tables, as Python hands them over: of the state and the plan, arrays of one record."""

    states: Records
    plans: Records
    ring: Ids
    rows: Ids
    slots: Ids
    hashes: Ids


class LogStore(NamedTuple):
    """The same as kernels hand it on: a record is one pointer."""

    state: Record
    plan: Record
    ring: Ids
    rows: Ids
    slots: Ids
    hashes: Ids


class IntakePlan(NamedTuple):
    """The plan of the intake: the dispatch on the kind of an arrival, and the tests of each pattern."""

    dispatch: Records
    """FITTING by slot, and behind the last slot the one for all other kinds."""
    patterns: UnsignedPlaces
    tests: Records
    bounds: Floats


class JoinPlan(NamedTuple):
    """The plan of a join from each seed."""

    steps: Records
    orders: Ids
    """By pattern as a seed, per depth the step; -1: inside a group."""
    pairs: UnsignedPlaces
    """Variables that must differ, two by two."""
    incidences: Records
    shown: Records
    """By variable: its incidences, and the pattern and word that a kept match has it from."""
    looks: Records
    told: Records
    """By column of the output: the variable, and whether it is spared."""
    ranks: Records
    """Comparisons of variables by rank."""


class MatchArrays(NamedTuple):
    """Seeds and matches: seeds as position << 32 | next seed, kept matches, and the output."""

    lists: Ids
    pool: Ids
    out: Ids


class Arrivals(NamedTuple):
    """Facts one after the other, and the numbers of ids."""

    facts: Ids
    numbers: Floats


class ChangeBounds(NamedTuple):
    """The ends of slides among removed and added facts, and of their matches in the output."""

    removed: Ids
    added: Ids
    marks: Ids


class SlideBounds(NamedTuple):
    """The ends of slides, the starts of their windows, and the ends of their matches in the output."""

    ends: Ids
    tails: Ids
    marks: Ids
