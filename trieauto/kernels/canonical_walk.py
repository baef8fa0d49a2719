"""A language followed together with how a tokenizer splits texts: states (q, s, p).

q is the language's state, s the splitting automaton's (``canonical.splitting``), p the UTF-8 decoder's
(``canonical.characters``), 0 between characters: those are the nodes. Languages are edge lists (see ``edges``).
"""

from __future__ import annotations

import numpy as np

from .byte_pairs import are_apart
from .edges import find_edge
from .graph import turned_round
from .hashing import EMPTY, slot_of
from .jit import helper, kernel
from .token_trie import BASE, CHECK, FIRST, FIRST_CHILD, LAST, NEXT_SIBLING
from .walk import DISTANCES, TOKEN_TRIE, enlarged

NOWHERE = -1
FULL = 1  # there were more nodes or edges than allowed
MOST_ROUNDS = 32
UNBOUNDED = 2**40  # tokens

LANGUAGE = "uint8[::1], int32[::1], int32[::1]"
SPLITTING = "int32[:, ::1], int32[:, ::1]"  # decode, steps


@helper
def _grown(keys, numbers):
    """The table with room for four times as much."""
    larger_keys = np.full(4 * len(keys), EMPTY, np.int64)
    larger_numbers = np.empty(4 * len(keys), np.int32)
    for old in range(len(keys)):
        if keys[old] != EMPTY:
            slot = slot_of(larger_keys, keys[old])
            larger_keys[slot], larger_numbers[slot] = keys[old], numbers[old]
    return larger_keys, larger_numbers


@helper
def _moved(decode, steps, split, partial, byte):
    """Where a byte leads the splitting automaton and the decoder; the first is ``NOWHERE`` if it leads nowhere."""
    code = decode[partial, byte]
    if code >= 0:
        return np.int64(split), np.int64(code)
    if code == NOWHERE:
        return np.int64(NOWHERE), np.int64(0)
    return np.int64(steps[split, -2 - code]), np.int64(0)


@helper
def _characters_from(labels, links, targets, decode, state, pairs, pair_keys, found, found_keys):
    """The classes of characters that may follow in a state of the language, the states after them, and the fewest bytes
    of such a character, once each, in ``found``; how many, or -1 if there is not enough room. ``pairs``: working space;
    the tables' keys must be empty and are left so."""
    num_partials = np.int64(len(decode))
    count = 0
    waiting, done = 1, 0
    pairs[0, 0], pairs[0, 1], pairs[0, 2] = state, 0, 0
    while done < waiting:  # shorter ones first
        now, partial, num_bytes = np.int64(pairs[done, 0]), np.int64(pairs[done, 1]), np.int64(pairs[done, 2]) + 1
        done += 1
        for edge in range(links[now], links[now + 1]):
            code = np.int64(decode[partial, labels[edge]])
            if code == NOWHERE:
                continue
            target = np.int64(targets[edge])
            if code >= 0:
                key = target * num_partials + code
                slot = slot_of(pair_keys, key)
                if pair_keys[slot] == EMPTY:
                    if 2 * waiting >= len(pair_keys) or waiting >= len(pairs):
                        count = -1
                        break
                    pair_keys[slot] = key
                    pairs[waiting, 0], pairs[waiting, 1], pairs[waiting, 2] = target, code, num_bytes
                    waiting += 1
            else:
                key = (target << 20) | (-2 - code)
                slot = slot_of(found_keys, key)
                if found_keys[slot] == EMPTY:
                    if 2 * count >= len(found_keys) or count >= len(found):
                        count = -1
                        break
                    found_keys[slot] = key
                    found[count, 0], found[count, 1], found[count, 2] = -2 - code, target, num_bytes
                    count += 1
        if count < 0:
            break
    pair_keys[:] = EMPTY
    found_keys[:] = EMPTY
    return count


@kernel(
    f"Tuple((int32[:, ::1], int64[::1], int32[::1], uint8[::1], int64, int64))"
    f"({LANGUAGE}, uint8[::1], {SPLITTING}, int32[::1], int32[::1], uint8[::1], int32[:, ::1], uint8[::1], int64[::1],"
    " int64, int64, int64, int64)"
)
def explore(
    labels, links, targets, accepting, decode, steps, cuts, boths, finals, atoms, atom_data, atom_offsets,
    start, start_split, max_nodes, max_edges,
):  # fmt: skip
    """All nodes (q, s) that texts lead to from (start, start_split) between characters, and whether the end can be
    reached from each.

    Args:
        cuts, boths, finals, atoms: of ``canonical.splitting.Splitting``.
        atom_data, atom_offsets: the bytes of the tokens that are not made by merges.

    Returns:
        nodes int32[N, 2]; a hash table of them, keys int64 (``q * S + s``) and numbers int32; whether each is live,
        uint8[N]; a number of tokens that is enough from each live one, if each takes one byte; and ``FULL`` if there
        are more nodes than allowed (then the rest means nothing), else 0.
    """
    num_splits = np.int64(len(steps))
    nodes = np.empty((1024, 2), np.int32)
    keys = np.full(4096, EMPTY, np.int64)
    numbers = np.empty(4096, np.int32)
    succ_links = np.zeros(1025, np.int64)
    successors = np.empty(8192, np.int32)
    costs = np.empty(8192, np.uint8)  # tokens of one byte each
    last_seen = np.full(1024, np.int32(-1), np.int32)
    # For each state of the language the characters that may follow: made when first needed.
    char_first = np.full(len(links) - 1, np.int64(-1), np.int64)
    char_last = np.zeros(len(links) - 1, np.int64)
    chars = np.empty((1024, 3), np.int32)
    num_chars = np.int64(0)
    pairs = np.empty((1024, 3), np.int32)
    pair_keys = np.full(2048, EMPTY, np.int64)
    found = np.empty((1024, 3), np.int32)
    found_keys = np.full(2048, EMPTY, np.int64)

    count, done, num_edges = np.int64(1), np.int64(0), np.int64(0)
    nodes[0, 0], nodes[0, 1] = start, start_split
    slot = slot_of(keys, start * num_splits + start_split)
    keys[slot], numbers[slot] = start * num_splits + start_split, 0
    num_atoms = len(atom_offsets) - 1
    while done < count:
        state, split = np.int64(nodes[done, 0]), np.int64(nodes[done, 1])
        if char_first[state] < 0:
            while True:
                size = _characters_from(labels, links, targets, decode, state, pairs, pair_keys, found, found_keys)
                if size >= 0:
                    break
                pairs, found = np.empty((2 * len(pairs), 3), np.int32), np.empty((2 * len(found), 3), np.int32)
                pair_keys = np.full(2 * len(pair_keys), EMPTY, np.int64)
                found_keys = np.full(2 * len(found_keys), EMPTY, np.int64)
            while num_chars + size > len(chars):
                more_chars = np.empty((2 * len(chars), 3), np.int32)
                more_chars[:num_chars] = chars[:num_chars]
                chars = more_chars
            chars[num_chars : num_chars + size] = found[:size]
            char_first[state], char_last[state] = num_chars, num_chars + size
            num_chars += size
        first, last = char_first[state], char_last[state]
        for k in range(first - 2 - num_atoms, last):
            new_state = state
            if k >= first:
                new_state, new_split = np.int64(chars[k, 1]), np.int64(steps[split, chars[k, 0]])
            elif k == first - 1:
                new_split = np.int64(cuts[split])
            elif k == first - 2:
                new_split = np.int64(boths[split])
            else:
                atom = k - (first - 2 - num_atoms)
                new_split = np.int64(atoms[split, atom])
                for at in range(atom_offsets[atom], atom_offsets[atom + 1]):
                    edge = find_edge(labels, links, new_state, np.int64(atom_data[at]))
                    if edge < 0:
                        new_split = np.int64(NOWHERE)
                        break
                    new_state = np.int64(targets[edge])
            if new_split < 0:
                continue
            key = new_state * num_splits + new_split
            slot = slot_of(keys, key)
            if keys[slot] == EMPTY:
                if count == max_nodes:
                    return nodes[:0], keys[:0], numbers[:0], np.zeros(0, np.uint8), np.int64(0), np.int64(FULL)
                if 2 * count >= len(keys):
                    keys, numbers = _grown(keys, numbers)
                    slot = slot_of(keys, key)
                if count == len(nodes):
                    more_nodes = np.empty((2 * count, 2), np.int32)
                    more_nodes[:count] = nodes
                    nodes = more_nodes
                    more_links = np.zeros(2 * count + 1, np.int64)
                    more_links[: count + 1] = succ_links
                    succ_links = more_links
                    more_seen = np.full(2 * count, np.int32(-1), np.int32)
                    more_seen[:count] = last_seen
                    last_seen = more_seen
                nodes[count, 0], nodes[count, 1] = new_state, new_split
                keys[slot], numbers[slot] = key, count
                count += 1
            number = numbers[slot]
            if last_seen[number] != done:
                last_seen[number] = done
                if num_edges == max_edges:
                    return nodes[:0], keys[:0], numbers[:0], np.zeros(0, np.uint8), np.int64(0), np.int64(FULL)
                if num_edges == len(successors):
                    successors = enlarged(successors, num_edges)
                    costs = enlarged(costs, num_edges)
                successors[num_edges] = number
                costs[num_edges] = chars[k, 2] if k >= first else 0 if k >= first - 2 else 1
                num_edges += 1
        done += 1
        succ_links[done] = num_edges
    live = _live(nodes, count, accepting, finals, succ_links, successors)
    most = _most_tokens(nodes, accepting, finals, live, succ_links, successors, costs)
    return nodes[:count].copy(), keys, numbers, live, most, np.int64(0)


@helper
def _live(nodes, count, accepting, finals, succ_links, successors):
    """From which nodes a way leads to where the text may end: uint8[N]."""
    back_links, back = turned_round(succ_links[: count + 1], successors)
    live = np.zeros(count, np.uint8)
    waiting = np.empty(count, np.int32)
    num_waiting = 0
    for node in range(count):
        if accepting[nodes[node, 0]] and finals[nodes[node, 1]]:
            live[node] = 1
            waiting[num_waiting] = node
            num_waiting += 1
    while num_waiting > 0:
        num_waiting -= 1
        node = waiting[num_waiting]
        for k in range(back_links[node], back_links[node + 1]):
            source = back[k]
            if not live[source]:
                live[source] = 1
                waiting[num_waiting] = source
                num_waiting += 1
    return live


@helper
def _most_tokens(nodes, accepting, finals, live, succ_links, successors, costs):
    """Enough tokens from every live node, if each takes one byte. Nodes mostly lead to later ones, so few rounds, from
    the last to the first, find the cheapest ways; with fewer than it takes the bound is a higher one."""
    count = len(live)
    enough = np.full(count, np.int64(UNBOUNDED), np.int64)
    for node in range(count):
        if accepting[nodes[node, 0]] and finals[nodes[node, 1]]:
            enough[node] = 0
    for _ in range(MOST_ROUNDS):
        is_stable = True
        for node in range(count - 1, -1, -1):
            if not live[node]:
                continue
            for k in range(succ_links[node], succ_links[node + 1]):
                least = enough[successors[k]] + costs[k]
                if least < enough[node]:
                    enough[node] = least
                    is_stable = False
        if is_stable:
            break
    most = np.int64(0)
    for node in range(count):
        if live[node]:
            most = max(most, enough[node])
    return most


@kernel("int32[::1](int64[::1], int32[::1], uint8[::1], int64[::1])")
def numbers_of(keys, numbers, live, wanted):
    """The numbers of nodes by their keys; ``NOWHERE`` for one that no text leads to, or that is not live: int32."""
    found = np.full(len(wanted), np.int32(NOWHERE), np.int32)
    for k in range(len(wanted)):
        if wanted[k] < 0:
            continue
        slot = slot_of(keys, wanted[k])
        if keys[slot] == wanted[k] and live[numbers[slot]]:
            found[k] = numbers[slot]
    return found


@kernel(f"boolean({LANGUAGE}, {SPLITTING}, int64[::1], int32[::1], uint8[::1], int64, int64, int64)")
def is_live_inside(labels, links, targets, decode, steps, keys, numbers, live, state, split, partial):
    """Whether some end of a character leads to a live node."""
    stack = np.empty((1024, 2), np.int64)
    stack[0, 0], stack[0, 1] = state, partial
    depth = 1
    while depth > 0:
        depth -= 1
        now, part = stack[depth, 0], stack[depth, 1]
        for edge in range(links[now], links[now + 1]):
            new_split, new_partial = _moved(decode, steps, split, part, labels[edge])
            if new_split < 0:
                continue
            if new_partial != 0:
                stack[depth, 0], stack[depth, 1] = targets[edge], new_partial
                depth += 1
                continue
            key = np.int64(targets[edge]) * len(steps) + new_split
            slot = slot_of(keys, key)
            if keys[slot] == key and live[numbers[slot]]:
                return True
    return False


@helper
def _completion(
    labels, links, targets, decode, steps, keys, numbers, wanted, byte_tokens, lefts, rights, births, pair_keys, ranks,
    token, state, split, partial, stack,
):  # fmt: skip
    """``completion``, with working space int64[1024, 5]."""
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = state, split, partial, token, 0
    depth = 1
    while depth > 0:
        depth -= 1
        now, now_split, now_partial = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        last, count = stack[depth, 3], stack[depth, 4] + 1
        for edge in range(links[now], links[now + 1]):
            following = np.int64(byte_tokens[labels[edge]])
            if following < 0:
                continue
            new_split, new_partial = _moved(decode, steps, now_split, now_partial, labels[edge])
            if new_split < 0 or are_apart(last, following, lefts, rights, births, pair_keys, ranks):
                continue
            target = np.int64(targets[edge])
            if new_partial != 0:
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = target, new_split, new_partial
                stack[depth, 3], stack[depth, 4] = following, count
                depth += 1
                continue
            key = target * len(steps) + new_split
            slot = slot_of(keys, key)
            if keys[slot] == key and wanted[numbers[slot]]:
                return count, np.int64(numbers[slot])
    return np.int64(-1), np.int64(-1)


BYTES = "int32[::1], int32[::1], int32[::1], int32[::1], int64[::1], int32[::1]"  # byte tokens, and of are_apart


@kernel(
    f"UniTuple(int64, 2)({LANGUAGE}, {SPLITTING}, int64[::1], int32[::1], uint8[::1], {BYTES}, int64, int64, int64,"
    " int64)"
)
def completion(
    labels, links, targets, decode, steps, keys, numbers, wanted, byte_tokens, lefts, rights, births, pair_keys, ranks,
    token, state, split, partial,
):  # fmt: skip
    """Single bytes that complete a character after a token, from (q, s, p) inside it, to a node that is wanted.

    Args:
        keys, numbers: of ``explore``.
        wanted: uint8[N], which nodes are.
        byte_tokens: int32[256], the token of each byte; -1.
        lefts, rights, births, pair_keys, ranks: of ``byte_pairs.are_apart``.

    Returns:
        How many tokens, and the node; -1 twice if it cannot be done this way (another may do).
    """
    stack = np.empty((1024, 5), np.int64)  # q, s, p, the last token, how many there are
    return _completion(
        labels, links, targets, decode, steps, keys, numbers, wanted, byte_tokens, lefts, rights, births, pair_keys,
        ranks, token, state, split, partial, stack,
    )  # fmt: skip


@kernel(
    f"Tuple((int32[:, ::1], uint8[::1]))({LANGUAGE}, {SPLITTING}, int64[::1], int32[::1], uint8[::1], {BYTES},"
    " Array(uint8, 1, 'C', readonly=True), int64[::1], int32[::1], int64, int64, int64)"
)
def token_ends(
    labels, links, targets, decode, steps, keys, numbers, wanted, byte_tokens, lefts, rights, births, pair_keys, ranks,
    token_data, token_offsets, tokens, state, split, partial,
):  # fmt: skip
    """Where some tokens that merges make lead from (q, s, p) inside a pre-token: int32[T, 3], q ``NOWHERE`` for one
    that leads nowhere; and whether single bytes complete the character that one ends in (see ``completion``),
    uint8[T]."""
    ends = np.full((len(tokens), 3), np.int32(NOWHERE), np.int32)
    is_completed = np.zeros(len(tokens), np.uint8)
    stack = np.empty((1024, 5), np.int64)
    for k in range(len(tokens)):
        now, now_split, now_partial = state, split, partial
        for at in range(token_offsets[tokens[k]], token_offsets[tokens[k] + 1]):
            edge = find_edge(labels, links, now, np.int64(token_data[at]))
            if edge < 0:
                now = np.int64(NOWHERE)
                break
            now_split, now_partial = _moved(decode, steps, now_split, now_partial, token_data[at])
            if now_split < 0:
                now = np.int64(NOWHERE)
                break
            now = np.int64(targets[edge])
        if now < 0:
            continue
        ends[k, 0], ends[k, 1], ends[k, 2] = now, now_split, now_partial
        if now_partial != 0:
            count, _ = _completion(
                labels, links, targets, decode, steps, keys, numbers, wanted, byte_tokens, lefts, rights, births,
                pair_keys, ranks, np.int64(tokens[k]), now, now_split, now_partial, stack,
            )  # fmt: skip
            is_completed[k] = count > 0
    return ends, is_completed


@helper
def _next_edge(labels, links, nodes, siblings, stack, depth):
    """Of the slot of the token trie and the state of the language at a depth of a walk the next child and the edge with
    its byte, -1 if there is none of these; ``stack``: int64[depths, slot and next byte (-1 for none) and state, ...].
    """
    slot, byte = stack[depth, 0], stack[depth, 1]
    child = np.int64(nodes[slot, BASE]) + byte
    following = np.int64(siblings[child, NEXT_SIBLING])
    stack[depth, 1] = following if following != 0 else -1
    if nodes[child, CHECK] != slot:
        return child, np.int64(-1)
    return child, np.int64(find_edge(labels, links, stack[depth, 2], byte))


@kernel(
    f"Tuple((int32[::1], int32[:, ::1]))({LANGUAGE}, {SPLITTING}, {TOKEN_TRIE}, uint8[::1], int64, int64, int64, int64)"
)
def tokens_within(
    labels, links, targets, decode, steps, nodes, siblings, token_ids, is_written, max_token_length, state, split,
    partial,
):  # fmt: skip
    """The tokens that go on from (q, s, p) without beginning a new piece inside: int32[T], in the order of their bytes;
    and where they lead, int32[T, 3]. Tokens that merges never make are left out."""
    tokens = np.empty(256, np.int32)
    ends = np.empty((256, 3), np.int32)
    count = np.int64(0)
    stack = np.empty((max_token_length + 2, 5), np.int64)  # slot, next byte (-1 for none), q, s, p
    stack[0, 0], stack[0, 2], stack[0, 3], stack[0, 4] = 0, state, split, partial
    stack[0, 1] = siblings[0, FIRST_CHILD] if nodes[0, BASE] != 0 else -1
    depth = 0
    while depth >= 0:
        if stack[depth, 1] < 0:
            depth -= 1
            continue
        child, edge = _next_edge(labels, links, nodes, siblings, stack, depth)
        if edge < 0:
            continue
        new_split, new_partial = _moved(decode, steps, stack[depth, 3], stack[depth, 4], labels[edge])
        if new_split < 0:
            continue
        target = np.int64(targets[edge])
        for k in range(nodes[child, FIRST], nodes[child, LAST]):
            if not is_written[token_ids[k]]:
                continue
            if count == len(tokens):
                tokens = enlarged(tokens, count)
                more = np.empty((len(tokens), 3), np.int32)
                more[:count] = ends
                ends = more
            tokens[count] = token_ids[k]
            ends[count, 0], ends[count, 1], ends[count, 2] = target, new_split, new_partial
            count += 1
        if nodes[child, BASE] != 0:
            depth += 1
            stack[depth, 0], stack[depth, 1] = child, siblings[child, FIRST_CHILD]
            stack[depth, 2], stack[depth, 3], stack[depth, 4] = target, new_split, new_partial
    return tokens[:count].copy(), ends[:count].copy()


@kernel(f"UniTuple(int64, 2)({LANGUAGE}, {DISTANCES}, {TOKEN_TRIE}, int64, int64)")
def closer_token(labels, links, targets, distances, nodes, siblings, token_ids, max_token_length, state):
    """A token that leads from a state of the language to one with the end a token closer, and that state; the end must
    be in reach, and not here."""
    wanted = distances[state] - 1
    stack = np.empty((max_token_length + 2, 3), np.int64)  # slot, next byte (-1 for none), q
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, siblings[0, FIRST_CHILD], state
    depth = 0
    while depth >= 0:
        if stack[depth, 1] < 0:
            depth -= 1
            continue
        child, edge = _next_edge(labels, links, nodes, siblings, stack, depth)
        if edge < 0:
            continue
        target = np.int64(targets[edge])
        if distances[target] == wanted and nodes[child, FIRST] < nodes[child, LAST]:
            return np.int64(token_ids[nodes[child, FIRST]]), target
        if nodes[child, BASE] != 0:
            depth += 1
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = child, siblings[child, FIRST_CHILD], target
    return np.int64(NOWHERE), np.int64(state)
