"""Sorting packed byte strings: ``data`` holds them end to end, string ``i`` is ``data[offsets[i]:offsets[i + 1]]``."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel

BYTES = "Array(uint8, 1, 'C', readonly=True)"  # ``bytes`` are read in place; writable arrays are taken too


@kernel(f"int64[::1]({BYTES}, int64[::1])")
def byte_offsets(data, char_counts):
    """Where each of the strings begins in their joined UTF-8 form, from their lengths in characters.

    ``data`` uint8[B], ``char_counts`` int64[K]; returns int64[K + 1]. O(B).
    """
    offsets = np.empty(len(char_counts) + 1, np.int64)
    position = 0
    for i in range(len(char_counts)):
        offsets[i] = position
        for _ in range(char_counts[i]):
            lead = data[position]
            position += 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    offsets[len(char_counts)] = position
    return offsets


@helper
def _chunk(data, begin, end):
    """The next eight bytes as a number that orders as they do; a shorter rest is padded with zeros."""
    key = np.uint64(0)
    if end - begin >= 8:
        for k in range(8):
            key = (key << np.uint64(8)) | np.uint64(data[begin + k])
        return key
    for k in range(begin, end):
        key = (key << np.uint64(8)) | np.uint64(data[k])
    return key << np.uint64(8 * (8 - (end - begin)))


@helper
def _insertion_sort(keys, order, low, high):
    for i in range(low + 1, high):
        key = keys[i]
        index = order[i]
        j = i - 1
        while j >= low and keys[j] > key:
            keys[j + 1] = keys[j]
            order[j + 1] = order[j]
            j -= 1
        keys[j + 1] = key
        order[j + 1] = index


@helper
def _radix_sort(keys, order, low, high, spare_keys, spare_order):
    """Least significant byte first; bytes that are the same everywhere cost one look."""
    differing = np.uint64(0)
    first = keys[low]
    for i in range(low, high):
        differing |= keys[i] ^ first
    counts = np.empty(256, np.int64)
    for digit in range(8):
        shift = np.uint64(8 * digit)
        if (differing >> shift) & np.uint64(255) == 0:
            continue
        for value in range(256):
            counts[value] = 0
        for i in range(low, high):
            counts[(keys[i] >> shift) & np.uint64(255)] += 1
        position = low
        for value in range(256):
            count = counts[value]
            counts[value] = position
            position += count
        for i in range(low, high):
            value = (keys[i] >> shift) & np.uint64(255)
            spare_keys[counts[value]] = keys[i]
            spare_order[counts[value]] = order[i]
            counts[value] += 1
        for i in range(low, high):
            keys[i] = spare_keys[i]
            order[i] = spare_order[i]


@helper
def _quick_sort(keys, order, low, high):
    """Iterative, smaller side first; for groups too small for counting passes."""
    lows = np.empty(64, np.int64)
    highs = np.empty(64, np.int64)
    top = 0
    lows[0], highs[0] = low, high
    while top >= 0:
        low, high = lows[top], highs[top]
        top -= 1
        while high - low > 16:
            a, b, c = keys[low], keys[(low + high) >> 1], keys[high - 1]
            if a > b:
                a, b = b, a
            pivot = a if c < a else b if c > b else c  # the middle one of three
            i, j = low, high - 1
            while i <= j:
                while keys[i] < pivot:
                    i += 1
                while keys[j] > pivot:
                    j -= 1
                if i <= j:
                    key = keys[i]
                    keys[i] = keys[j]
                    keys[j] = key
                    index = order[i]
                    order[i] = order[j]
                    order[j] = index
                    i += 1
                    j -= 1
            if j + 1 - low < high - i:
                top += 1
                lows[top], highs[top] = i, high
                high = j + 1
            else:
                top += 1
                lows[top], highs[top] = low, j + 1
                low = i
        _insertion_sort(keys, order, low, high)


@helper
def _settle_ended(data, offsets, order, keys, low, high, depth):
    """Within a group of equal chunks, put the strings that end in this chunk first; returns how far they go.

    They differ in nothing but trailing zero bytes, so they are ordered by length; equal ones by their index, so
    that the first given of several duplicates is the first.
    """
    ended = low
    for i in range(low, high):
        index = order[i]
        if offsets[index + 1] - offsets[index] <= depth + 8:
            order[i] = order[ended]
            order[ended] = index
            ended += 1
    for i in range(low, ended):
        index = order[i]
        keys[i] = (np.uint64(offsets[index + 1] - offsets[index]) << np.uint64(32)) | np.uint64(index)
    if ended - low > 1:
        _quick_sort(keys, order, low, ended)
    return ended


@kernel(f"int64({BYTES}, int64[::1])")
def shared_prefix(data, offsets):
    """How many bytes all of the strings begin with."""
    shared = offsets[1] - offsets[0]
    for i in range(1, len(offsets) - 1):
        shared = min(shared, offsets[i + 1] - offsets[i])
        k = np.int64(0)
        while k < shared and data[offsets[i] + k] == data[offsets[0] + k]:
            k += 1
        shared = k
        if shared == 0:
            break
    return shared


@kernel(f"Tuple((int32[::1], int64[::1]))({BYTES}, int64[::1], int64, int64)")
def split_by_rank(data, offsets, depth, num_parts):
    """Split the strings into parts of about the same size, each part's strings before the next one's.

    By the eight bytes after the first ``depth``, which all share. Returns the indices int32[K], part after part, and
    where the parts begin int64[num_parts + 1].
    """
    count = len(offsets) - 1
    sample_size = min(count, 64 * num_parts)
    sample = np.empty(sample_size, np.uint64)
    indices = np.empty(sample_size, np.int32)
    for k in range(sample_size):
        indices[k] = k * count // sample_size
        sample[k] = _chunk(data, offsets[indices[k]] + depth, offsets[indices[k] + 1])
    _insertion_sort(sample, indices, 0, sample_size)
    part_of = np.empty(count, np.uint8)
    begins = np.zeros(num_parts + 1, np.int64)
    for i in range(count):
        key = _chunk(data, offsets[i] + depth, offsets[i + 1])
        part = 0
        while part < num_parts - 1 and key >= sample[(part + 1) * sample_size // num_parts]:
            part += 1
        part_of[i] = part
        begins[part + 1] += 1
    for part in range(num_parts):
        begins[part + 1] += begins[part]
    order = np.empty(count, np.int32)
    places = begins.copy()
    for i in range(count):
        order[places[part_of[i]]] = i
        places[part_of[i]] += 1
    return order, begins


@kernel(f"void({BYTES}, int64[::1], int32[::1], int64)")
def sort_strings(data, offsets, order, depth):
    """Sort ``order``, indices of packed strings that share their first ``depth`` bytes, by the strings' bytes.

    Eight bytes at a time, most significant first; equal strings by their index.
    ``data`` uint8[B], ``offsets`` int64[K + 1], ``order`` int32[n], changed in place. O(B + n log n).
    """
    count = len(order)
    keys = np.empty(count, np.uint64)
    is_sorted = True
    for i in range(count):
        keys[i] = _chunk(data, offsets[order[i]] + depth, offsets[order[i] + 1])
        is_sorted = is_sorted and (i == 0 or keys[i - 1] < keys[i])
    if is_sorted:
        return
    large = 2048  # from here on eight counting passes beat comparing
    spare_keys = np.empty(count if count > large else 0, np.uint64)
    spare_order = np.empty(count if count > large else 0, np.int32)
    stack = np.empty(3 * 64, np.int64)  # groups yet to be sorted: where they begin and end, the depth
    stack[0], stack[1], stack[2] = 0, count, depth
    begin_depth = depth
    top = 0
    while top >= 0:
        low, high, depth = stack[3 * top], stack[3 * top + 1], stack[3 * top + 2]
        top -= 1
        if depth > begin_depth:
            for i in range(low, high):
                index = order[i]
                keys[i] = _chunk(data, offsets[index] + depth, offsets[index + 1])
        if high - low > large:
            _radix_sort(keys, order, low, high, spare_keys, spare_order)
        else:
            _quick_sort(keys, order, low, high)
        group = low
        for i in range(low + 1, high + 1):
            if i < high and keys[i] == keys[group]:
                continue
            if i - group > 1:
                rest = _settle_ended(data, offsets, order, keys, group, i, depth)
                if i - rest > 1:
                    top += 1
                    if 3 * top == len(stack):
                        larger = np.empty(2 * len(stack), np.int64)
                        for k in range(len(stack)):
                            larger[k] = stack[k]
                        stack = larger
                    stack[3 * top], stack[3 * top + 1], stack[3 * top + 2] = rest, i, depth + 8
            group = i


@kernel(f"void({BYTES}, int64[::1], int32[::1], int64[::1], int64, int64)")
def common_prefixes(data, offsets, order, shared, begin, end):
    """For each of the strings ``order[begin:end]``, how many bytes it shares with the one before it in ``order``.

    -1 if it equals it; 0 for the first of all. ``order`` int32[K]; written to ``shared`` int64[K]. O(B).
    """
    for i in range(begin, end):
        if i == 0:
            shared[0] = 0
            continue
        a, b = offsets[order[i - 1]], offsets[order[i]]
        length_a, length_b = offsets[order[i - 1] + 1] - a, offsets[order[i] + 1] - b
        limit = min(length_a, length_b)
        k = 0
        while k < limit and data[a + k] == data[b + k]:
            k += 1
        shared[i] = -1 if k == length_a and k == length_b else k
