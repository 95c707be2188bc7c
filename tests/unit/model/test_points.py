"""Points: how they are made, read, written and measured."""

from __future__ import annotations

import math

import pytest

from anabranch.errors import EvaluationError
from anabranch.model.points import EARTH_RADIUS_METRES, Point, distance


@pytest.mark.parametrize(
    ("fields", "crs", "srid", "text"),
    [
        ({"x": 1, "y": 2.5}, "cartesian", 7203, "point({x: 1.0, y: 2.5, crs: 'cartesian'})"),
        ({"x": 1, "y": 2, "z": 3}, "cartesian-3d", 9157, "point({x: 1.0, y: 2.0, z: 3.0, crs: 'cartesian-3d'})"),
        ({"longitude": 12, "latitude": 56}, "wgs-84", 4326, "point({x: 12.0, y: 56.0, crs: 'wgs-84'})"),
        ({"latitude": 56, "longitude": 12, "height": 9}, "wgs-84-3d", 4979,
         "point({x: 12.0, y: 56.0, z: 9.0, crs: 'wgs-84-3d'})"),
        ({"x": 12, "y": 56, "crs": "WGS-84"}, "wgs-84", 4326, "point({x: 12.0, y: 56.0, crs: 'wgs-84'})"),
        ({"x": 12, "y": 56, "srid": 4326}, "wgs-84", 4326, "point({x: 12.0, y: 56.0, crs: 'wgs-84'})"),
    ],
)  # fmt: skip
def test_the_coordinates_choose_the_system_unless_it_is_named(
    fields: dict[str, object], crs: str, srid: int, text: str
) -> None:
    point = Point.from_map(fields)
    assert point is not None
    assert (point.crs, point.srid, str(point)) == (crs, srid, text)


def test_a_null_coordinate_makes_a_null_point() -> None:
    assert Point.from_map({"x": 1, "y": None}) is None


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "SER-301"),
        ({"x": 1}, "SER-301"),
        ({"x": 1, "latitude": 2}, "SER-301"),
        ({"x": 1, "y": 2, "q": 3}, "SER-301"),
        ({"x": 1, "y": 2, "crs": "mercator"}, "SER-301"),
        ({"x": 1, "y": 2, "crs": "cartesian-3d"}, "SER-301"),
        ({"longitude": 1, "latitude": 2, "crs": "cartesian"}, "SER-301"),
        ({"x": 1, "y": 2, "srid": 1}, "SER-301"),
        ({"x": 1, "y": 2, "crs": "cartesian", "srid": 4326}, "SER-301"),
        ({"longitude": 1, "latitude": 91}, "SER-301"),
        ({"x": math.nan, "y": 2}, "SER-301"),
        ({"x": "1", "y": 2}, "SER-302"),
    ],
)
def test_maps_that_name_no_place_are_refused(fields: dict[str, object], code: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        Point.from_map(fields)
    assert caught.value.diagnostic.code == code


def test_components_are_read_by_name() -> None:
    flat, globe = Point("cartesian", (1.0, 2.0)), Point("wgs-84-3d", (12.0, 56.0, 9.0))
    assert [flat.component(name) for name in ("x", "y", "z", "longitude", "crs", "srid", "colour")] == [
        1.0, 2.0, None, None, "cartesian", 7203, None,
    ]  # fmt: skip
    assert [globe.component(name) for name in ("x", "longitude", "latitude", "height")] == [12.0, 12.0, 56.0, 9.0]


def test_points_are_equal_in_the_same_system_only() -> None:
    assert Point("cartesian", (1.0, 2.0)) == Point("cartesian", (1.0, 2.0))
    assert Point("cartesian", (1.0, 2.0)) != Point("wgs-84", (1.0, 2.0))
    assert len({Point("cartesian", (1.0, 2.0)), Point("cartesian", (1.0, 2.0))}) == 1


def test_a_longitude_beyond_the_date_line_comes_round() -> None:
    assert Point("wgs-84", (190.0, 0.0)) == Point("wgs-84", (-170.0, 0.0))


def test_distance_is_euclidean_in_the_plane_and_in_space() -> None:
    assert distance(Point("cartesian", (0.0, 0.0)), Point("cartesian", (3.0, 4.0))) == 5.0
    assert distance(Point("cartesian-3d", (0.0, 0.0, 0.0)), Point("cartesian-3d", (2.0, 3.0, 6.0))) == 7.0


def test_distance_on_the_globe_follows_the_great_circle() -> None:
    quarter = distance(Point("wgs-84", (0.0, 0.0)), Point("wgs-84", (90.0, 0.0)))
    assert quarter == pytest.approx(EARTH_RADIUS_METRES * math.pi / 2)
    malmo, copenhagen = Point("wgs-84", (12.994823, 55.612191)), Point("wgs-84", (12.564590, 55.672874))
    chord = math.dist(unit_vector(malmo), unit_vector(copenhagen))
    assert distance(malmo, copenhagen) == pytest.approx(2 * EARTH_RADIUS_METRES * math.asin(chord / 2))
    assert distance(malmo, copenhagen) == distance(copenhagen, malmo)


def unit_vector(place: Point) -> tuple[float, float, float]:
    """The place on a globe of radius one, in space."""
    longitude, latitude = (math.radians(angle) for angle in place.coordinates)
    flat = math.cos(latitude)
    return flat * math.cos(longitude), flat * math.sin(longitude), math.sin(latitude)


def test_height_counts_between_places_on_the_globe() -> None:
    low, high = Point("wgs-84-3d", (12.0, 56.0, 0.0)), Point("wgs-84-3d", (12.0, 56.0, 100.0))
    assert distance(low, high) == pytest.approx(100.0)


def test_points_of_different_systems_have_no_distance() -> None:
    assert distance(Point("cartesian", (0.0, 0.0)), Point("wgs-84", (0.0, 0.0))) is None
