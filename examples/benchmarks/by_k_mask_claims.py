"""What the trie paper claims about one mask by K, judged by one run."""

from __future__ import annotations

from by_k_paper import MASK
from by_k_run import CANONICAL, GENRE, LLGUIDANCE, OUTLINES, TRIE, XGRAMMAR, ByK, Lines, at, growth, missing_sizes
from judging import judged
from results import Claim
from wording import duration, span, times


def mask_claims(by_k: ByK) -> list[Claim]:
    """One for each claim. Those that need sizes which the run did not have say so."""
    masks = by_k.medians(by_k.masks)
    return [
        _flat_masks(masks),
        _masks_of_xgrammar(masks),
        _masks_of_llguidance(masks),
        _masks_of_token_trie(masks),
        _equal_masks(by_k),
    ]


def _flat_masks(masks: Lines) -> Claim:
    where, says = "Table 4, section 4.2", "A mask costs the same whatever K is."
    reported = "0.65 µs at K=10 to 10,000"
    line = masks[TRIE]
    missing = missing_sizes(where, says, reported, [10, 10_000], line)
    if missing:
        return missing
    to_10k, to_all = growth(line, 10_000), growth(line, max(line))
    own = span(list(masks["trieauto, own buffers"].values()), duration)
    ratios = [line[count] / seconds for count, seconds in masks.get(OUTLINES, {}).items()]
    outlines = f"Over outlines-core's, where it compiles at all: {span(ratios)}." if ratios else ""
    return Claim(
        "trie", where, says, reported,
        f"{at(line, sorted(line))} into a numpy row; {own} into buffers that remember their words",
        judged(to_10k <= 1.5, in_part=to_10k <= 3),
        f"The largest is {times(to_10k)} the smallest up to 10,000, {times(to_all)} over all K; called from Python, "
        f"along 64 values. {outlines}",
        order=4.1,
    )  # fmt: skip


def _masks_of_xgrammar(masks: Lines) -> Claim:
    where, says = "Table 4", "A mask is about 7 to 9 times as fast as XGrammar's, which is slowest at K=10."
    reported = "XGrammar 9.5 µs at 10, 5.4 µs at 100, 5.8 µs at 1,000"
    ours, peer = masks[TRIE], masks[XGRAMMAR]
    missing = missing_sizes(where, says, reported, [10, 100, 1_000, 10_000], peer)
    if missing:
        return missing
    ratios = {count: peer[count] / ours[count] for count in sorted(peer)}
    small = [ratio for count, ratio in ratios.items() if count <= 1_000]
    said = ", ".join(f"{times(ratio)} at {count:,}" for count, ratio in ratios.items())
    first, version = times(peer[10] / peer[100]), times(MASK[XGRAMMAR][1_000] / peer[1_000])
    return Claim(
        "trie", where, says, reported,
        f"XGrammar {at(peer, sorted(peer))}; over ours: {said}",
        judged(min(small) >= 7, in_part=min(small) > 1),
        f"Up to 1,000 XGrammar's takes {span(small)} as long as ours. The paper's XGrammar took {version} as long as "
        f"this one at 1,000. At 10 it takes {first} of what it takes at 100 (the paper: 1.8×). From 1,000 to "
        f"{max(peer):,} it grows by {times(peer[max(peer)] / peer[1_000])}.",
        order=4.2,
    )  # fmt: skip


def _masks_of_llguidance(masks: Lines) -> Claim:
    where, says = (
        "Table 18",
        "LLGuidance's mask takes 110 to 215× the trie's time, and 9 to 24× XGrammar's.",
    )
    reported = "LLGuidance 73 to 141 µs, XGrammar 5 to 10 µs, the trie 0.65 µs"
    ours, peer, other = masks[TRIE], masks[LLGUIDANCE], masks[XGRAMMAR]
    missing = missing_sizes(where, says, reported, [10, 100, 1_000, 10_000], peer)
    if missing:
        return missing
    sizes = [count for count in sorted(peer) if count <= 10_000]
    ratios = [peer[count] / ours[count] for count in sizes]
    others = {count: peer[count] / other[count] for count in sizes if count in other}
    slower = [count for count, ratio in others.items() if ratio < 1]
    where_slower = f" XGrammar's is the slowest at K={', '.join(f'{count:,}' for count in slower)}." if slower else ""
    return Claim(
        "trie", where, says, reported,
        f"LLGuidance {at(peer, sorted(peer))}; up to 10,000 {span(ratios)} ours, {span([*others.values()])} XGrammar's",
        judged(min(ratios) >= 110, in_part=min(ratios) > 1),
        f"The paper's LLGuidance (1.6.1) took {span([73e-6 / peer[10], 141e-6 / peer[10_000]])} as long as this one."
        f"{where_slower}",
        order=18.1,
    )  # fmt: skip


def _masks_of_token_trie(masks: Lines) -> Claim:
    where, says = (
        "Appendix H.8, table 2",
        "A mask of a token trie costs less than a microsecond, as the character trie's.",
    )
    reported = "GENRE's 0.43 to 0.63 µs, the trie 0.40 to 0.64 µs"
    names = (GENRE, "GENRE, rows", "GENRE, masks ready", CANONICAL, TRIE)
    keys, rows, ready, canonical, ours = (list(masks[name].values()) for name in names)
    return Claim(
        "trie", where, says, reported,
        f"a list of its keys {span(keys, duration)}; ours, written into a row, {span(ours, duration)}",
        judged(max(*keys, *ours) < 1e-6, in_part=max(keys) < 1e-6 or max(ours) < 1e-6),
        f"The list is no mask yet: as a bitmask row it costs {span(rows, duration)}, made of the keys at each step, or "
        f"{span(ready, duration)}, of words and bits made beforehand; trieauto's trie over canonical tokens "
        f"{span(canonical, duration)}.",
        order=2.1,
    )  # fmt: skip


def _equal_masks(by_k: ByK) -> Claim:
    where, says = "Proposition 1", "The trie's masks are those of general engines on the same set."
    wrong = dict.fromkeys((XGRAMMAR, LLGUIDANCE), 0)
    places = dict.fromkeys(wrong, 0)
    for found in by_k.different.values():
        for name in wrong.keys() & found.keys():
            bad, of = found[name]
            wrong[name] += bad
            places[name] += of
    said = ", ".join(f"{name} at {count} of {places[name]:,} places" for name, count in wrong.items())
    return Claim(
        "trie", where, says, "identical, by proof",
        f"another mask or another end than ours: {said}",
        judged(not any(wrong.values()) and all(places.values())),
        "At random places of random spellings, for all K up to 10,000. outlines-core loses values that are prefixes of "
        "others, so it is no judge.",
        order=40.0,
    )  # fmt: skip
