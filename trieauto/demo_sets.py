"""The two sets of the demo and of the measurements: synthetic tool names and ICD-10-CM codes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import permutations

from .errors import UnsupportedError

MAX_TOOL_NAMES = 1_000_000

_NAMESPACES = ("slack", "github", "stripe", "aws", "google", "microsoft", "salesforce", "jira", "notion", "discord")
_ACTIONS = ("get", "create", "update", "delete", "list", "search", "send", "fetch", "upload", "download")
_RESOURCES = ("user", "message", "file", "project", "issue", "payment", "invoice", "document", "channel", "repository")
# Any two of them make one of 56 * 55 pairs, so each pattern has more than its share of a million names.
_QUALIFIERS = tuple(
    """
    active annual archived assigned blocked broken cached closed current custom daily default deferred deleted draft
    empty expired external failed final flagged global hidden hourly imported inactive internal invalid latest local
    locked manual merged missing monthly nested new obsolete open optional partial pending pinned primary private
    public queued recent remote scheduled shared stale starred trusted urgent verified
    """.split()  # noqa: SIM905 (one word per line would take a page)
)


def tool_names(count: int, seed: int = 0) -> list[str]:
    """``count`` distinct tool names in random order, 70 % ``slack.get_user`` and 30 % ``get_user``.

    The pools are the paper's (appendix C.2): ten namespaces, ten actions, ten resources. A pattern whose pool is
    smaller than its share takes all of it and goes on with one qualifier before the resource (``get_active_user``),
    then with two. The same ``count`` and ``seed`` give the same list everywhere.

    Args:
        count: 1 to 1,000,000.
        seed: of the sample and of the order.

    Raises:
        UnsupportedError: ``count`` is out of range.

    Cost: about 1.4 s for a million names.
    """
    if not 1 <= count <= MAX_TOOL_NAMES:
        raise UnsupportedError(f"count must be between 1 and {MAX_TOOL_NAMES:,}, not {count}")
    rng = random.Random(seed)
    plain_count = round(0.3 * count)
    plain = [f"{action}_" for action in _ACTIONS]
    namespaced = [f"{namespace}.{prefix}" for namespace in _NAMESPACES for prefix in plain]
    names = _sample(namespaced, count - plain_count, rng) + _sample(plain, plain_count, rng)
    rng.shuffle(names)
    return names


def icd10_cm_codes() -> list[str]:
    """The 74,719 distinct ICD-10-CM codes that have no code below them, in the order of the classification.

    Source: the PyPI package ``simple-icd-10-cm`` 1.5.0 (its release of April 2026). A code counts if it is a leaf and a
    category or subcategory. Asking for "not a block" instead would lose B20, F99, P84, R99 and Z66, each of which
    names a block and its only category alike.

    Raises:
        ModuleNotFoundError: ``simple-icd-10-cm`` is not installed.

    Cost: about 2 s at the first call, when the package reads its XML.
    """
    try:
        import simple_icd_10_cm as icd
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'the ICD-10-CM codes need simple-icd-10-cm: pip install "trieauto[demo]"', name=error.name
        ) from error
    codes = [code for code in icd.get_all_codes(True) if icd.is_leaf(code) and icd.is_category_or_subcategory(code)]
    return list(dict.fromkeys(codes))


def _sample(prefixes: list[str], count: int, rng: random.Random) -> list[str]:
    """``count`` names ``prefix + qualifiers + resource``, those with fewer qualifiers first."""
    chosen: list[str] = []
    for num_qualifiers in range(3):
        qualified = ["".join(f"{word}_" for word in words) for words in permutations(_QUALIFIERS, num_qualifiers)]
        needed = count - len(chosen)
        pool_size = len(prefixes) * len(qualified) * len(_RESOURCES)
        numbers: Iterable[int] = range(pool_size) if needed >= pool_size else rng.sample(range(pool_size), needed)
        for number in numbers:
            rest, resource = divmod(number, len(_RESOURCES))
            prefix, words = divmod(rest, len(qualified))
            chosen.append(prefixes[prefix] + qualified[words] + _RESOURCES[resource])
        if len(chosen) == count:
            break
    return chosen
