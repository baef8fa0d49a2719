"""Byte-pair encoding: the tree of merges of every token, and which token may follow which inside one pre-token.

A token is written by a byte-pair encoder only as the merges of its own bytes make it. Merges have ranks, and the one of
lowest rank, leftmost, is done first. Where a merge has a higher rank than those that made its two halves, ranks are a
clock, and two neighbours stay apart iff no merge across the joint would come before its two sides are merged into
something larger:

    u = .. x | y .. = v is joined iff a pair (x, y) with x on the right edge of u's tree and y on the left edge of v's
    has a rank below that of the merge that takes x into something larger, and not above that for y (which is further
    right, so that at equal rank the joint comes first).

So what may not follow u is a union of intervals of the tokens in the preorder of the tree in which each token hangs
below its left half, children by descending rank: ``apart_from`` marks them.
"""

from __future__ import annotations

import numpy as np

from .hashing import EMPTY, slot_of
from .jit import helper, kernel
from .strings import BYTES

NEVER = 2**31 - 1  # rank of a merge that is never done
NOT_WRITTEN = -2  # "rank" of a token that its bytes' merges do not make
SINGLE = -1  # "rank" of a single byte

PAIRS = "int64[::1], int32[::1], int32[::1]"  # keys, ranks, results: as ``pair_table`` makes them


@helper
def _place(keys, left, right):
    """Where in the table a pair is, or would be."""
    return slot_of(keys, (np.int64(left) << 32) | np.int64(right))


@kernel("Tuple((int64[::1], int32[::1], int32[::1]))(int32[::1], int32[::1], int32[::1], int32[::1])")
def pair_table(lefts, rights, ranks, results):
    """An open hash table of merges: of two with the same pair the later counts. O(merges)."""
    size = np.int64(16)
    while size < 2 * len(lefts) + 2:
        size *= 2
    keys = np.full(size, EMPTY, np.int64)
    own_ranks = np.full(size, NEVER, np.int32)
    own_results = np.full(size, np.int32(-1), np.int32)
    for k in range(len(lefts)):
        place = _place(keys, lefts[k], rights[k])
        keys[place] = (np.int64(lefts[k]) << 32) | np.int64(rights[k])
        own_ranks[place], own_results[place] = ranks[k], results[k]
    return keys, own_ranks, own_results


@helper
def _merged(symbols, count, keys, ranks, results, tree):
    """Do all merges in place; how many symbols are left. ``tree[k]``: (left, right, rank) of the merge k."""
    merges = 0
    while count > 1:
        best, at = np.int32(NEVER), -1
        for k in range(count - 1):
            rank = ranks[_place(keys, symbols[k], symbols[k + 1])]
            if rank < best:
                best, at = rank, k
        if at < 0:
            break
        result = results[_place(keys, symbols[at], symbols[at + 1])]
        tree[merges, 0], tree[merges, 1], tree[merges, 2] = symbols[at], symbols[at + 1], best
        merges += 1
        symbols[at] = result
        for k in range(at + 1, count - 1):
            symbols[k] = symbols[k + 1]
        count -= 1
    return count, merges


@kernel(
    "Tuple((int32[::1], int32[::1], int32[::1], uint8[::1]))"
    f"({BYTES}, int64[::1], uint8[::1], int32[::1], {PAIRS}, int32[::1], int32[::1], int32[::1], int32[::1])"
)
def merge_trees(
    data, offsets, is_piece, byte_tokens, keys, ranks, results, merge_lefts, merge_rights, merge_ranks, merge_results
):
    """How the merges make each token of its own bytes: its halves and the rank of the last merge, int32[V] each.

    The rank is ``SINGLE`` for a single byte and ``NOT_WRITTEN`` for a token that they do not make, or that is no piece.
    The last result, uint8[M], says which merges can ever be done: those of two written halves, with a higher rank than
    theirs. (One with a lower rank would turn the clock back. If other halves make its result, then these never stand
    side by side: what they are made of becomes the result before. Otherwise it is marked 2.)

    Args:
        data, offsets: the bytes of all tokens.
        is_piece: uint8[V], whether a token is one of the encoder's.
        byte_tokens: int32[256], the token of each single byte, -1 for none.
        keys, ranks, results: of ``pair_table``.
        merge_lefts, merge_rights, merge_ranks, merge_results: the merges one by one, int32[M].
    """
    count = len(offsets) - 1
    lefts = np.full(count, np.int32(-1), np.int32)
    rights = np.full(count, np.int32(-1), np.int32)
    births = np.full(count, np.int32(NOT_WRITTEN), np.int32)
    longest = np.int64(1)
    for token in range(count):
        longest = max(longest, offsets[token + 1] - offsets[token])
    symbols = np.empty(longest, np.int32)
    tree = np.empty((longest, 3), np.int32)
    for token in range(count):
        first, last = offsets[token], offsets[token + 1]
        if not is_piece[token] or first == last:
            continue
        is_spelled = True
        for k in range(last - first):
            symbols[k] = byte_tokens[data[first + k]]
            is_spelled &= symbols[k] >= 0
        if not is_spelled:
            continue
        left, merges = _merged(symbols, last - first, keys, ranks, results, tree)
        if left != 1 or symbols[0] != token:
            continue
        if merges == 0:
            births[token] = SINGLE
        else:
            lefts[token], rights[token], births[token] = tree[merges - 1, 0], tree[merges - 1, 1], tree[merges - 1, 2]
    kinds = np.zeros(len(merge_lefts), np.uint8)
    for k in range(len(merge_lefts)):
        one, other = births[merge_lefts[k]], births[merge_rights[k]]
        if one == NOT_WRITTEN or other == NOT_WRITTEN:
            continue
        if one < merge_ranks[k] and other < merge_ranks[k]:
            kinds[k] = 1
        else:
            result = merge_results[k]
            is_own = lefts[result] == merge_lefts[k] and rights[result] == merge_rights[k]
            if births[result] == NOT_WRITTEN or is_own:
                kinds[k] = 2
    return lefts, rights, births, kinds


@kernel("Tuple((int32[::1], int32[::1], int32[::1], int32[::1], int32[::1]))(int32[::1], int32[::1], int64[::1])")
def left_tree(lefts, births, by_rank):
    """The tree in which each token hangs below its left half, children by descending rank (``by_rank``: all tokens so).

    Returns int32 each: order[V'], the tokens that are written in preorder; places[V], where in it each is (-1 for
    others); and of the children of token t, ``links[t] .. links[t + 1]``, ranks and ends (one past its subtree).
    """
    count = len(lefts)
    links = np.zeros(count + 1, np.int32)
    for token in range(count):
        if lefts[token] >= 0:
            links[lefts[token] + 1] += 1
    for token in range(count):
        links[token + 1] += links[token]
    children = np.empty(links[count], np.int32)
    filled = links[:count].copy()
    for token in by_rank:
        parent = lefts[token]
        if parent >= 0:
            children[filled[parent]] = token
            filled[parent] += 1
    order = np.empty(count, np.int32)
    places = np.full(count, np.int32(-1), np.int32)
    ends = np.empty(len(children), np.int32)
    following = links[:count].copy()
    path = np.empty(count, np.int32)
    position = np.int32(0)
    for root in range(count):
        if births[root] != SINGLE:
            continue
        depth = 0
        path[0] = root
        order[position], places[root] = root, position
        position += 1
        while depth >= 0:
            token = path[depth]
            k = following[token]
            if k > links[token]:
                ends[k - 1] = position  # of the child that was just done
            if k == links[token + 1]:
                depth -= 1
                continue
            following[token] += 1
            depth += 1
            child = children[k]
            path[depth] = child
            order[position], places[child] = child, position
            position += 1
    child_ranks = births[children]
    return order[:position].copy(), places, links, child_ranks, ends


@kernel(
    "uint8[::1](int64, int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1], int32[::1],"
    " int32[::1], int32[::1])"
)
def apart_from(
    token, rights, births, merge_links, merge_rights, merge_ranks, order, places, child_links, child_ranks, child_ends
):
    """Which tokens may not follow ``token`` inside a pre-token: uint8[V]. O(merges of its right edge + those tokens).

    Args:
        rights, births: of ``merge_trees``.
        merge_links, merge_rights, merge_ranks: the merges by their left half.
        order, places, child_links, child_ranks, child_ends: of ``left_tree``.
    """
    marks = np.zeros(len(rights), np.uint8)
    changes = np.zeros(len(order) + 1, np.int32)
    taken = np.int32(NEVER)  # the rank of the merge that takes the half into something larger
    half = np.int64(token)
    while half >= 0:
        for k in range(merge_links[half], merge_links[half + 1]):
            rank = merge_ranks[k]
            right = merge_rights[k]
            if rank >= taken or places[right] < 0:
                continue
            begin = places[right]
            end = begin + 1
            low, high = child_links[right], child_links[right + 1]
            while low < high:  # the first child that is made before this merge
                middle = (low + high) >> 1
                if child_ranks[middle] >= rank:
                    low = middle + 1
                else:
                    high = middle
            if low > child_links[right]:
                end = child_ends[low - 1]
            changes[begin] += 1
            changes[end] -= 1
        taken = births[half]
        half = np.int64(rights[half])
    depth = np.int32(0)
    for k in range(len(order)):
        depth += changes[k]
        if depth > 0:
            marks[order[k]] = 1
    return marks


@helper
def are_apart(left, right, lefts, rights, births, keys, ranks):
    """Whether two tokens may not stand side by side inside a pre-token. O(product of the edges of their trees)."""
    half, taken = np.int64(left), np.int32(NEVER)
    while half >= 0:
        other, other_taken = np.int64(right), np.int32(NEVER)
        while other >= 0:
            rank = ranks[_place(keys, half, other)]
            if (
                rank < taken
                and rank <= other_taken
                and births[half] != NOT_WRITTEN
                and births[other] != NOT_WRITTEN
                and births[half] < rank
                and births[other] < rank
            ):
                return True
            other_taken = births[other]
            other = np.int64(lefts[other])
        taken = births[half]
        half = np.int64(rights[half])
    return False


@kernel("int64(int64, int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1], int64[::1], int32[::1])")
def first_beside(token, tokens, is_wanted, lefts, rights, births, keys, ranks):
    """The place of the first wanted one of ``tokens`` that may follow ``token`` inside a pre-token; -1 if none may.

    Args:
        lefts, rights, births: of ``merge_trees``.
        keys, ranks: of ``pair_table``.
    """
    for k in range(len(tokens)):
        if is_wanted[k] and not are_apart(token, tokens[k], lefts, rights, births, keys, ranks):
            return np.int64(k)
    return np.int64(-1)
