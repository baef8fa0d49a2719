"""Laws of the reference: its ways to the same masks agree, and its matcher does what brute force says.

Everything else in the suite is tested against the reference, so what is checked here is checked against definitions:
enumerations of all token paths, and tables that a reader can follow by hand.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import mistral_common
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

import trieauto.reference
from trieauto.reference import aho_corasick
from trieauto.reference.char_trie import CharTrie
from trieauto.reference.language import (
    TooManyPathsError,
    complete_paths,
    greedy_spelling,
    live_masks,
    min_tokens,
    prefixes,
    shortest_spelling,
    unreachable_values,
)
from trieauto.reference.matcher import ReferenceMatcher
from trieauto.reference.prefix_space import PrefixSpace, spellings
from trieauto.reference.regex_dfa import RegexDfa
from trieauto.reference.token_trie import TokenTrie

from .strategies import Problem, problems, small_problems, value_sets, walks

Masks = dict[bytes, list[int]]

MASKS: dict[str, Callable[[list[bytes], Sequence[bytes | None]], Masks]] = {
    "character trie": lambda values, tokens: CharTrie(values).masks(tokens),
    "Aho-Corasick": aho_corasick.masks,
    "regex DFA": lambda values, tokens: RegexDfa.from_values(values).masks(tokens),
    "minimal DFA": lambda values, tokens: RegexDfa.from_values(values).minimised().masks(tokens),
}
"""Four ways to the masks that ask for an end in bytes; ``live_masks`` asks for one in tokens."""

PATHS = 5_000
"""Most token paths that a test enumerates."""


def matcher_of(problem: Problem) -> ReferenceMatcher:
    return ReferenceMatcher(problem.values, problem.tokens, problem.stop_token_ids, problem.prefix_space)


def text_of(ids: Sequence[int], tokens: Sequence[bytes | None]) -> bytes:
    return b"".join(tokens[token_id] or b"" for token_id in ids)


def enumerated(values: list[bytes], tokens: Sequence[bytes | None]) -> list[list[int]]:
    """All complete token paths; draws a smaller problem if there are too many."""
    try:
        return complete_paths(values, tokens, PATHS)
    except TooManyPathsError:
        assume(False)
        raise


def rests(values: list[bytes], prefix: bytes) -> list[bytes]:
    """What is left of the values that start with ``prefix``, after it."""
    return [value.removeprefix(prefix) for value in values if value.startswith(prefix)]


def walked(problem: Problem, steps: list[int]) -> ReferenceMatcher:
    """A matcher that took the allowed token each number points at, possibly beyond a stop token."""
    matcher = matcher_of(problem)
    for step in steps:
        allowed = matcher.allowed_token_ids()
        assert matcher.accept_token(allowed[step % len(allowed)])
    return matcher


def observed(matcher: ReferenceMatcher) -> tuple[object, ...]:
    """Everything a matcher shows."""
    return (
        matcher.accepted_token_ids,
        matcher.text,
        matcher.allowed_token_ids(),
        matcher.is_accepting,
        matcher.is_complete,
        matcher.is_terminated(),
        matcher.value,
        matcher.jump_forward_string(),
    )


# Tables that can be checked by hand

MEDICAL = [b"medical_billing", b"medical_coding", b"medical_records"]
MEDICAL_TOKENS: list[bytes | None] = [b"medical", b"_bill", b"_cod", b"_rec", b"ing", b"ords", None]
MEDICAL_STOP = 6
MEDICAL_MASKS = {
    b"": [0],
    b"medical": [1, 2, 3],
    b"medical_bill": [4],
    b"medical_cod": [4],
    b"medical_rec": [5],
}


def test_worked_example_has_the_papers_trie() -> None:
    trie = CharTrie(MEDICAL)
    assert sum(map(len, trie.values)) == 44
    trunk = [b"medical_"[:depth] for depth in range(9)]
    branches = [b"medical_" + name[:depth] for name in (b"billing", b"coding", b"records") for depth in range(1, 8)]
    assert trie.nodes == sorted({*trunk, *branches})
    assert len(trie.nodes) == 29
    assert [node for node in trie.nodes if not trie.children[node]] == MEDICAL


@pytest.mark.parametrize("masks", [*MASKS.values(), live_masks], ids=[*MASKS, "in tokens"])
def test_worked_example_has_the_papers_masks(masks: Callable[[list[bytes], Sequence[bytes | None]], Masks]) -> None:
    # Every value can be finished from each of the five nodes, so asking for an end in tokens removes nothing.
    everywhere: Masks = {node: [] for node in CharTrie(MEDICAL).nodes}
    assert masks(MEDICAL, MEDICAL_TOKENS) == everywhere | MEDICAL_MASKS


def test_worked_example_stops_only_at_the_leaves() -> None:
    stops = {}
    for path in ([], [0], [0, 1], [0, 1, 4], [0, 2], [0, 2, 4], [0, 3], [0, 3, 5]):
        matcher = ReferenceMatcher(MEDICAL, MEDICAL_TOKENS, [MEDICAL_STOP])
        assert matcher.accept_tokens(path)
        text = text_of(path, MEDICAL_TOKENS)
        stops[text] = MEDICAL_STOP in matcher.allowed_token_ids()
        assert matcher.allowed_token_ids() == MEDICAL_MASKS.get(text, [MEDICAL_STOP])
    assert [text for text, stop in stops.items() if stop] == MEDICAL


def test_worked_example_determines_its_value_at_the_branch() -> None:
    matcher = ReferenceMatcher(MEDICAL, MEDICAL_TOKENS, [MEDICAL_STOP])
    assert matcher.value is None
    assert matcher.jump_forward_string() == b"medical_"
    assert matcher.jump_forward_string(limit=3) == b"med"
    matcher.accept_tokens([0, 3])
    assert matcher.value == b"medical_records"
    assert matcher.jump_forward_string() == b"ords"
    assert not matcher.is_accepting


def test_a_value_that_is_a_prefix_of_another() -> None:
    values = [b"get", b"get_user"]
    tokens: list[bytes | None] = [b"get", b"_user", b"_", b"user", b"get_", b"users", None, None]
    for masks in MASKS.values():
        found = masks(values, tokens)
        assert {node: ids for node, ids in found.items() if ids} == {b"": [0, 4], b"get": [1, 2], b"get_": [3]}

    matcher = ReferenceMatcher(values, tokens, [6, 7])
    assert matcher.jump_forward_string() == b"get"
    assert matcher.accept_token(0)
    assert matcher.allowed_token_ids() == [1, 2, 6, 7]
    assert (matcher.is_accepting, matcher.is_complete, matcher.value) == (True, False, None)
    # The answer may end here, so no byte is shared by all that can come.
    assert matcher.jump_forward_string() == b""

    shorter = matcher.fork()
    assert shorter.accept_token(7)
    assert (shorter.is_terminated(), shorter.value, shorter.allowed_token_ids()) == (True, b"get", [6, 7])
    assert matcher.accept_token(1)
    assert (matcher.is_complete, matcher.value, matcher.allowed_token_ids()) == (True, b"get_user", [6, 7])


def test_a_dead_end_in_tokens_is_not_entered() -> None:
    values = [b"abc", b"abd"]
    tokens: list[bytes | None] = [b"a", b"ab", b"abc", b"abd", b"c", None]
    assert CharTrie(values).masks(tokens)[b""] == [0, 1, 2, 3]
    # After "a" nothing fits. After "ab" only "abc" can be spelled, so that is the value already.
    assert live_masks(values, tokens) == {b"": [1, 2, 3], b"a": [], b"ab": [4], b"abc": [], b"abd": []}
    assert unreachable_values(values, tokens) == []
    matcher = ReferenceMatcher(values, tokens, [5])
    assert matcher.accept_token(1)
    assert (matcher.value, matcher.jump_forward_string()) == (b"abc", b"c")


def test_a_trie_is_not_the_minimal_dfa_but_has_its_masks() -> None:
    values = [b"coding", b"billing"]
    tokens: list[bytes | None] = [b"c", b"b", b"ing", b"od", b"ill", b"ding", b"ling"]
    trie = CharTrie(values)
    minimal = RegexDfa.from_values(values).minimised()
    assert len(trie.nodes) == 14
    # The leaves are one state, and so are the ends "ing", "ng" and "g" of both values.
    assert len(minimal.live) == 10
    states = minimal.states_by_prefix()
    assert states[b"cod"] == states[b"bill"]
    assert states[b"coding"] == states[b"billing"]
    assert minimal.masks(tokens) == trie.masks(tokens)


# Masks


@pytest.mark.parametrize("masks", MASKS.values(), ids=MASKS)
@given(problem=problems())
def test_masks_agree(masks: Callable[[list[bytes], Sequence[bytes | None]], Masks], problem: Problem) -> None:
    # Law 8 within the reference. A token is valid at a prefix if the two together are a prefix again.
    inside = prefixes(problem.values)
    assert masks(problem.values, problem.tokens) == {
        prefix: [i for i, token in enumerate(problem.tokens) if token and prefix + token in inside] for prefix in inside
    }


@given(problem=small_problems())
def test_live_masks_are_the_first_tokens_of_complete_paths(problem: Problem) -> None:
    # Law 1: legal iff some way to the end, in tokens, begins with it.
    masks = live_masks(problem.values, problem.tokens)
    assert masks.keys() == prefixes(problem.values)
    for prefix, mask in masks.items():
        paths = enumerated(rests(problem.values, prefix), problem.tokens)
        assert mask == sorted({path[0] for path in paths if path})


@given(problem=problems(byte_complete=True))
def test_with_all_bytes_an_end_in_bytes_is_an_end_in_tokens(problem: Problem) -> None:
    assert live_masks(problem.values, problem.tokens) == CharTrie(problem.values).masks(problem.tokens)
    assert unreachable_values(problem.values, problem.tokens) == []


@given(problem=small_problems())
def test_min_tokens_is_the_shortest_complete_path(problem: Problem) -> None:
    fewest = min_tokens(problem.values, problem.tokens)
    for prefix in prefixes(problem.values):
        lengths = [len(path) for path in enumerated(rests(problem.values, prefix), problem.tokens)]
        assert fewest.get(prefix) == min(lengths, default=None)


@given(values=value_sets())
def test_a_regex_of_the_set_accepts_exactly_the_set(values: list[bytes]) -> None:
    dfa = RegexDfa.from_values(values)
    near = [value + b"a" for value in values] + [value[:-1] for value in values] + [b"", b"x"]
    assert [word for word in near if dfa.accepts(word)] == [word for word in near if word in values]
    assert all(dfa.accepts(value) for value in values)
    assert dfa.states_by_prefix().keys() == prefixes(values)


def test_every_byte_value_is_told_apart() -> None:
    up = bytes(range(256))
    tokens: list[bytes | None] = [bytes([byte]) for byte in up]
    for masks in MASKS.values():
        found = masks([up, up[::-1]], tokens)
        assert found[b""] == [0, 255]
        for value in (up, up[::-1]):
            assert all(found[value[:depth]] == [value[depth]] for depth in range(1, 256))


def test_a_regex_state_without_an_end_is_not_entered() -> None:
    # After "b" the look-ahead forbids the only byte that could follow.
    dfa = RegexDfa.from_pattern("ab|b(?!c)c")
    assert dfa.states_by_prefix().keys() == {b"", b"a", b"ab"}
    assert dfa.masks([b"a", b"b", b"ab"]) == {b"": [0, 2], b"a": [1], b"ab": []}


def test_an_infinite_language_has_no_masks_by_prefix() -> None:
    dfa = RegexDfa.from_pattern("ab*")
    assert sorted(dfa.masks_by_state([b"a", b"b", b"ab", b"bb", b""]).values()) == [[0, 2], [1, 3], [1, 3]]
    with pytest.raises(ValueError, match="infinite"):
        dfa.states_by_prefix()


def test_the_set_of_the_empty_string() -> None:
    assert all(masks([b""], [b"a", b"", None]) == {b"": []} for masks in MASKS.values())
    assert complete_paths([b""], [b"a", b""], 10) == [[]]
    matcher = ReferenceMatcher([b""], [b"a", b"", None], [2])
    assert (matcher.allowed_token_ids(), matcher.is_complete, matcher.value) == ([2], True, b"")


def test_an_empty_set() -> None:
    assert CharTrie([]).masks([b"a"]) == aho_corasick.masks([], [b"a"]) == {b"": []}
    assert (live_masks([], [b"a"]), complete_paths([], [b"a"], 10)) == ({}, [])
    with pytest.raises(ValueError, match="empty set"):
        RegexDfa.from_values([])


# Spelling


@given(problem=small_problems())
def test_spellings_of_values(problem: Problem) -> None:
    # Law 7: a value is unreachable iff no complete path spells it.
    paths = enumerated(problem.values, problem.tokens)
    reached = {text_of(path, problem.tokens) for path in paths}
    assert unreachable_values(problem.values, problem.tokens) == sorted(set(problem.values) - reached)
    for value in problem.values:
        ways = [path for path in paths if text_of(path, problem.tokens) == value]
        assert shortest_spelling(value, problem.tokens) == min(ways, key=lambda path: (len(path), path), default=None)
        greedy = greedy_spelling(value, problem.tokens)
        assert greedy is None or greedy in ways


def test_greedy_spelling_takes_the_longest_and_may_fail() -> None:
    tokens: list[bytes | None] = [b"ab", b"abc", b"cd", b"abc", None, b""]
    assert greedy_spelling(b"abcabc", tokens) == [1, 1]
    assert greedy_spelling(b"abcd", tokens) is None
    assert shortest_spelling(b"abcd", tokens) == [0, 2]


# Canonical tokenization


@given(problem=problems(spellable=True))
def test_a_token_trie_is_one_path_a_value_within_the_masks(problem: Problem) -> None:
    # GENRE's trie admits a subset of what the byte trie admits, and ends where it ends.
    canonical = {value: shortest_spelling(value, problem.tokens) or [] for value in problem.values}
    trie = TokenTrie(canonical.values())
    masks = live_masks(problem.values, problem.tokens)
    for ids in trie.children:
        text = text_of(ids, problem.tokens)
        assert set(trie.allowed_token_ids(ids)) <= set(masks[text])
        assert trie.is_end(ids) == (list(ids) == canonical.get(text))

    pending: list[tuple[int, ...]] = [()]
    complete = []
    while pending:
        ids = pending.pop()
        complete += [list(ids)] if trie.is_end(ids) else []
        pending += [(*ids, token_id) for token_id in trie.allowed_token_ids(ids)]
    assert sorted(complete) == sorted(canonical.values())


def test_a_real_vocabulary() -> None:
    # Byte-level BPE of 131,072 ids, every single byte among them.
    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    tokenizer = Tekkenizer.from_file(path)
    special = tokenizer.num_special_tokens
    ordinary = range(special, tokenizer.n_words)
    tokens: list[bytes | None] = [*[None] * special, *map(tokenizer.id_to_byte_piece, ordinary)]

    texts = ["medical_billing", "medical_coding", "medical_records", "médical 😀", "get", "get_user"]
    values = [text.encode() for text in texts]
    masks = CharTrie(values).masks(tokens)
    assert aho_corasick.masks(values, tokens) == masks
    assert live_masks(values, tokens) == masks

    trie = TokenTrie.from_values(texts, lambda text: tokenizer.encode(text, bos=False, eos=False))
    assert sorted(text_of(ids, tokens) for ids in trie.ends) == sorted(values)
    for ids in trie.children:
        assert set(trie.allowed_token_ids(ids)) <= set(masks[text_of(ids, tokens)])


# The matcher


@given(problem=small_problems(prefix_space=None))
def test_the_matcher_admits_exactly_the_complete_paths(problem: Problem) -> None:
    # Law 3, and law 4 for where an answer may end.
    paths = enumerated(sorted(spellings(problem.values, problem.prefix_space)), problem.tokens)
    complete = []
    pending = [matcher_of(problem)]
    while pending:
        matcher = pending.pop()
        if matcher.is_accepting:
            complete.append(matcher.accepted_token_ids)
        for token_id in set(matcher.allowed_token_ids()) - set(problem.stop_token_ids):
            following = matcher.fork()
            assert following.accept_token(token_id)
            pending.append(following)
    assert sorted(complete) == sorted(paths)


@given(problem=problems(spellable=True, prefix_space=None), steps=walks())
def test_mask_and_accept_agree(problem: Problem, steps: list[int]) -> None:
    # Law 2, everywhere, beyond a stop token too; no mask is empty.
    matcher = walked(problem, steps)
    allowed = matcher.allowed_token_ids()
    assert allowed
    assert allowed == sorted(set(allowed))
    for token_id in range(-1, len(problem.tokens) + 1):
        before = observed(matcher)
        trial = matcher.fork()
        assert trial.accept_token(token_id) == (token_id in allowed)
        assert (observed(trial) == before) == (token_id not in allowed)
        assert observed(matcher) == before


@given(problem=problems(spellable=True, prefix_space=None), steps=walks())
def test_a_dead_set_is_never_entered(problem: Problem, steps: list[int]) -> None:
    # From wherever a walk is, always taking the lowest allowed id ends with a stop token.
    matcher = walked(problem, steps)
    for _ in range(max(map(len, problem.values)) + 2):
        matcher.accept_token(
            min(matcher.allowed_token_ids(), key=lambda token_id: (token_id in problem.stop_token_ids, token_id))
        )
    assert matcher.is_terminated()
    assert matcher.value in problem.values


@given(problem=problems(spellable=True, prefix_space=None), steps=walks())
def test_stop_tokens(problem: Problem, steps: list[int]) -> None:
    # Law 4.
    matcher = walked(problem, steps)
    stops = problem.stop_token_ids
    for stop in stops:
        assert (stop in matcher.allowed_token_ids()) == matcher.is_accepting
    assert matcher.is_accepting == (matcher.text in spellings(problem.values, problem.prefix_space))
    assert matcher.is_complete == (matcher.allowed_token_ids() == stops)
    assert matcher.is_terminated() == any(stop in matcher.accepted_token_ids for stop in stops)
    if matcher.is_accepting:
        text = matcher.text
        for stop in [*stops, *stops]:
            assert matcher.accept_token(stop)
            assert matcher.allowed_token_ids() == stops
            assert matcher.is_terminated()
            assert matcher.is_accepting
            assert matcher.is_complete
            assert (matcher.text, matcher.jump_forward_string()) == (text, b"")
            assert matcher.value == spellings(problem.values, problem.prefix_space)[text]


@given(problem=problems(spellable=True, prefix_space=None), steps=walks(), data=st.data())
def test_time_travel(problem: Problem, steps: list[int], data: st.DataObject) -> None:
    # Law 5, across the stop token too.
    matcher = walked(problem, steps)
    end, ids = observed(matcher), matcher.accepted_token_ids
    back = data.draw(st.integers(0, len(ids)))
    fork = matcher.fork()
    fork.rollback(back)
    rebuilt = matcher_of(problem)
    assert rebuilt.accept_tokens(ids[: len(ids) - back])
    assert observed(fork) == observed(rebuilt)
    assert observed(matcher) == end
    for token_id in ids[len(ids) - back :]:
        assert fork.accept_token(token_id)
    assert observed(fork) == end

    matcher.reset()
    assert observed(matcher) == observed(matcher_of(problem))
    assert observed(fork) == end


@given(problem=problems(spellable=True, prefix_space=None), steps=walks(), data=st.data())
def test_several_tokens_at_once(problem: Problem, steps: list[int], data: st.DataObject) -> None:
    matcher = walked(problem, data.draw(walks(2)))
    here = observed(matcher)
    good = []
    trial = matcher.fork()
    for step in steps:
        allowed = trial.allowed_token_ids()
        good.append(allowed[step % len(allowed)])
        trial.accept_token(good[-1])
    ids = good + data.draw(st.lists(st.integers(0, len(problem.tokens) - 1), max_size=3))

    one_by_one = matcher.fork()
    accepted = 0
    while accepted < len(ids) and one_by_one.accept_token(ids[accepted]):
        accepted += 1
    assert matcher.validate_tokens(ids) == accepted >= len(good)
    assert observed(matcher) == here
    assert matcher.accept_tokens(ids) == (accepted == len(ids))
    assert observed(matcher) == (observed(one_by_one) if accepted == len(ids) else here)


@given(problem=small_problems(spellable=True, prefix_space=None), steps=walks(4))
def test_value_and_shared_bytes_follow_from_all_that_can_come(problem: Problem, steps: list[int]) -> None:
    matcher = walked(problem, steps)
    assume(not matcher.is_terminated())
    language = spellings(problem.values, problem.prefix_space)
    ways = enumerated(rests(sorted(language), matcher.text), problem.tokens)
    endings = {text_of(path, problem.tokens) for path in ways}
    values = {language[matcher.text + ending] for ending in endings}
    assert matcher.value == (min(values) if len(values) == 1 else None)

    shared = matcher.jump_forward_string()
    assert all(ending.startswith(shared) for ending in endings)
    longer = {ending[: len(shared) + 1] for ending in endings}
    assert len(longer) > 1 or longer == {shared}
    assert [matcher.jump_forward_string(limit) for limit in range(3)] == [shared[:limit] for limit in range(3)]


@given(problem=problems(prefix_space=None, spellable=True), steps=walks())
def test_a_prefix_space_only_adds_strings_to_the_language(problem: Problem, steps: list[int]) -> None:
    language = spellings(problem.values, problem.prefix_space)
    expected = {
        "none": set(problem.values),
        "optional": {*problem.values, *(b" " + value for value in problem.values)},
        "required": {b" " + value for value in problem.values},
    }[problem.prefix_space]
    assert language.keys() == expected
    assert all(string in (value, b" " + value) for string, value in language.items())

    matcher = walked(problem, steps)
    plain = ReferenceMatcher(language.keys(), problem.tokens, problem.stop_token_ids)
    assert plain.accept_tokens(matcher.accepted_token_ids)
    assert plain.allowed_token_ids() == matcher.allowed_token_ids()
    if plain.value is not None:
        assert matcher.value == language[plain.value]


def test_a_prefix_space_is_not_part_of_the_value() -> None:
    tokens: list[bytes | None] = [b"Pizza", b" Pizza", b" ", b"Pasta", None]
    seen: dict[PrefixSpace, tuple[list[int], bool]] = {}
    for setting in ("none", "optional", "required"):
        matcher = ReferenceMatcher([b"Pizza", b"Pasta"], tokens, [4], setting)
        allowed = matcher.allowed_token_ids()
        spaced = matcher.accept_token(1)
        assert matcher.value == (b"Pizza" if spaced else None)
        seen[setting] = (allowed, spaced)
    assert seen == {"none": ([0, 3], False), "optional": ([0, 1, 2, 3], True), "required": ([1, 2], True)}


def test_an_ambiguous_optional_space_is_refused() -> None:
    with pytest.raises(ValueError, match="b' Pizza'"):
        ReferenceMatcher([b"Pizza", b" Pizza", b"Pasta"], [b"Pizza", None], [1], "optional")
    assert spellings([b"Pizza", b" Pizza"], "required") == {b" Pizza": b"Pizza", b"  Pizza": b" Pizza"}
    with pytest.raises(ValueError, match="'maybe'"):
        spellings([b"Pizza"], "maybe")  # type: ignore[arg-type]


def test_stop_ids_have_no_text() -> None:
    matcher = ReferenceMatcher([b"ab"], [b"ab", b"ab", b"a", b"b"], [1])
    assert matcher.allowed_token_ids() == [0, 2]
    assert matcher.accept_tokens([0, 1])
    assert matcher.text == b"ab"


def test_refused_arguments() -> None:
    with pytest.raises(ValueError, match=r"\[2\]"):
        ReferenceMatcher([b"a"], [b"a", None], [1, 2])
    matcher = ReferenceMatcher([b"a"], [b"a", None], [1])
    matcher.accept_tokens([0, 1])
    with pytest.raises(ValueError, match="3 of 2"):
        matcher.rollback(3)
    assert matcher.is_terminated()
    with pytest.raises(ValueError, match="-1 of 2"):
        matcher.rollback(-1)


def test_enumeration_is_bounded() -> None:
    assert len(complete_paths([b"a" * 8], [b"a", b"aa"], 1_000)) == 34
    with pytest.raises(TooManyPathsError, match="1000"):
        complete_paths([b"a" * 40], [b"a", b"aa"], 1_000)


# The oracle stands alone


def test_the_reference_imports_nothing_of_the_library() -> None:
    directory = Path(trieauto.reference.__file__).parent
    imported = set()
    for path in directory.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported.add((node.module or "").split(".")[0])
            elif isinstance(node, ast.ImportFrom):
                # Not above the directory itself.
                assert node.level == 1
    assert imported - sys.stdlib_module_names == {"ahocorasick", "interegular", "numpy"}
