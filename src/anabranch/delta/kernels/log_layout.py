"""Where things stand in the arrays of the log matcher: shared by the plan (`log_plan`) and the kernels (`log_*`).

Plans are data, so one compiled kernel serves every conjunction. Numbers alone live here.
"""

from __future__ import annotations

MOST_PATTERNS = 64
MOST_COLUMNS = 5
MOST_VARIABLES = MOST_PATTERNS * MOST_COLUMNS + 1  # and one that no match shows

# --- why a kernel returned: everything but DONE asks for something and is called again ---
DONE = 0
OUT_FULL = 1
LOG_FULL = 2
ROWS_FULL = 3
LISTS_FULL = 4
HASH_WANTED = 5
POOL_FULL = 6
PAUSED = 7
TOO_MANY = 8
KEEP_AGAIN = 9

# --- an entry of the log: words ---
E_BORN = 0  # number of the arrival that made the fact new << 8 | pattern
E_HANGS = 1  # distance to the newer copy of the same fact << 32 | first match that hangs here, plus 1; -1: not in use
E_ARRIVED = 2
E_SIDES = 3  # per side: row << 32 | distance to the next older entry of the chain; then the leaves; then, linked, newer

# --- a row of the node table: words ---
R_VALUE = 0
R_VARIABLE = 1  # negative: free, -2 - next free row
R_HEADS = 2  # per incidence the newest entry of its chain

# --- the desk: one array of scalars, scratch and plan, in this order ---

# scalars
S_END = 0  # next position of the log
S_TAIL = 1  # first living position
S_NEXT = 2  # next arrival to take in
S_BASE = 3  # number of the first arrival of the matrix at hand
S_SLIDE = 4
S_PHASE = 5
S_ROWS_END = 6
S_ROWS_FREE = 7
S_ROWS_USED = 8
S_HAND = 9
S_CREATED = 10
S_POOL_END = 11
S_POOL_FREE = 12
S_POOL_USED = 13
S_KEPT = 14  # 1: matches hang on their oldest entry; 0: deletion by join
S_AUTO = 15
S_MATCHES = 16  # living matches
S_OUT = 17
S_OUT_START = 18
S_LIMIT = 19  # of matches told in one slide, and of matches kept
S_FUEL = 20
S_LISTS = 21
S_LIST_BASE = 22
S_FRESH_PATTERNS = 23
S_LEAVING_PATTERNS = 24
S_BOUND = 25  # facts born at or after it are new in this slide
S_NEW_TAIL = 26
S_RANK = 27
S_ITEM = 28
S_DEPTH = 29
S_SEED = 30
S_HASH_USED = 31
S_HASHING = 32
S_HASH_WANTED = 33
S_EMPTY = 34  # patterns without a living fact
S_FREE_ENTRY = 35
S_LIVING = 36  # entries in use (linked) or facts alive
S_ENTERED = 37
S_FOUND = 38
S_SINCE_SWITCH = 39
S_PEEKED = 40  # arrivals before it have been looked ahead at
S_SCATTERED = 41  # 1: what comes lies anywhere in large tables, so that looking ahead pays
S_CHAINED = 42  # chains that entries were put on, lately
S_COLD = 43  # of these, on chains that nobody had touched for long
S_OLD_END = 44  # entries before this position were there before the slide; 0: positions say nothing about that

S_SWEEP = 45  # rows to be swept
S_LISTED = 46  # first entry that has not yet been a seed, when all matches are looked for
S_MOST_LISTED = 47  # seeds of the largest slide of a call

# scratch: vectors with one word per pattern ---
W_LIVING = 64
W_FRESH_HEAD = 128
W_FRESH = 192
W_LEAVING_HEAD = 256
W_LEAVING = 320
W_FRESH_ORDER = 384
W_LEAVING_ORDER = 448
W_FLOOR = 512  # entries before it are dead to this pattern
W_CEILING = 576  # entries born (E_BORN) at or after it are hidden from this pattern
W_AT = 640
W_CURSOR = 704
W_BEFORE = 768
W_SIDE = 832
W_ACTIVE = 896
W_HASHED = 960  # 1: in the hash of facts; 2: wants to be
W_PREFERRED = 1024
W_DEBT = 1088
W_RACE = 1152
W_KEY = 1216
W_VALUE = 1232
W_ROW = W_VALUE + MOST_VARIABLES
W_LOOK = W_ROW + MOST_VARIABLES  # seeds that are looked ahead at
W_CHAINS = W_LOOK + 16  # chains that are looked ahead along: position << 8 | what is looked for
MOST_CHAINS = 128
W_WASTED = W_CHAINS + MOST_CHAINS  # searches for one fact that began on a chain which was too long
SCRATCH_END = W_WASTED + MOST_PATTERNS

# the plan: header
L_WIDTH = SCRATCH_END + 0
L_KIND = SCRATCH_END + 1  # the column to dispatch on
L_PATTERNS = SCRATCH_END + 2
L_VARIABLES = SCRATCH_END + 3
L_ENTRY = SCRATCH_END + 4  # words per entry
L_ROW = SCRATCH_END + 5  # words per row
L_NEWER = SCRATCH_END + 6  # where the links to newer entries begin in an entry; 0: a FIFO, which needs none
L_MULTIPLIER = SCRATCH_END + 7
L_SHIFT = SCRATCH_END + 8
L_DEFAULT = SCRATCH_END + 9  # list of patterns for kinds that no pattern names
L_VARIABLE_TABLE = SCRATCH_END + 10  # per variable: start and end of its incidences
L_HOMES = SCRATCH_END + 11  # per variable of a match: pattern, word of the entry, whether it is a row
L_BITS = SCRATCH_END + 12  # start and end of the patterns that are a bit of a variable: pattern, variable, head
L_BITS_END = SCRATCH_END + 13
L_LAST = SCRATCH_END + 14  # the log's capacity, a power of two, less 1: the one number here that changes
L_DISPATCH = SCRATCH_END + 15  # per slot: kind, list of patterns
L_RECORDS = SCRATCH_END + 16  # the first pattern

# the plan: a pattern
P_TESTS = 0
P_TESTS_END = 1
P_SIDES = 2
P_LEAVES = 3
P_BIT = 4
P_SEED = 5  # the step that binds all of it
P_STEPS = 6  # per depth the step; 0: inside a group
P_DEPTHS = 7
P_COLUMN = 8
P_VARIABLE = 13
P_HEAD = 18
P_LEAF_COLUMN = 23
P_LEAF_VARIABLE = 28
P_LOOK = 33  # the chains that begin at its own rows, as a seed
P_LOOK_END = 34
PATTERN_SIZE = 35

# the plan: a test of a pattern: what, column, argument
TEST_ID = 0
TEST_SAME = 1
TEST_RANGE = 2
TEST_SIZE = 3

# the plan: a list of the patterns that facts of a kind may fit
F_COUNT = 0
F_SIDES = 1  # of all of them
F_EXACT = 2  # 1: whether a fact fits never changes, hence what lives lives for all of its patterns
F_PATTERNS = 3

# the plan: an incidence of a variable: head, pattern, side
INCIDENCE_SIZE = 3

# the plan: a chain that a seed leads to
K_ROW = 0  # the side of the seed whose row has its head
K_HEAD = 1
K_PATTERN = 2
K_SIDE = 3
K_OTHER = 4  # a further side of its entries, or -1
LOOK_SIZE = 5

# the plan: a step
T_PATTERN = 0
T_GROUP = 1  # how many patterns bind the same variable; as many orders of them follow each other
T_UNIQUE = 2  # all is bound: at most one fact
T_BOUND = 3
T_BOUND_SIDES = 4
T_NEW = 9
T_NEW_SIDES = 10
T_DIFFERENT = 15
T_DIFFERENT_END = 16
STEP_SIZE = 17

# --- what a join is for ---
ROLE_LEAVE = 0
ROLE_ENTER = 1
ROLE_LIST = 2
ROLE_HANG = 3

NEVER = 1 << 62  # a ceiling that hides nothing
