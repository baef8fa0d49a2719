"""The sets whose structure is measured: the trie paper's (appendix C.2), and those it gives as examples (H.7)."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

from accuracy_sets import DIRECTORIES, read_set
from scale import cities

from trieauto.demo_sets import icd10_cm_codes, tool_names

CATEGORIES = (
    "Electronics", "Kitchen", "Garden", "Clothing", "Toys", "Books", "Sports", "Beauty", "Automotive", "Office",
)  # fmt: skip
BRANDS = ("Sony", "Bosch", "Philips", "Adidas", "Lego", "Samsung", "Braun", "Canon", "Puma", "Siemens")
ADJECTIVES = ("Premium", "Compact", "Classic", "Deluxe", "Essential")
COLOURS = ("Black", "White", "Silver", "Blue", "Red", "Green", "Grey", "Gold")
PRODUCTS = 1_500


def product_names(count: int = PRODUCTS, seed: int = 0) -> list[str]:
    """``Electronics > Sony > Premium 4823 > Black``: distinct, in random order.

    The paper gives the form, their number and how much of them is shared, but no pools; these share about as much.
    """
    rng = random.Random(seed)
    names: dict[str, None] = {}
    while len(names) < count:
        parts = (rng.choice(CATEGORIES), rng.choice(BRANDS), f"{rng.choice(ADJECTIVES)} {rng.randrange(1_000, 10_000)}")
        names[" > ".join((*parts, rng.choice(COLOURS)))] = None
    return list(names)


def random_uuids(count: int, seed: int = 0) -> list[str]:
    """Strings without structure."""
    rng = random.Random(seed)
    return [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(count)]


def labels(directory: Path, name: str) -> list[str]:
    """The labels of one of the four classification benchmarks."""
    return read_set(directory, name, 1, 0).labels


PAPER_RATIO: dict[str, tuple[float, float]] = {
    "TREC": (0.59, 0.90),
    "MASSIVE": (0.59, 0.90),
    "Banking77": (0.59, 0.90),
    "CLINC150": (0.59, 0.90),
    "tool names, K=1,000": (0.40, 0.40),
    "product names, K=1,500": (0.40, 0.40),
    "ICD-10-CM": (0.19, 0.19),
    "random UUIDs, K=1,000": (0.95, 1.0),
    "names of cities": (0.6, 0.8),
}
"""The share of characters that are nodes, as the paper's table 14 and appendix H.7 have it: from, to."""


def sets(data: Path | None, *, is_quick: bool) -> dict[str, Callable[[], list[str]]]:
    """By name. Without ``data`` the labelled sets are left out; a quick run also leaves out the large ones."""
    found: dict[str, Callable[[], list[str]]] = {}
    if data is not None:
        found |= {name: partial(labels, data, name) for name in DIRECTORIES}
    found |= {
        "tool names, K=1,000": partial(tool_names, 1_000),
        "product names, K=1,500": product_names,
        "random UUIDs, K=1,000": partial(random_uuids, 1_000),
    }
    if not is_quick:
        found |= {"ICD-10-CM": icd10_cm_codes, "names of cities": cities}
    return found
