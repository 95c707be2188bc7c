"""Points in a plane, in space and on the globe.

Four coordinate reference systems; a point belongs to exactly one, and points of different systems are never
equal and have no distance.

Invariant: a point has as many finite coordinates as its system has dimensions, and a latitude within ±90°.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from anabranch.model.temporal.refusals import kind_of, unknown_name, wrong_kind, wrong_value

EARTH_RADIUS_METRES = 6_378_140.0


@dataclass(frozen=True, slots=True)
class Crs:
    """A coordinate reference system: its name, its SRID and what its coordinates are called."""

    name: str
    srid: int
    axes: tuple[str, ...]

    @property
    def geographic(self) -> bool:
        return self.axes[0] == "longitude"


CARTESIAN = Crs("cartesian", 7203, ("x", "y"))
CARTESIAN_3D = Crs("cartesian-3d", 9157, ("x", "y", "z"))
WGS_84 = Crs("wgs-84", 4326, ("longitude", "latitude"))
WGS_84_3D = Crs("wgs-84-3d", 4979, ("longitude", "latitude", "height"))
SYSTEMS = (CARTESIAN, CARTESIAN_3D, WGS_84, WGS_84_3D)

_BY_NAME = {crs.name: crs for crs in SYSTEMS}
_BY_SRID = {crs.srid: crs for crs in SYSTEMS}
_AXIS_OF_NAME = {"x": 0, "y": 1, "z": 2, "longitude": 0, "latitude": 1, "height": 2}
_KEYS = (*_AXIS_OF_NAME, "crs", "srid")
_PRINTED_AXES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class Point:
    """A place: a reference system and its coordinates, in the order of the system's axes."""

    crs: str
    coordinates: tuple[float, ...]

    def __post_init__(self) -> None:
        system = _BY_NAME.get(self.crs)
        if system is None:
            raise unknown_name("coordinate reference system", self.crs, _BY_NAME)
        if len(self.coordinates) != len(system.axes):
            raise wrong_value(f"a {self.crs} point has the coordinates {', '.join(system.axes)}")
        if not all(math.isfinite(coordinate) for coordinate in self.coordinates):
            raise wrong_value("the coordinates of a point must be finite numbers")
        if system.geographic:
            longitude, latitude = self.coordinates[:2]
            if not -90 <= latitude <= 90:
                raise wrong_value(f"latitude {latitude} is out of range", "latitude lies between -90 and 90")
            wrapped = longitude if -180 <= longitude <= 180 else (longitude + 180) % 360 - 180
            object.__setattr__(self, "coordinates", (wrapped, latitude, *self.coordinates[2:]))

    @classmethod
    def from_map(cls, fields: Mapping[str, object]) -> Point | None:
        """A point from `{x, y[, z]}` or `{longitude, latitude[, height]}`, with an optional `crs` or `srid`.

        A null coordinate makes the whole point null.
        """
        for key in fields:
            if key not in _KEYS:
                raise unknown_name("component of point()", key, _KEYS)
        if any(value is None for value in fields.values()):
            return None
        axes = [key for key in _AXIS_OF_NAME if key in fields]
        _require_axes(axes)
        coordinates = tuple(_number(key, fields[key]) for key in axes)
        return cls(_system(fields, axes).name, coordinates)

    @property
    def system(self) -> Crs:
        return _BY_NAME[self.crs]

    @property
    def srid(self) -> int:
        return self.system.srid

    def component(self, name: str) -> object:
        """A coordinate, `crs` or `srid`; `x`, `y` and `z` name the coordinates of a place on the globe too."""
        if name == "crs":
            return self.crs
        if name == "srid":
            return self.srid
        if name not in ("x", "y", "z") and not self.system.geographic:
            return None
        axis = _AXIS_OF_NAME.get(name)
        return self.coordinates[axis] if axis is not None and axis < len(self.coordinates) else None

    def order_key(self) -> tuple[int, tuple[float, ...]]:
        return self.srid, self.coordinates

    def __str__(self) -> str:
        named = ", ".join(f"{axis}: {value!r}" for axis, value in zip(_PRINTED_AXES, self.coordinates, strict=False))
        return f"point({{{named}, crs: '{self.crs}'}})"


def distance(first: Point, second: Point) -> float | None:
    """Metres on the globe, the unit of the axes elsewhere; None between different systems."""
    if first.crs != second.crs:
        return None
    if not first.system.geographic:
        return math.dist(first.coordinates, second.coordinates)
    if len(first.coordinates) == 2:
        return _great_circle(first, second, EARTH_RADIUS_METRES)
    first_height, second_height = first.coordinates[2], second.coordinates[2]
    along = _great_circle(first, second, EARTH_RADIUS_METRES + (first_height + second_height) / 2)
    return math.hypot(along, first_height - second_height)


def _great_circle(first: Point, second: Point, radius: float) -> float:
    """The haversine formula."""
    longitude_1, latitude_1 = (math.radians(angle) for angle in first.coordinates[:2])
    longitude_2, latitude_2 = (math.radians(angle) for angle in second.coordinates[:2])
    height = math.sin((latitude_2 - latitude_1) / 2) ** 2
    width = math.sin((longitude_2 - longitude_1) / 2) ** 2
    share = height + math.cos(latitude_1) * math.cos(latitude_2) * width
    return 2 * radius * math.asin(min(1.0, math.sqrt(share)))


def _require_axes(axes: list[str]) -> None:
    if tuple(axes) not in {crs.axes for crs in SYSTEMS}:
        given = ", ".join(axes) or "no coordinates"
        raise wrong_value(f"a point cannot be made from {given}", "give x and y, or longitude and latitude")


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_kind(f"{name} must be a number, not {kind_of(value)}")
    return float(value)


def _system(fields: Mapping[str, object], axes: list[str]) -> Crs:
    named: Crs | None = None
    if "crs" in fields:
        name = fields["crs"]
        if not isinstance(name, str):
            raise wrong_kind(f"crs must be a string, not {kind_of(name)}")
        named = _BY_NAME.get(name.lower())
        if named is None:
            raise unknown_name("coordinate reference system", name, _BY_NAME)
    if "srid" in fields:
        srid = fields["srid"]
        by_srid = _BY_SRID.get(srid) if isinstance(srid, int) and not isinstance(srid, bool) else None
        if by_srid is None or (named is not None and named != by_srid):
            raise wrong_value(f"srid {srid} does not name this system", f"one of {', '.join(map(str, _BY_SRID))}")
        named = by_srid
    implied = next(crs for crs in SYSTEMS if crs.axes == tuple(axes))
    if named is None:
        return implied
    if len(named.axes) != len(axes) or (implied.geographic and not named.geographic):
        raise wrong_value(f"a {named.name} point needs {', '.join(named.axes)}", "or leave out crs and srid")
    return named
