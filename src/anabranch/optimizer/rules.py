"""The whole optimizer: these rules, in this order, each once.

Patterns are first merged, so that there is most to split by source, and paths of which only the existence is asked
become questions while patterns and paths still name the same source; sources are split before filters are pushed, so
that a filter finds the side it belongs to; filters go down before columns are dropped, because a filter is what needs
them longest. Aggregates follow where the streams' branches are by then free of anything in between. Static parts take
up the filters and projections that have come down to them, and windows are summarised last, when it is settled who
reads them.

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
from anabranch.optimizer.recognise_connectivity import recognise_connectivity
from anabranch.optimizer.summarise_windows import summarise_windows
from anabranch.optimizer.support.knowledge import Rule

RULES: tuple[Rule, ...] = (
    merge_joined_patterns,
    recognise_connectivity,
    find_trails_once,
    push_into_trails,
    narrow_sources,
    push_filter,
    push_projection,
    push_aggregate,
    evaluate_static_parts,
    summarise_windows,
)

GRAPH_RULES: tuple[Rule, ...] = (recognise_connectivity, find_trails_once, push_into_trails)
"""Those that hold in plans over property graphs too: they move nothing."""
