"""Whether arrays that come from a file are what was written, and safe for kernels, which trust what they are given."""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel("int64(int64[::1])")
def checksum(words):
    """A number that changes if any word does, or if two change places. Not a secret. Some bytes a cycle."""
    one = two = three = four = np.int64(1469598103934665603)
    factor = np.int64(1099511628211)
    whole = len(words) - len(words) % 4
    for k in range(0, whole, 4):
        one = (one ^ words[k]) * factor
        two = (two ^ words[k + 1]) * factor
        three = (three ^ words[k + 2]) * factor
        four = (four ^ words[k + 3]) * factor
    for k in range(whole, len(words)):
        one = (one ^ words[k]) * factor
    result = np.int64(len(words))
    for lane in (one, two, three, four):
        result = ((result ^ lane) * factor) ^ (lane >> 29)
    return result


@kernel("boolean(int32[::1], int64, int64)")
def is_within_bounds(numbers, low, high):
    """Whether all are ``low`` to ``high``."""
    least, most = np.int32(2**31 - 1), np.int32(-(2**31))
    for number in numbers:
        least = min(least, number)
        most = max(most, number)
    return len(numbers) == 0 or (least >= low and most <= high)


@kernel("boolean(int32[::1])")
def ascends(numbers):
    """Whether no number is smaller than the one before."""
    count = 0
    for k in range(1, len(numbers)):
        count += numbers[k] < numbers[k - 1]
    return count == 0


@kernel("boolean(int64[::1], int64)")
def are_offsets(offsets, length):
    """Whether these are the places at which strings begin in ``length`` bytes, and that length."""
    count = 0
    for k in range(1, len(offsets)):
        count += offsets[k] < offsets[k - 1]
    return count == 0 and len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == length


@kernel("boolean(int32[::1])")
def are_subtree_ends(links):
    """Whether every state's subtree ends behind it, and none behind the last state."""
    count = 0
    for state in range(len(links)):
        count += links[state] <= state or links[state] > len(links)
    return count == 0 and len(links) > 0 and links[0] == len(links)
