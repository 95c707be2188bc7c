"""The words of generated auctions: goods, brands, people and places. Brands and people are invented.

Invariant: the lists belong to the stream: a word that is added, removed or moved makes another stream.
"""

from __future__ import annotations

from typing import NamedTuple


class Trade(NamedTuple):
    """A category: its things, the brands that make them, and the power of two (in cents) that the cheapest costs."""

    name: str
    things: tuple[str, ...]
    brands: tuple[str, ...]
    octave: int


TRADES = (
    Trade("Phones", ("phone", "smartphone", "flip phone"), ("Norrvik", "Calloo", "Tamber", "Pico"), 12),
    Trade("Cameras", ("camera", "film camera", "camera lens"), ("Lumora", "Oculon", "Hartwig", "Sorensen"), 12),
    Trade(
        "Bikes",
        ("road bike", "folding bike", "bike trailer"),
        ("Velantis", "Brockmoor", "Zefiro", "Kettler & Roth"),
        13,
    ),
    Trade("Books", ("novel", "atlas", "cookbook"), ("Penhallow", "Quire", "Blaumond", "Editora Sol"), 8),
    Trade("Consoles", ("game console", "controller", "handheld"), ("Nimbit", "Sagaro", "Playard", "Orbix"), 11),
    Trade("Watches", ("wrist watch", "pocket watch", "chronograph"), ("Tessin", "Delorme", "Akira", "Westhall"), 13),
    Trade("Guitars", ("guitar", "bass guitar", "ukulele"), ("Maple Row", "Fretti", "Gaudin", "Stroud"), 12),
    Trade("Toys", ("train set", "teddy bear", "board game"), ("Spielwerk", "Tumble", "Hopscotch", "Bruno"), 9),
    Trade("Records", ("vinyl record", "record player", "box set"), ("Blue Lantern", "Sundown", "Vega", "Harmonia"), 9),
    Trade("Furniture", ("armchair", "desk lamp", "bookshelf"), ("Aalborg", "Montis", "Ferrand", "Oakfield"), 11),
    Trade("Coins", ("silver coin", "coin album", "medal"), ("Mintmark", "Royal Issue", "Denarius", "Old Crown"), 11),
    Trade("Tools", ("drill", "tool box", "workbench"), ("Stahlbau", "Ironwood", "Grizl", "Makoto"), 10),
)
ADJECTIVES = (
    "Vintage", "New", "Rare", "Compact", "Restored", "Boxed", "Signed", "Classic",
    "Slightly used", "Antique", "Limited", "Refurbished", "Spotless", "Well-loved", "Mint", "Original",
)  # fmt: skip
FIRST_NAMES = (
    "Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Keiko", "Liam",
    "Mira", "Noah", "Olga", "Pablo", "Quinn", "Rosa", "Sven", "Tara", "Umar", "Vera", "Wanda", "Xavier",
    "Yusuf", "Zoe", "Amina", "Boris", "Carmen", "David", "Emil", "Freya",
)  # fmt: skip
LAST_NAMES = (
    "Almeida", "Bauer", "Costa", "Dubois", "Eriksen", "Fischer", "Garcia", "Horvat", "Ivanova", "Jansen", "Kowalski",
    "Lindgren", "Moreau", "Novak", "Okafor", "Petrov", "Quispe", "Rossi", "Sato", "Tanaka", "Ueda", "Virtanen",
    "Weber", "Xu", "Yilmaz", "Zimmer", "Ahmed", "Brennan", "Castillo", "Demir", "Egede", "Fontaine",
)  # fmt: skip
CITIES = (
    "Lübeck", "Lisbon", "Oslo", "Milan", "Porto", "Kyoto", "Quito", "Ghent",
    "Turku", "Lyon", "Brno", "Izmir", "Cork", "Aarhus", "Accra", "Boston",
)  # fmt: skip
