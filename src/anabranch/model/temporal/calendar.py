"""The proleptic Gregorian calendar on plain integers, for years from -999 999 999 to 999 999 999.

Days are counted from 1970-01-01, which is day 0. `datetime.date` ends at the year 9999 and begins at 1, so this
is done by hand: months are counted from March, so that the leap day comes last, and everything repeats each 400
years (146 097 days, a whole number of weeks).

Invariant: `civil_from_days(days_from_civil(y, m, d)) == (y, m, d)` for every day that exists.
"""

from __future__ import annotations

MIN_YEAR = -999_999_999
MAX_YEAR = 999_999_999
DAYS_PER_ERA = 146_097
DAYS_FROM_MARCH_OF_YEAR_0 = 719_468
THURSDAY = 4


def is_leap_year(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_year(year: int) -> int:
    return 366 if is_leap_year(year) else 365


def days_in_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if is_leap_year(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def days_in_quarter(year: int, quarter: int) -> int:
    first = 3 * quarter - 2
    return sum(days_in_month(year, month) for month in range(first, first + 3))


def days_from_civil(year: int, month: int, day: int) -> int:
    """The day number of a calendar date; 1970-01-01 is 0."""
    march_year = year - 1 if month <= 2 else year
    era, year_of_era = divmod(march_year, 400)
    march_month = (month + 9) % 12
    day_of_march_year = (153 * march_month + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_march_year
    return era * DAYS_PER_ERA + day_of_era - DAYS_FROM_MARCH_OF_YEAR_0


def civil_from_days(days: int) -> tuple[int, int, int]:
    """The year, month and day of a day number."""
    era, day_of_era = divmod(days + DAYS_FROM_MARCH_OF_YEAR_0, DAYS_PER_ERA)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_march_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    march_month = (5 * day_of_march_year + 2) // 153
    day = day_of_march_year - (153 * march_month + 2) // 5 + 1
    month = march_month + 3 if march_month < 10 else march_month - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def weekday(days: int) -> int:
    """The ISO day of the week of a day number: 1 is Monday, 7 is Sunday."""
    return (days + THURSDAY - 1) % 7 + 1


def ordinal_day(year: int, month: int, day: int) -> int:
    return days_from_civil(year, month, day) - days_from_civil(year, 1, 1) + 1


def quarter_of_month(month: int) -> int:
    return (month + 2) // 3


def day_of_quarter(year: int, month: int, day: int) -> int:
    return days_from_civil(year, month, day) - days_from_civil(year, 3 * quarter_of_month(month) - 2, 1) + 1


def first_day_of_week_year(week_year: int) -> int:
    """The day number of the Monday of week 1: the week that holds 4 January."""
    fourth = days_from_civil(week_year, 1, 4)
    return fourth - (weekday(fourth) - 1)


def weeks_in_week_year(week_year: int) -> int:
    return (first_day_of_week_year(week_year + 1) - first_day_of_week_year(week_year)) // 7


def week_date(days: int) -> tuple[int, int, int]:
    """The ISO week-based year, week and day of the week of a day number."""
    week_year = civil_from_days(days - weekday(days) + THURSDAY)[0]
    return week_year, (days - first_day_of_week_year(week_year)) // 7 + 1, weekday(days)


def add_months(year: int, month: int, day: int, months: int) -> tuple[int, int, int]:
    """The same day some months later (or earlier), or the last day of that month when it is shorter."""
    new_year, month_index = divmod(year * 12 + month - 1 + months, 12)
    return new_year, month_index + 1, min(day, days_in_month(new_year, month_index + 1))
