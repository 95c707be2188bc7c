"""The ordered tuple of all rules of the optimizer; each runs once.

Patterns are merged first, so that the largest patterns are split by source. Paths of which only the existence matters
become connectivity questions while patterns and paths still name the same source. Sources are split before filters are
pushed, so that a filter finds its side. Filters are pushed before columns are dropped, because filters need columns
longest. Aggregates follow, when no operator is left between them and the streams' branches. Static parts include the
filters and projections that were pushed down to them. Windows are summarised last, when all their readers are known.

Invariant: any part of this tuple, in any order, keeps the answer; the order only decides how much is gained.
"""

from __future__ import annotations

from anabranch.optimizer.evaluate_static_parts import evaluate_static_parts
from anabranch.optimizer.find_trails_once import find_trails_once
from anabranch.optimizer.merge_joined_patterns import merge_joined_patterns
from anabranch.optimizer.narrow_sources import narrow_sources
from anabranch.optimizer.push_aggregate import push_aggregate
from anabranch.optimizer.push_filter import push_filter
from anabranch.optimizer.push_into_trails import push_into_trails
from anabranch.optimizer.push_projection import push_projection
from anabranch.optimizer.read_ends_from_rows import read_ends_from_rows
from anabranch.optimizer.recognise_connectivity import recognise_connectivity
from anabranch.optimizer.summarise_windows import summarise_windows
from anabranch.optimizer.support.knowledge import Rule

RULES: tuple[Rule, ...] = (
    merge_joined_patterns,
    recognise_connectivity,
    find_trails_once,
    push_into_trails,
    read_ends_from_rows,
    narrow_sources,
    push_filter,
    push_projection,
    push_aggregate,
    evaluate_static_parts,
    summarise_windows,
)

GRAPH_RULES: tuple[Rule, ...] = (recognise_connectivity, find_trails_once, push_into_trails, read_ends_from_rows)
"""The rules that hold in plans over property graphs too: they move no operator."""
