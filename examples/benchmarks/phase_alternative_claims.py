"""What the trie paper claims about other ways (appendix H.10), judged by one run."""

from __future__ import annotations

from judging import judged
from phase_compile import AHO_CORASICK, TRAVERSAL, TRIE
from phase_run import Run
from results import Claim
from wording import duration, span, times

VOCABULARY = 151_643


def alternative_claims(run: Run) -> list[Claim]:
    """One for each claim."""
    return [_few_tokens(run), _cost_of_filtering(run), _no_gain(run), _caches(run), _hash_sets(run)]


def _few_tokens(run: Run) -> Claim:
    kept = {own.count: own.kept for own in run.filtered}
    shares = [count / VOCABULARY for count in kept.values()]
    said = ", ".join(f"{tokens:,} ({tokens / VOCABULARY:.2%}) at {count:,}" for count, tokens in kept.items())
    return Claim(
        "trie", "Appendix H.10", "Only 0.2 % of the tokens occur in the values, whatever K is.", "379 of 151K", said,
        judged(max(shares) <= 0.004 and max(kept.values()) <= 1.5 * min(kept.values()), in_part=max(shares) <= 0.01),
        "Beyond the pools of the paper's appendix C.2 our names have 56 more words, so there are more to occur.",
        order=64.0,
    )  # fmt: skip


def _cost_of_filtering(run: Run) -> Claim:
    whole = {
        own.count: sum(own.timings[phase].median for phase in (TRIE, AHO_CORASICK, TRAVERSAL)) for own in run.phases
    }
    ratios = {own.count: own.seconds / whole[own.count] for own in run.filtered if own.count in whole}
    grows = run.filtered[-1].seconds > 3 * run.filtered[0].seconds
    said = ", ".join(f"{duration(own.seconds)} at {own.count:,}" for own in run.filtered)
    large = max(ratios)
    return Claim(
        "trie", "Appendix H.10", "Filtering alone grows with K, and soon costs as much as compiling the trie.",
        "5 to 405 ms; the trie 30 to 48 ms", f"{said} (in Python)",
        judged(ratios[large] >= 1 and grows, in_part=ratios[large] >= 0.1),
        "Of the paper's construction it takes "
        f"{', '.join(f'{times(ratio)} at {count:,}' for count, ratio in ratios.items())}. A compiled filter would be "
        "faster.",
        order=64.1,
    )  # fmt: skip


def _no_gain(run: Run) -> Claim:
    gains = {own.count: own.compiling.median / own.compiling_filtered.median for own in run.filtered}
    said = ", ".join(
        f"{duration(own.compiling.median)} and {duration(own.compiling_filtered.median)} at {own.count:,}"
        for own in run.filtered
    )
    return Claim(
        "trie", "Appendix H.10", "Filtering the vocabulary does not make XGrammar compile faster.",
        "no gain, by argument",
        f"with all tokens and with those that occur: {said}",
        judged(max(gains.values()) <= 1.1, in_part=min(gains.values()) <= 1.1),
        f"All tokens take {', '.join(f'{times(gain)} at {count:,}' for count, gain in gains.items())} the time of the "
        "few. Preparing the reduced tokenizer and finding the tokens is not counted, and would be needed for each "
        "set.",
        order=64.2,
    )  # fmt: skip


def _caches(run: Run) -> Claim:
    where, says = "Appendix H.10", "With a warm tokenizer, too, the trie compiles faster than XGrammar from K=100 on."
    warm = {
        count: timings["XGrammar, warm"].median / timings["trieauto, warm"].median
        for count, timings in run.caches.items()
    }
    names = list(next(iter(run.caches.values())))
    said = "; ".join(
        f"K={count:,}: {' / '.join(duration(timings[name].median) for name in names)}"
        for count, timings in run.caches.items()
    )
    anew = {
        own.count: sum(own.timings[phase].median for phase in (TRIE, AHO_CORASICK, TRAVERSAL))
        for own in run.phases
        if own.count in run.caches
    }
    slower = [count for count, seconds in anew.items() if seconds > run.caches[count]["XGrammar, warm"].median]
    cold = [timings["XGrammar, cold"].median / timings["trieauto, cold"].median for timings in run.caches.values()]
    return Claim(
        "trie", where, f"{says} ({' / '.join(names)})",
        "XGrammar 529 to 1,749 ms cold, 3.7 to 1,207 ms warm; the trie 35 to 48 ms", said,
        judged(min(warm.values()) > 1 and not slower, in_part=max(warm.values()) > 1),
        f"Warm, XGrammar takes {', '.join(f'{times(ratio)} at {count:,}' for count, ratio in warm.items())} our time; "
        f"cold {span(cold)}."
        + (
            " The paper's construction, which is never warm, is slower than XGrammar at "
            f"{' and '.join(f'{count:,}' for count in slower)}." if slower else ""
        ),
        order=64.3,
    )  # fmt: skip


def _hash_sets(run: Run) -> Claim:
    ratios = {own.count: own.seconds / own.ours for own in run.hash_sets}
    said = ", ".join(
        f"{duration(own.seconds)} ({duration(own.at_start)} at the start) at {own.count:,}" for own in run.hash_sets
    )
    different = sum(own.different for own in run.hash_sets)
    first, last = run.hash_sets[0], run.hash_sets[-1]
    growth = last.seconds / first.seconds
    return Claim(
        "trie", "Appendix H.10", "A hash set of the values needs no compiling, but each step costs K times ℓ.",
        "by argument"
        "", f"a step in Python: {said}; {different} of {sum(own.places for own in run.hash_sets)} masks differ",
        judged(different == 0 and min(ratios.values()) > 10 and growth > (last.count / first.count) / 5,
               in_part=min(ratios.values()) > 1),
        "Ours, places of the same values, a mask and a token: "
        f"{', '.join(f'{duration(own.ours)} at {own.count:,} ({times(ratios[own.count])})' for own in run.hash_sets)}.",
        order=64.4,
    )  # fmt: skip
