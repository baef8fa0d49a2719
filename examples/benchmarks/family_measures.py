"""What is measured for each family of tokenizers: a tokenizer made ready, sets compiled, masks timed and compared."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from measure import Timing, clocked, in_turns
from ours import Trieauto, TrieautoAhoCorasick, TrieautoEager, TrieautoOwnBuffers
from peers import Engine, Form, LLGuidance, XGrammar
from preparation import COLD, WITH_AHO_CORASICK, preparation_timings
from report import progress
from vocabularies import ByteVocabulary
from walks import WalkTimer, disagreements, random_walks

from trieauto.demo_sets import icd10_cm_codes, tool_names

PEERS: tuple[type[Engine], ...] = (XGrammar, LLGuidance)
OURS: tuple[type[Engine], ...] = (Trieauto, TrieautoEager, TrieautoAhoCorasick, TrieautoOwnBuffers)
COMPILED_BY = ("trieauto", "trieauto, eager", "trieauto, eager, Aho-Corasick")
MASKED_BY = ("trieauto", "trieauto, own buffers", "XGrammar", "LLGuidance")
LONG = 2.0  # seconds from which one measurement is all there is
HOPELESS = 3.0  # a form so many times slower than the best one is not tried with larger sets,
BEST = 3  # and once a trial takes a tenth of LONG, no more than so many are


@dataclass(frozen=True)
class Effort:
    """How long each task is timed, and with how many walks and matchers masks are compared."""

    seconds: float
    rounds: int
    walks: int

    def time(self, tasks: Mapping[str, Callable[[], float]]) -> dict[str, Timing]:
        return in_turns(tasks, seconds=self.seconds, rounds=self.rounds)


def make_engines(vocabulary: ByteVocabulary, kinds: Sequence[type[Engine]] = (*OURS, *PEERS)) -> dict[str, Engine]:
    """The engines by name, each with this tokenizer ready."""
    engines = {}
    for kind in kinds:
        progress(f"{kind.name} for {vocabulary.name}")
        engines[kind.name] = kind(vocabulary)
    return engines


def preparations(vocabulary: ByteVocabulary, effort: Effort) -> dict[str, Timing]:
    """Seconds until the tokenizer is ready, from the bytes of its tokens."""
    names = [COLD, WITH_AHO_CORASICK, "XGrammar", "LLGuidance"]
    return preparation_timings(vocabulary, names, seconds=2 * effort.seconds, rounds=effort.rounds)


def first_masks(
    engines: Mapping[str, Engine], counts: Sequence[int], effort: Effort
) -> dict[int, dict[str, tuple[Timing, str]]]:
    """From a set to its first mask, by the set's size and engine, with the form in which a peer is fastest."""
    forms = {peer.name: list(peer.forms) for peer in PEERS}
    result = {}
    for count in counts:
        progress(f"sets of {count:,}")
        values = tool_names(count)
        chosen = {name: engines[name].forms[0] for name in COMPILED_BY}
        trials: dict[str, float] = {}
        for name in forms:
            seconds = tried(engines[name], forms[name], {form: form.source(values) for form in forms[name]})
            best = min(seconds.values())
            ranked = sorted(seconds, key=seconds.__getitem__)
            chosen[name], trials[name] = ranked[0], best
            ranked = [form for form in ranked if seconds[form] <= HOPELESS * best]
            forms[name] = ranked[: BEST if best > LONG / 10 else None]
        timings = effort.time(
            {
                name: clocked(engines[name].first_mask, form, form.source(values), engines[name].allocate(1))
                for name, form in chosen.items()
                if trials.get(name, 0.0) < LONG
            }
        )
        timings |= {name: Timing.of([seconds]) for name, seconds in trials.items() if seconds >= LONG}
        result[count] = {name: (timings[name], form.name) for name, form in chosen.items()}
    return result


def tried(engine: Engine, forms: Sequence[Form], sources: Mapping[Form, Any]) -> dict[Form, float]:
    """Seconds to the first mask in each form: the best of three trials, if there is time for so many."""
    result = {}
    for form in forms:
        bitmask, seconds = engine.allocate(1), [engine.timed_first_mask(form, sources[form], engine.allocate(1))[0]]
        while sum(seconds) < LONG and len(seconds) < 3:
            seconds.append(engine.timed_first_mask(form, sources[form], bitmask)[0])
        result[form] = min(seconds)
    return result


def one_masks(
    engines: Mapping[str, Engine], count: int, vocabulary: ByteVocabulary, effort: Effort
) -> dict[str, Timing]:
    """One mask into a row of bits from Python, on average along random walks."""
    values = tool_names(count)
    walks = random_walks(values, engines["trieauto"].forms[0], vocabulary, effort.walks)
    compiled = {name: _compiled(engines[name], values) for name in MASKED_BY}
    return effort.time({name: WalkTimer(engines[name], made, walks) for name, made in compiled.items()})


def agreement(
    engines: Mapping[str, Engine], count: int, vocabulary: ByteVocabulary, effort: Effort
) -> dict[str, dict[str, int]]:
    """By set: how many places along random walks were compared, and at how many each peer's mask is not ours."""
    sets = {
        "tool names": tool_names(count),
        "ICD-10-CM codes": icd10_cm_codes()[:: max(1, 70_000 // count)],
        "time zones": sorted(zoneinfo.available_timezones())[:count],
    }
    result = {}
    for name, values in sets.items():
        walks = random_walks(values, engines["trieauto"].forms[0], vocabulary, effort.walks, seed=2)
        compiled = {each: _compiled(engines[each], values) for each in ("trieauto", "XGrammar", "LLGuidance")}
        different = disagreements(engines, compiled, walks, vocabulary)
        result[f"{len(values):,} {name}"] = {"compared": len(walks), **different}
    return result


def aho_corasick_bytes(engine: Engine) -> int:
    """What the vocabulary's automaton takes: the trie of its tokens, and failure links and outputs."""
    assert isinstance(engine, Trieauto)
    tables = engine.vocabulary.tables
    return sum(array.nbytes for array in (tables.nodes, tables.siblings, tables.token_ids, *tables.aho_corasick))


def _compiled(engine: Engine, values: Sequence[str]) -> Any:
    form = engine.forms[0]
    compiled = engine.compile(form, form.source(values))
    engine.settle(compiled)
    return compiled
