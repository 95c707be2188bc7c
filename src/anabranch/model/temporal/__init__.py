"""The temporal values of openCypher: six types, their text, their construction, truncation and arithmetic.

calendar.py counts days; zones.py knows offsets; values.py and duration.py hold the types; parse.py and format.py
are their text; fields.py, construct.py and truncate.py build them; arithmetic.py computes; functions.py gives all
of it the names that queries use.
"""

from __future__ import annotations

from anabranch.model.temporal.arithmetic import (
    add,
    between,
    divide,
    in_days,
    in_months,
    in_seconds,
    multiply,
    subtract,
)
from anabranch.model.temporal.duration import Duration
from anabranch.model.temporal.functions import TEMPORAL_FUNCTIONS
from anabranch.model.temporal.parse import (
    parse_date,
    parse_date_time,
    parse_duration,
    parse_local_date_time,
    parse_local_time,
    parse_time,
)
from anabranch.model.temporal.values import INSTANT_TYPES, Date, DateTime, Instant, LocalDateTime, LocalTime, Time
from anabranch.model.temporal.zones import UTC, Zone, parse_zone

Temporal = Instant | Duration
TEMPORAL_TYPES = (*INSTANT_TYPES, Duration)

__all__ = [
    "INSTANT_TYPES",
    "TEMPORAL_FUNCTIONS",
    "TEMPORAL_TYPES",
    "UTC",
    "Date",
    "DateTime",
    "Duration",
    "Instant",
    "LocalDateTime",
    "LocalTime",
    "Temporal",
    "Time",
    "Zone",
    "add",
    "between",
    "divide",
    "in_days",
    "in_months",
    "in_seconds",
    "multiply",
    "parse_date",
    "parse_date_time",
    "parse_duration",
    "parse_local_date_time",
    "parse_local_time",
    "parse_time",
    "parse_zone",
    "subtract",
]
