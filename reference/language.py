"""What a vocabulary can spell of a set, by brute force.

Byte prefixes name the states; ``tokens[id]`` are the bytes of an id, or None. An empty token is never legal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


class TooManyPathsError(ValueError):
    """An enumeration met more token paths than it was allowed to look at."""


def prefixes(values: Iterable[bytes]) -> set[bytes]:
    """Every prefix of every value, the empty one and the value itself included."""
    return {value[:depth] for value in values for depth in range(len(value) + 1)}


def occurring(values: Collection[bytes], tokens: Sequence[bytes | None]) -> dict[int, bytes]:
    """The ids, and their bytes, of the non-empty tokens that occur somewhere in a value. No other is legal anywhere.

    O(bytes of the values * longest token), and so that real vocabularies can be asked too.
    """
    longest = max((len(token) for token in tokens if token), default=0)
    pieces = {
        value[start : start + length]
        for value in values
        for start in range(len(value))
        for length in range(1, longest + 1)
    }
    return {token_id: token for token_id, token in enumerate(tokens) if token and token in pieces}


def min_tokens(values: Collection[bytes], tokens: Sequence[bytes | None]) -> dict[bytes, int]:
    """For every prefix from which the end of some value can be reached in tokens, the fewest tokens that takes.

    A prefix that is missing from the result is dead: it can be finished in bytes, but not in tokens of this vocabulary.
    The stop token is not counted. O(prefixes * tokens that occur in a value).
    """
    ends = set(values)
    pieces = set(occurring(values, tokens).values())
    fewest: dict[bytes, int] = {}
    # Tokens only lengthen a prefix, so with the longest first every destination is settled before it is needed.
    for prefix in sorted(prefixes(values), key=len, reverse=True):
        if prefix in ends:
            fewest[prefix] = 0
            continue
        onward = [fewest[prefix + piece] for piece in pieces if prefix + piece in fewest]
        if onward:
            fewest[prefix] = 1 + min(onward)
    return fewest


def live_masks(values: Collection[bytes], tokens: Sequence[bytes | None]) -> dict[bytes, list[int]]:
    """For every prefix of a value, the ids after which the end can still be reached in tokens, ascending (law 1)."""
    live = min_tokens(values, tokens)
    pieces = occurring(values, tokens)
    return {
        prefix: [token_id for token_id, piece in pieces.items() if prefix + piece in live]
        for prefix in prefixes(values)
    }


def complete_paths(values: Collection[bytes], tokens: Sequence[bytes | None], limit: int) -> list[list[int]]:
    """Every sequence of ids whose bytes are exactly one of the values: by length, then by ids.

    Looks at every sequence that stays within the values, dead ends included, and uses no masks. TooManyPathsError
    after ``limit`` sequences; their number is exponential in the length of a value.
    """
    ends = set(values)
    inside = prefixes(values)
    complete: list[list[int]] = []
    looked_at = 0
    paths: list[tuple[list[int], bytes]] = [([], b"")] if ends else []
    while paths:
        looked_at += len(paths)
        if looked_at > limit:
            raise TooManyPathsError(f"more than {limit} token paths")
        complete += [ids for ids, text in paths if text in ends]
        paths = [
            ([*ids, token_id], text + token)
            for ids, text in paths
            for token_id, token in enumerate(tokens)
            if token and text + token in inside
        ]
    return complete


def shortest_spelling(value: bytes, tokens: Sequence[bytes | None]) -> list[int] | None:
    """The ids of a spelling of ``value`` in the fewest tokens, the lowest id first among equals; None if there is none.

    O(len(value) * tokens).
    """
    fewest = min_tokens([value], tokens)
    if b"" not in fewest:
        return None
    ids: list[int] = []
    text = b""
    while text != value:
        # Only prefixes of this one value are in ``fewest``, so the new text is one as well.
        token_id, text = next(
            (token_id, text + token)
            for token_id, token in enumerate(tokens)
            if token and fewest.get(text + token) == fewest[text] - 1
        )
        ids.append(token_id)
    return ids


def greedy_spelling(value: bytes, tokens: Sequence[bytes | None]) -> list[int] | None:
    """Take the longest matching token each time, the lowest id among equals; None where that finds no token.

    It can fail on a value that has a spelling.
    """
    ids: list[int] = []
    rest = value
    while rest:
        matching = [token_id for token_id, token in enumerate(tokens) if token and rest.startswith(token)]
        if not matching:
            return None
        # Of equally long tokens, max keeps the first, which has the lowest id.
        token_id = max(matching, key=lambda token_id: len(tokens[token_id] or b""))
        ids.append(token_id)
        rest = rest.removeprefix(tokens[token_id] or b"")
    return ids


def unreachable_values(values: Iterable[bytes], tokens: Sequence[bytes | None]) -> list[bytes]:
    """The values that no sequence of tokens spells, in sorted order (law 7)."""
    return sorted(value for value in set(values) if b"" not in min_tokens([value], tokens))
