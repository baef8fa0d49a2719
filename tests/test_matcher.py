"""The matcher's and the bitmasks' edges: bad arguments, kinds of bitmask, masks that are made ready and evicted."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import threading
import weakref

import numpy as np
import pytest
import torch

import trieauto
from trieauto import constraint as constraint_module
from trieauto import eager_masks
from trieauto import matcher as matcher_module

TOKENS: list[bytes | None] = [b"a", b"b", b"ab", None, b"c", b"abc"]


@pytest.fixture
def constraint() -> trieauto.Constraint:
    vocabulary = trieauto.Vocabulary.from_tokens(TOKENS, stop_token_ids=[3, 7], size=70)
    return trieauto.compile(trieauto.choices(["ab", "abc"]), vocabulary)


def bits(row: np.ndarray) -> list[int]:  # type: ignore[type-arg]
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


@pytest.mark.parametrize("token_id", [-1, 70, 10**12, "a", None, 1.5])
def test_ids_outside_the_vocabulary(constraint: trieauto.Constraint, token_id: object) -> None:
    matcher = constraint.matcher()
    for call in (matcher.accept_token, lambda i: matcher.accept_tokens([0, i]), lambda i: matcher.validate_tokens([i])):
        with pytest.raises(trieauto.TokenNotAllowedError, match="token id"):
            call(token_id)  # type: ignore[arg-type]
    assert matcher.num_accepted == 0


def test_ids_of_any_integer_type(constraint: trieauto.Constraint) -> None:
    for token_id in (0, np.int64(0), np.int32(0), np.uint8(0), torch.tensor(0), True - 1):
        assert constraint.matcher().accept_token(token_id)  # type: ignore[arg-type]
        assert constraint.matcher().accept_tokens([token_id])  # type: ignore[list-item]
    ids = np.array([2, 3], np.int64)
    assert constraint.matcher().accept_tokens(ids)
    assert constraint.matcher().accept_tokens(torch.from_numpy(ids))  # type: ignore[arg-type]
    assert constraint.matcher().accept_tokens([])
    assert constraint.matcher().validate_tokens([]) == 0


def test_padded_and_special_ids_are_refused(constraint: trieauto.Constraint) -> None:
    matcher = constraint.matcher()
    for token_id in (3, 7, 6, 69):
        assert not matcher.accept_token(token_id)
    assert matcher.accept_token(2)
    assert matcher.allowed_token_ids().tolist() == [3, 4, 7]
    assert matcher.accept_token(7)
    assert matcher.allowed_token_ids().tolist() == [3, 7]


@pytest.mark.parametrize("count", [-1, 2])
def test_rollback_too_far(constraint: trieauto.Constraint, count: int) -> None:
    matcher = constraint.matcher()
    assert matcher.accept_token(0)
    with pytest.raises(trieauto.TrieautoError, match="roll back"):
        matcher.rollback(count)
    assert matcher.num_accepted == 1


def test_kinds_of_bitmask(constraint: trieauto.Constraint) -> None:
    matcher = constraint.matcher()
    wide = np.full((3, 9), -1, np.int32)
    one_row = np.full(3, -1, np.int32)
    strided = np.full((3, 18), -1, np.int32)[:, 4:7]
    tensor = torch.full((3, 3), -1, dtype=torch.int32)
    own = trieauto.TokenBitmask(3, 70)
    matcher.fill_next_token_bitmask(wide, 2)
    matcher.fill_next_token_bitmask(one_row)
    matcher.fill_next_token_bitmask(strided, 1)
    matcher.fill_next_token_bitmask(tensor, 1)
    matcher.fill_next_token_bitmask(own, 1)
    expected = matcher.allowed_token_ids().tolist()
    assert bits(wide[2]) == bits(one_row) == bits(strided[1].copy()) == bits(tensor[1].numpy()) == bits(own.array[1])
    assert bits(one_row) == expected
    assert (strided.base[0] == -1).all()  # type: ignore[index]
    # The address of the bitmask used last is remembered: a tensor that moves is noticed.
    tensor.set_(torch.full((4, 3), -1, dtype=torch.int32))
    matcher.fill_next_token_bitmask(tensor, 3)
    assert bits(tensor[3].numpy()) == expected
    with pytest.raises(ValueError, match="read-only"):
        own.array[0, 0] = 1


@pytest.mark.parametrize(
    ("bitmask", "index", "message"),
    [
        (np.zeros((2, 2), np.int32), 0, "2 words wide; 3 are needed"),
        (np.zeros((2, 3), np.int32), 2, "row 2 is outside"),
        (np.zeros((2, 3), np.int32), -1, "row -1 is outside"),
        (np.zeros((2, 3), np.int64), 0, "int64"),
        (np.zeros((2, 2, 3), np.int32), 0, "shape"),
        (np.zeros((3, 2), np.int32).T, 0, "contiguous"),
        (np.zeros((0, 3), np.int32), 0, "shape"),
        (torch.zeros((2, 3), dtype=torch.int64), 0, "int64"),
        (torch.zeros((2, 3), dtype=torch.int32, device="meta"), 0, "meta"),
        (torch.zeros((2, 3), requires_grad=True), 0, "float32"),
        (torch.zeros((2, 3), dtype=torch.int32).to_sparse(), 0, "sparse"),
        (trieauto.TokenBitmask(2, 70).array, 0, "read-only"),
        (trieauto.TokenBitmask(2, 32), 0, "words wide"),
        ([[0, 0, 0]], 0, "list"),
        (None, 0, "NoneType"),
        (torch.zeros(1, 3, dtype=torch.int32).expand(2, 3), 0, "overlap"),
        (np.lib.stride_tricks.as_strided(np.zeros(9, np.int32), (2, 3), (4, 4)), 0, "overlap"),
        (torch._neg_view(torch.zeros((2, 3), dtype=torch.int32)), 0, "share its memory"),
    ],
)
def test_bad_bitmasks(constraint: trieauto.Constraint, bitmask: object, index: int, message: str) -> None:
    matcher = constraint.matcher()
    with pytest.raises(trieauto.TrieautoError, match=message):
        matcher.fill_next_token_bitmask(bitmask, index)
    with pytest.raises(trieauto.TrieautoError, match=message):
        trieauto.fill_next_token_bitmasks([matcher], bitmask, [index])
    if index == 0:  # a batch of one goes another way
        with pytest.raises(trieauto.TrieautoError, match=message):
            trieauto.fill_next_token_bitmasks([matcher], bitmask)


def test_a_batch_of_one_is_a_row(constraint: trieauto.Constraint) -> None:
    matcher = constraint.matcher()
    for token_id in (None, *matcher.allowed_token_ids().tolist()):
        matcher = constraint.matcher()
        if token_id is not None:
            assert matcher.accept_token(token_id)
        rows = [trieauto.allocate_token_bitmask(2, constraint.vocabulary.size) for _ in range(3)]
        trieauto.fill_next_token_bitmasks([matcher], rows[0])
        trieauto.fill_next_token_bitmasks((matcher,), rows[1])
        matcher.fill_next_token_bitmask(rows[2])
        assert bits(rows[0][0]) == bits(rows[1][0]) == bits(rows[2][0]) == matcher.allowed_token_ids().tolist()
        assert (rows[0][1] == rows[1][1]).all()


def test_bad_batches(constraint: trieauto.Constraint) -> None:
    bitmask = trieauto.allocate_token_bitmask(2, 70)
    matchers = [constraint.matcher() for _ in range(3)]
    with pytest.raises(trieauto.TrieautoError, match="3 matchers for a bitmask of 2 rows"):
        trieauto.fill_next_token_bitmasks(matchers, bitmask)
    with pytest.raises(trieauto.TrieautoError, match="row 2 is outside"):
        trieauto.fill_next_token_bitmasks(matchers, bitmask, [0, 2, 1])
    for wrong in ([None], [constraint], matchers[0], None, set(matchers), iter(matchers), dict.fromkeys(matchers)):
        with pytest.raises(trieauto.TrieautoError, match="list of Matcher"):
            trieauto.fill_next_token_bitmasks(wrong, bitmask)  # type: ignore[arg-type]
    with pytest.raises(trieauto.TrieautoError, match="row 9223372036854775808 is outside"):
        trieauto.fill_next_token_bitmasks(matchers, bitmask, np.array([0, 1, 2**63], np.uint64))
    for indices in ("abc", [None] * 3, [0.0, 1.0, 0.0], iter([0, 1, 0])):
        with pytest.raises(trieauto.TrieautoError, match="indices"):
            trieauto.fill_next_token_bitmasks(matchers, bitmask, indices)  # type: ignore[arg-type]
    with pytest.raises(trieauto.TrieautoError, match="indices"):
        trieauto.fill_next_token_bitmasks(matchers, bitmask, [0, 1])
    before = bitmask.copy()
    trieauto.fill_next_token_bitmasks([], bitmask)
    assert (bitmask == before).all()


def test_compile_refuses_wrong_options(constraint: trieauto.Constraint) -> None:
    automaton, vocabulary = trieauto.choices(["ab"]), constraint.vocabulary
    for options in ({"mode": "fast"}, {"unreachable": "drop"}, {"prefix_space": "maybe"}, {"method": "magic"}):
        with pytest.raises(trieauto.TrieautoError, match=next(iter(options.values()))):
            trieauto.compile(automaton, vocabulary, **options)  # type: ignore[arg-type]
    with pytest.raises(trieauto.TrieautoError, match=r"choices\(values\)"):
        trieauto.compile(["ab"], vocabulary)  # type: ignore[arg-type]
    with pytest.raises(trieauto.TrieautoError, match="vocabulary"):
        trieauto.compile(automaton, TOKENS)  # type: ignore[arg-type]
    with pytest.raises(trieauto.UnsupportedError, match="lazy"):
        trieauto.compile(automaton, vocabulary, mode="lazy", method="aho_corasick")
    for threads in (0, -1, 1.5):
        with pytest.raises(trieauto.TrieautoError, match=f"not {threads}"):
            trieauto.compile(automaton, vocabulary, threads=threads)  # type: ignore[arg-type]
        with pytest.raises(trieauto.TrieautoError, match=f"not {threads}"):
            trieauto.choices(["a"], threads=threads)  # type: ignore[arg-type]


def test_eager_masks_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = trieauto.Vocabulary.from_tokens([b"x" * n for n in range(1, 40)] + [None], stop_token_ids=[39])
    automaton = trieauto.choices(["x" * 2_000])
    monkeypatch.setattr(eager_masks, "MAX_ENTRIES", 1_000)
    for method in ("walk", "aho_corasick"):
        for threads in (1, 2):
            with pytest.raises(trieauto.UnsupportedError, match="lazy"):
                trieauto.compile(automaton, vocabulary, mode="eager", method=method, threads=threads)
    assert trieauto.compile(automaton, vocabulary).mode == "lazy"


def test_ready_masks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """More masks than fit: the bytes stay below the limit, masks stay right, the ones in use stay."""
    letters = [bytes([a, b]) for a in range(97, 123) for b in range(97, 123)]
    vocabulary = trieauto.Vocabulary.from_tokens(
        [*letters, *(bytes([a]) for a in range(97, 123)), None], stop_token_ids=[702]
    )
    values = [(a + b + c).decode() for a in letters[::9] for b in letters[::5] for c in letters[::40]]
    monkeypatch.setattr(constraint_module, "READY_LIMIT", 20_000)
    lazy = trieauto.compile(trieauto.choices(values), vocabulary, mode="lazy")
    eager = trieauto.compile(trieauto.choices(values), vocabulary, mode="eager")
    generator = random.Random(3)
    for _ in range(1_500):
        matcher, other = lazy.matcher(), eager.matcher()
        for _ in range(generator.randrange(4)):
            allowed = matcher.allowed_token_ids()
            assert allowed.tolist() == other.allowed_token_ids().tolist()
            token_id = int(generator.choice(allowed))
            assert matcher.accept_token(token_id)
            assert other.accept_token(token_id)
            if matcher.is_terminated():
                break
        assert lazy.stats()["bytes"] <= lazy.automaton.nbytes + 20_000 + 4_000
    assert lazy.stats()["ready_masks_made"] > lazy.stats()["ready_masks"] > 1


def test_records_are_reused(constraint: trieauto.Constraint) -> None:
    """A server makes millions of matchers: memory does not grow with them."""
    gc.collect()
    for _ in range(3):
        matchers = [constraint.matcher() for _ in range(2_000)]
        assert len({matcher._record for matcher in matchers}) == 2_000
        chunks = len(matcher_module._chunks)
        del matchers
    assert len(matcher_module._chunks) == chunks


def test_a_long_history_can_be_dropped() -> None:
    vocabulary = trieauto.Vocabulary.from_tokens([b"x", None], stop_token_ids=[1])
    matcher = trieauto.compile(trieauto.choices(["x" * 300_000]), vocabulary).matcher()
    assert matcher.accept_tokens([0] * 300_000)
    assert matcher.is_complete
    fork = matcher.fork()
    matcher.rollback(299_999)
    assert matcher.num_accepted == 1
    del matcher
    assert fork.accept_token(1)


def test_threads_share_a_constraint() -> None:
    """Masks are made while others are read; every thread sees the right ones."""
    generator = random.Random(4)
    values = ["".join(generator.choices("abcdef", k=8)) for _ in range(5_000)]
    pieces = {value[i:j] for value in values for i in range(8) for j in range(i + 1, min(i + 4, 9))}
    tokens: list[bytes | None] = [piece.encode() for piece in sorted(pieces)]
    vocabulary = trieauto.Vocabulary.from_tokens([*tokens, None], stop_token_ids=[len(tokens)])
    lazy = trieauto.compile(trieauto.choices(values), vocabulary, mode="lazy")
    eager = trieauto.compile(trieauto.choices(values), vocabulary, mode="eager")
    failures: list[str] = []

    def work(seed: int) -> None:
        local = random.Random(seed)
        bitmask = np.zeros((1, lazy.num_words), np.int32)
        expected = np.zeros((1, lazy.num_words), np.int32)
        for _ in range(300):
            matcher, other = lazy.matcher(), eager.matcher()
            while not other.is_complete:
                matcher.fill_next_token_bitmask(bitmask)
                other.fill_next_token_bitmask(expected)
                if (bitmask != expected).any():
                    failures.append(f"seed {seed}")
                    return
                token_id = int(local.choice(other.allowed_token_ids()))
                if not matcher.accept_token(token_id) or not other.accept_token(token_id):
                    failures.append(f"seed {seed}: refused")
                    return

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_compile_at_once() -> None:
    vocabulary_tokens: list[bytes | None] = [bytes([b]) for b in range(256)]
    results: list[int] = []

    def work(seed: int) -> None:
        vocabulary = trieauto.Vocabulary.from_tokens([*vocabulary_tokens, None], stop_token_ids=[256])
        values = [f"{seed}-{n}" for n in range(30_000)]
        constraint = trieauto.compile(trieauto.choices(values), vocabulary, mode="eager")
        matcher = constraint.matcher()
        assert matcher.accept_tokens(list(f"{seed}-29999".encode()))
        if matcher.value == f"{seed}-29999":
            results.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(6))


def test_constraints_are_freed_without_the_garbage_collector() -> None:
    """A server compiles a set for each request: what it costs must go when the last matcher goes."""
    vocabulary = trieauto.Vocabulary.from_tokens(TOKENS, stop_token_ids=[3])
    gc.collect()
    gc.disable()
    try:
        constraint = trieauto.compile(trieauto.choices(["ab", "abc"]), vocabulary, mode="lazy")
        constraint.make_ready(0)
        matcher = constraint.matcher()
        gone = weakref.ref(constraint)
        del constraint
        assert matcher.accept_token(2)
        del matcher
        assert gone() is None
    finally:
        gc.enable()


def test_copies_are_forks(constraint: trieauto.Constraint) -> None:
    """A copy shares nothing that moves: neither moves, or outlives, the other's record."""
    matcher = constraint.matcher()
    assert matcher.accept_token(0)
    for duplicate in (copy.copy(matcher), copy.deepcopy(matcher), pickle.loads(pickle.dumps(matcher))):
        assert duplicate.accept_token(1)
        assert duplicate.num_accepted == 2
        assert matcher.num_accepted == 1
        duplicate.rollback(2)
        assert duplicate.allowed_token_ids().tolist() == constraint.matcher().allowed_token_ids().tolist()
        del duplicate
        others = [constraint.matcher() for _ in range(3)]
        assert all(other.accept_token(2) for other in others)
        assert matcher.allowed_token_ids().tolist() == [1]
    matcher.__del__()
    records = [constraint.matcher() for _ in range(2_000)]
    assert len({other._record for other in records}) == 2_000


def test_what_other_processes_need_can_be_pickled(constraint: trieauto.Constraint) -> None:
    for mode in ("eager", "lazy"):
        original = trieauto.compile(constraint.automaton, constraint.vocabulary, mode=mode)
        original.make_ready(0)
        restored = pickle.loads(pickle.dumps(original))
        assert restored.vocabulary.fingerprint == original.vocabulary.fingerprint
        assert restored.stats() | {"ready_masks": 1, "ready_masks_made": 1, "bytes": 0} == original.stats() | {
            "bytes": 0
        }
        matcher = restored.matcher()
        assert matcher.accept_tokens([2, 4, 3])
        assert matcher.value == "abc"
    error = trieauto.UnreachableValueError("no tokens for 'x'", ["x"])
    assert pickle.loads(pickle.dumps(error)).values == ["x"]
    with pytest.raises(trieauto.TrieautoError, match="cannot be copied"):
        copy.deepcopy(trieauto.TokenBitmask(1, 70))


def test_nothing_that_kernels_read_can_be_set(constraint: trieauto.Constraint) -> None:
    with pytest.raises(trieauto.TrieautoError, match="does not change"):
        constraint.vocabulary.size = 1
    with pytest.raises(trieauto.TrieautoError, match="does not change"):
        del constraint.automaton
    with pytest.raises(AttributeError):
        constraint.matcher().constraint = constraint  # type: ignore[misc]
    with pytest.raises(AttributeError):
        trieauto.TokenBitmask(1, 70).array = None  # type: ignore[misc, assignment]
    constraint.content_tokens(0)[:] = 4
    assert 4 not in constraint.matcher().allowed_token_ids()


@pytest.mark.parametrize("state", [-1, 10**9, 4, None, 1.0, True])
def test_states_that_do_not_exist(constraint: trieauto.Constraint, state: int) -> None:
    for mode in ("eager", "lazy"):
        compiled = trieauto.compile(constraint.automaton, constraint.vocabulary, mode=mode)
        for method in (compiled.content_tokens, compiled.make_ready, compiled.only_value, compiled.most_tokens_after):
            with pytest.raises(trieauto.TrieautoError, match="is not one of the 4 states"):
                method(state)


def test_numbers_of_wrong_kinds(constraint: trieauto.Constraint) -> None:
    matcher = constraint.matcher()
    bitmask = trieauto.allocate_token_bitmask(1, 70)
    for wrong in ("0", None, 1.0, 2**63, -(2**70)):
        with pytest.raises(trieauto.TrieautoError):
            matcher.fill_next_token_bitmask(bitmask, wrong)  # type: ignore[arg-type]
        with pytest.raises(trieauto.TrieautoError):
            matcher.rollback(wrong)  # type: ignore[arg-type]
        with pytest.raises(trieauto.TrieautoError):
            matcher.jump_forward_string(wrong)  # type: ignore[arg-type]
    for number in (2**63, -(2**70)):
        with pytest.raises(trieauto.TokenNotAllowedError, match="outside the vocabulary"):
            matcher.accept_token(number)
    for ids in (97, None, b"ab", bytearray(b"a")):
        with pytest.raises(trieauto.TokenNotAllowedError, match="list"):
            matcher.accept_tokens(ids)  # type: ignore[arg-type]
    for rows, size in ((-1, 10), (1.5, 10), (1, None), (1, -5), (0, 5), (True, 5)):
        for make in (trieauto.allocate_token_bitmask, trieauto.TokenBitmask):
            with pytest.raises(trieauto.TrieautoError, match="at least 1"):
                make(rows, size)  # type: ignore[arg-type]
    with pytest.raises(trieauto.TrieautoError, match=r"constraint\.matcher"):
        trieauto.Matcher(constraint.automaton)  # type: ignore[arg-type]


def test_arrays_of_numpys_other_kinds(constraint: trieauto.Constraint) -> None:
    for bitmask in (np.ma.zeros((2, 3), dtype=np.int32), np.zeros((2, 3), np.int32).view(np.matrix)):
        for _ in range(2):
            constraint.matcher().fill_next_token_bitmask(bitmask, 1)
            trieauto.fill_next_token_bitmasks([constraint.matcher()], bitmask, [1])
        assert bits(np.asarray(bitmask)[1].copy()) == constraint.matcher().allowed_token_ids().tolist()


def test_auto_stores_all_masks_once_that_pays() -> None:
    generator = random.Random(5)
    values = ["".join(generator.choices("abcd", k=6)) for _ in range(400)]
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    vocabulary = trieauto.Vocabulary.from_tokens([*tokens, b"ab", b"cd", None], stop_token_ids=[258])
    auto = trieauto.compile(trieauto.choices(values), vocabulary)
    eager = trieauto.compile(trieauto.choices(values), vocabulary, mode="eager")
    bitmask, expected = np.zeros((1, auto.num_words), np.int32), np.zeros((1, auto.num_words), np.int32)
    modes = []
    for _ in range(1_000):
        modes.append(auto.mode)
        matcher, other = auto.matcher(), eager.matcher()
        for _ in range(generator.randrange(6)):
            token_id = int(generator.choice(other.allowed_token_ids()))
            assert matcher.accept_token(token_id)
            assert other.accept_token(token_id)
        matcher.fill_next_token_bitmask(bitmask)
        other.fill_next_token_bitmask(expected)
        assert (bitmask == expected).all()
    assert modes[0] == "lazy"
    assert auto.mode == "eager"
    assert modes == sorted(modes, reverse=True)  # once, and for good
    assert auto.stats()["stored_mask_entries"] == eager.stats()["stored_mask_entries"]
    assert pickle.loads(pickle.dumps(auto)).mode == "eager"


def test_auto_stays_lazy_where_masks_are_too_many_to_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constraint_module, "STORE_LIMIT", 100)
    vocabulary = trieauto.Vocabulary.from_tokens([b"x" * n for n in range(1, 40)] + [None], stop_token_ids=[39])
    constraint = trieauto.compile(trieauto.choices(["x" * 300]), vocabulary)
    bitmask = trieauto.allocate_token_bitmask(1, vocabulary.size)
    for _ in range(1_200):
        matcher = constraint.matcher()
        assert matcher.accept_token(20)
        matcher.fill_next_token_bitmask(bitmask)
        assert bits(bitmask[0]) == list(range(39))
    assert constraint.mode == "lazy"


def test_numbers_of_very_many_digits_get_a_typed_error() -> None:
    vocabulary = trieauto.Vocabulary.from_tokens([b"a", None], stop_token_ids=[1])
    constraint = trieauto.compile(trieauto.choices(["a"]), vocabulary)
    matcher = constraint.matcher()
    huge = 10**5000  # more than Python writes by default
    for call in (
        lambda: constraint.matcher(-huge),
        lambda: matcher.set_budget(-huge),
        lambda: matcher.accept_token(huge),
        lambda: matcher.accept_tokens([-huge]),
        lambda: matcher.validate_tokens([huge]),
        lambda: matcher.rollback(huge),
        lambda: matcher.jump_forward_string(huge),
        lambda: trieauto.choices([huge]),  # type: ignore[list-item]
        lambda: trieauto.literal("a").repeat(huge, huge),
        lambda: trieauto.Vocabulary.from_tokens([b"a", None], stop_token_ids=[huge]),
        lambda: trieauto.Vocabulary.from_tokens([b"a", None], stop_token_ids=[1], size=huge),
        lambda: trieauto.token_automaton(num_states=huge, edges=[(0, 0, 1)], start=0, accepting=[1]),
    ):
        with pytest.raises(trieauto.TrieautoError):
            call()
