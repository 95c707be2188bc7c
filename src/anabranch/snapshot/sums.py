"""Exact sums: rounded only when read, so that values can be removed without a trace.

A float is an integer times a power of two, and so is every sum of floats. The sum is kept as that integer; the power
decreases when a value needs it. Infinities and NaN are counted separately.

Invariant: a sum is that of its present values, rounded once, and does not depend on its history. It equals the result
of `math.fsum`, where that has one, and is an infinity past the largest float.

Work: O(1) for a value, a few machine words as long as the values are of similar size.
"""

from __future__ import annotations

import math

_MANTISSA = 53
_TWO_TO_MANTISSA = float(1 << _MANTISSA)
_ROOT_BITS = 64  # more than a float has, so that a bit that says "and a bit more" decides every rounding


class FloatSum:
    """An exact sum of floats. Values are buffered; the first `total` without removals uses `math.fsum`, later ones an
    exact running sum."""

    __slots__ = ("_asked", "_entering", "_exponent", "_leaving", "_special", "_units", "count")

    def __init__(self) -> None:
        self.count = 0
        self._entering: list[float] = []
        self._leaving: list[float] = []
        self._asked = False
        self._units = 0
        self._exponent = 0
        self._special: dict[str, int] = {}

    def add(self, value: float) -> None:
        self.count += 1
        self._entering.append(value)

    def remove(self, value: float) -> None:
        self.count -= 1
        self._leaving.append(value)

    def shift(self, count: int, units: int, exponent: int) -> None:
        """Add the exact sum of finite values, `count` more than before."""
        self._settle()
        self.count += count
        self._units, self._exponent = summed(self._units, self._exponent, units, exponent)

    def total(self, besides: float = 0.0) -> float:
        """Return the sum of the values and of `besides`."""
        if not self._asked and not self._leaving:
            self._asked = True
            try:
                return math.fsum([*self._entering, besides])
            except (OverflowError, ValueError):  # overflow, perhaps of a partial sum only; or infinities of both signs
                pass
        self._settle()
        special = [float(name) for name, count in self._special.items() if count]
        if special or not math.isfinite(besides):
            return sum((one for one in (*special, besides) if not math.isfinite(one)), 0.0)
        if not besides:
            return rounded(self._units, self._exponent)
        return rounded(*summed(self._units, self._exponent, *exact(besides)))

    def _settle(self) -> None:
        self._asked = True  # from now on the buffer does not hold all values
        if not self._entering and not self._leaving:
            return
        for values, sign in ((self._entering, 1), (self._leaving, -1)):
            for value in values:
                if math.isfinite(value):
                    self._units, self._exponent = summed(self._units, self._exponent, *exact(sign * value))
                else:
                    self._special[repr(value)] = self._special.get(repr(value), 0) + sign
            values.clear()


class Moments:
    """The number of floats, their sum and the sum of their squares, for the standard deviation."""

    __slots__ = ("_exponent", "_special", "_squares", "_units", "count")

    def __init__(self) -> None:
        self.count = 0
        self._special = 0
        self._exponent = 0
        self._units = 0
        self._squares = 0

    def change(self, value: float, sign: int) -> None:
        self.count += sign
        if not math.isfinite(value):
            self._special += sign
            return
        units, exponent = exact(value)
        if exponent < self._exponent:
            by = self._exponent - exponent
            self._units <<= by
            self._squares <<= 2 * by
            self._exponent = exponent
        units <<= exponent - self._exponent
        self._units += sign * units
        self._squares += sign * units * units

    def deviation(self, degrees_lost: int) -> float:
        """The root of the mean square distance from the mean; 0 of fewer than two values."""
        if self.count < 2:
            return 0.0
        if self._special:
            return math.nan
        square = self.count * self._squares - self._units * self._units
        return root(square, self.count * (self.count - degrees_lost), self._exponent)


def exact(value: float) -> tuple[int, int]:
    """Return a finite float as an integer and the power of two to multiply it with."""
    mantissa, exponent = math.frexp(value)
    if not mantissa:
        return 0, 0
    return int(mantissa * _TWO_TO_MANTISSA), exponent - _MANTISSA


def summed(units: int, exponent: int, more: int, power: int) -> tuple[int, int]:
    """Return the sum of two exact sums."""
    if not more:
        return units, exponent
    if power < exponent:
        return (units << (exponent - power)) + more, power
    return units + (more << (power - exponent)), exponent


def rounded(units: int, exponent: int) -> float:
    """Return the float that is nearest to an exact sum."""
    try:
        return units / (1 << -exponent) if exponent < 0 else float(units << exponent)
    except OverflowError:
        return math.inf if units > 0 else -math.inf


def root(numerator: int, denominator: int, exponent: int) -> float:
    """Return the float nearest to sqrt(numerator / denominator) * 2 ** exponent."""
    if not numerator:
        return 0.0
    missing = 2 * _ROOT_BITS - numerator.bit_length() + denominator.bit_length()
    shift = (missing + 1) // 2
    if shift > 0:
        numerator <<= 2 * shift
    else:
        denominator <<= -2 * shift
    whole = math.isqrt(numerator // denominator)
    if whole * whole * denominator != numerator:
        whole |= 1  # between two integers: an odd last bit keeps it off every tie
    try:
        return math.ldexp(float(whole), exponent - shift)
    except OverflowError:
        return math.inf
