"""Vocabularies: what is taken and refused, the token trie and Aho-Corasick over it, the caches."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto import disk_cache, token_tables
from trieauto.kernels.token_trie import BASE, CHECK, FIRST, LAST

from . import tokenizers_for_tests as real


def _spelling(tables: token_tables.TokenTables, data: bytes) -> list[int]:
    """The ids that spell ``data``, by the double array."""
    slot = 0
    for byte in data:
        child = int(tables.nodes[slot, BASE]) + byte
        if tables.nodes[child, CHECK] != slot:
            return []
        slot = child
    return tables.token_ids[tables.nodes[slot, FIRST] : tables.nodes[slot, LAST]].tolist()


@given(tokens=st.lists(st.one_of(st.none(), st.binary(max_size=6)), min_size=1, max_size=80))
def test_the_token_trie_finds_every_token_and_no_other(tokens: list[bytes | None]) -> None:
    if not any(tokens):
        return
    vocabulary = trieauto.Vocabulary.from_tokens([*tokens, None], stop_token_ids=[len(tokens)])
    assert vocabulary.tokens == [token or None for token in tokens] + [None]
    present = {token for token in tokens if token}
    for token in present:
        assert sorted(_spelling(vocabulary.tables, token)) == [i for i, other in enumerate(tokens) if other == token]
    for other in {token[:-1] for token in present} | {token + b"x" for token in present}:
        assert bool(_spelling(vocabulary.tables, other)) == (other in present)


@given(tokens=st.lists(st.binary(min_size=1, max_size=5), min_size=1, max_size=40), text=st.binary(max_size=30))
def test_aho_corasick_finds_what_a_search_finds(tokens: list[bytes], text: bytes) -> None:
    text += b"".join(tokens)[:20]
    vocabulary = trieauto.Vocabulary.from_tokens([*tokens, None], stop_token_ids=[len(tokens)])
    nodes = vocabulary.tables.nodes
    failures, outputs, lengths = vocabulary.tables.aho_corasick
    found = set()
    slot = 0
    for position, byte in enumerate(text):
        while nodes[nodes[slot, BASE] + byte, CHECK] != slot and slot != 0:
            slot = int(failures[slot])
        child = int(nodes[slot, BASE]) + byte
        slot = child if nodes[child, CHECK] == slot else 0
        at = slot
        while at != 0:
            if nodes[at, LAST] > nodes[at, FIRST]:
                found.add((position + 1 - int(lengths[at]), position + 1))
            at = int(outputs[at])
    expected = {(i, j) for i in range(len(text)) for j in range(i + 1, len(text) + 1) if text[i:j] in tokens}
    assert found == expected


@pytest.mark.parametrize(
    ("tokens", "options", "message"),
    [
        ([b"a"], {"stop_token_ids": []}, "no stop token"),
        ([b"a"], {"stop_token_ids": [1]}, "outside the vocabulary of 1"),
        ([b"a"], {"stop_token_ids": [-1]}, "negative"),
        ([b"a"], {"stop_token_ids": ["</s>"]}, "'</s>' is not an integer"),
        ([b"a", b"b", b"c"], {"stop_token_ids": [0], "size": 2}, "only 2 wide"),
        ([b"a", "b"], {"stop_token_ids": [0]}, "token 1 is 'b'"),
        ([b"a"], {"stop_token_ids": [0]}, "no token but stop ids"),
        ([None, b""], {"stop_token_ids": [0, 1]}, "no token but stop ids"),
        ([], {"stop_token_ids": [0], "size": 3}, "no token but stop ids"),
        ({b"b": 1, b"a": 0}, {"stop_token_ids": [2], "size": 3}, "of type dict"),
        ({b"a", b"b"}, {"stop_token_ids": [2], "size": 3}, "of type set"),
        (None, {"stop_token_ids": [2]}, "of type NoneType"),
        (b"ab", {"stop_token_ids": [0]}, "of type bytes"),
        ([b"a"], {"stop_token_ids": 1}, "list of ids, not 1"),
        ([b"a"], {"stop_token_ids": None}, "list of ids, not None"),
        ([b"a"], {"stop_token_ids": [True], "size": 2}, "True is not an integer"),
        ([b"a"], {"stop_token_ids": [1], "size": "3"}, "size is '3'"),
        ([b"a"], {"stop_token_ids": [1], "size": 3.0}, "size is 3.0"),
        ([b"a"], {"stop_token_ids": [1], "size": 2**36}, "at most 16,777,216"),
        ([b"a"], {"stop_token_ids": [2**31], "size": 2**70}, "at most 16,777,216"),
        ([b"a"], {"stop_token_ids": [1], "size": 2, "prefix_space": "no"}, "prefix_space is 'no'"),
    ],
)
def test_bad_token_lists(tokens: list[bytes | None], options: dict[str, object], message: str) -> None:
    with pytest.raises(trieauto.VocabularyError, match=message):
        trieauto.Vocabulary.from_tokens(tokens, **options)  # type: ignore[arg-type]


def test_long_tokens_and_stop_ids_with_text() -> None:
    long = b"ab" * 3_000
    vocabulary = trieauto.Vocabulary.from_tokens([long, b"</s>", b"a", b"b"], stop_token_ids=[1])
    assert vocabulary.tokens == [long, None, b"a", b"b"]
    for mode in ("eager", "lazy"):
        constraint = trieauto.compile(trieauto.choices([long * 2, "</s>"[:0] + "a"]), vocabulary, mode=mode)
        matcher = constraint.matcher()
        assert matcher.allowed_token_ids().tolist() == [0, 2]
        assert matcher.accept_tokens([0, 0, 1])


def test_vocabularies_with_the_same_tokens_share_their_tables() -> None:
    tokens: list[bytes | None] = [b"shared", b"tables", None]
    one = trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[2])
    other = trieauto.Vocabulary.from_tokens(tuple(tokens), stop_token_ids=[2], size=64)
    assert one.tables is other.tables
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[2]).fingerprint


def test_real_vocabularies(tmp_path: Path) -> None:
    qwen = trieauto.Vocabulary.from_tiktoken(real.qwen_encoding(), size=151_936)
    same = trieauto.Vocabulary.from_tokenizer(real.qwen_huggingface(), size=151_936)
    assert qwen.is_byte_complete
    assert qwen.size == 151_936
    assert qwen.tokens[:151_643] == same.tokens[:151_643]
    assert not qwen.prefix_space
    smollm2 = trieauto.Vocabulary.from_tokenizer(real.smollm2())
    assert not smollm2.is_byte_complete
    assert int((~smollm2.tables.single_bytes).sum()) == 21
    assert smollm2.stop_token_ids == (2,)
    mistral = trieauto.Vocabulary.from_sentencepiece(real.mistral_sentencepiece())
    assert mistral.prefix_space
    assert mistral.is_byte_complete
    pair = [i for i, token in enumerate(mistral.tokens) if token == b"s"]
    assert len(pair) == 2
    assert sorted(_spelling(mistral.tables, b"s")) == pair
    tekken = trieauto.Vocabulary.from_tokenizer(real.mistral_tekken())
    assert tekken.size == 131_072
    olmo = real.olmo_tokenizer_json()
    from_file = trieauto.Vocabulary.from_file(olmo, stop_token_ids=[0])
    directory = tmp_path / "model"
    directory.mkdir()
    (directory / "tokenizer.json").write_bytes(olmo.read_bytes())
    assert trieauto.Vocabulary.from_file(directory, stop_token_ids=[0]).fingerprint == from_file.fingerprint
    with pytest.raises(trieauto.VocabularyError, match="no stop token"):
        trieauto.Vocabulary.from_file(directory)
    with pytest.raises(trieauto.VocabularyError, match="nothing-there"):
        trieauto.Vocabulary.from_file(tmp_path / "nothing-there")
    with pytest.raises(trieauto.VocabularyError, match="100 wide"):
        trieauto.Vocabulary.from_tokenizer(real.smollm2(), size=100)
    with pytest.raises(trieauto.VocabularyError, match="object"):
        trieauto.Vocabulary.from_tokenizer(object())


def test_every_id_of_a_byte_is_legal() -> None:
    """Mistral spells ``s`` with two ids; both lead on."""
    mistral = trieauto.Vocabulary.from_sentencepiece(real.mistral_sentencepiece())
    constraint = trieauto.compile(trieauto.choices(["s"]), mistral, prefix_space="none")
    ids = constraint.matcher().allowed_token_ids().tolist()
    assert [mistral.tokens[i] for i in ids] == [b"s", b"s"]
    assert all(constraint.matcher().accept_token(i) for i in ids)


def test_the_default_prefix_space_follows_the_tokenizer() -> None:
    mistral = trieauto.Vocabulary.from_sentencepiece(real.mistral_sentencepiece())
    constraint = trieauto.compile(trieauto.choices(["Pizza", "Pasta"]), mistral)
    assert constraint.prefix_space == "optional"
    matcher = constraint.matcher()
    canonical = real.mistral_sentencepiece().encode("Pizza")
    assert mistral.tokens[canonical[0]].startswith(b" ")  # type: ignore[union-attr]
    assert matcher.accept_tokens(canonical)
    assert matcher.value == "Pizza"
    assert constraint.matcher().accept_tokens([mistral.tokens.index(b"P"), mistral.tokens.index(b"izz")])


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRIEAUTO_CACHE_DIR", str(tmp_path))
    return tmp_path


ARRAYS = {"a": np.arange(10, dtype=np.int32).reshape(5, 2), "b": np.zeros(0, np.uint8), "c": np.ones(3, np.int64)}


def test_arrays_come_back_as_they_were(own_cache: Path) -> None:
    assert disk_cache.load("kind", "key") is None
    disk_cache.save("kind", "key", ARRAYS)
    loaded = disk_cache.load("kind", "key")
    assert loaded is not None
    assert loaded.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].shape == array.shape
        assert (loaded[name] == array).all()
    assert not list(own_cache.rglob("*.tmp"))


def test_damaged_and_foreign_files_are_not_trusted(own_cache: Path) -> None:
    disk_cache.save("kind", "key", ARRAYS)
    (place,) = own_cache.rglob("*.bin")
    sound = place.read_bytes()
    header, payload = sound.split(b"\n", 1)
    fields = json.loads(header)
    damaged = [
        b"",
        sound[:-1],
        sound + b"x",
        header[:20],
        payload,
        b"\x80\x04" + sound,
        sound.replace(b"trieauto", b"trieautX", 1),
        header + b"\n" + payload[::-1],
        *(
            json.dumps({**fields, **change}).encode() + b"\n" + payload
            for change in (
                {"key": "other"},
                {"kind": "other"},
                {"builder": "other"},
                {"arrays": [["a", "object", [5, 2]]]},
                {"arrays": [["a", "int32", [10**9, 10**9]]]},
                {"arrays": [["a", "int32", [-1, 2]]]},
                {"arrays": "abc"},
                {"digest": None},
            )
        ),
        b"[]\n" + payload,
        b"9" * 100_000,
    ]
    for contents in damaged:
        place.write_bytes(contents)
        assert disk_cache.load("kind", "key") is None
        disk_cache.save("kind", "key", ARRAYS)
        assert place.read_bytes() == sound


def test_only_what_takes_time_to_build_is_kept(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not without end."""
    monkeypatch.setattr(disk_cache, "MAX_FILES", 3)
    for number in range(5):
        small: list[bytes | None] = [b"small%d" % number, None]
        trieauto.Vocabulary.from_tokens(small, stop_token_ids=[1])
    assert not list(own_cache.rglob("*.bin"))
    for number in range(5):
        large: list[bytes | None] = [b"%d-%d" % (number, i) for i in range(10_001)]
        trieauto.Vocabulary.from_tokens([*large, None], stop_token_ids=[10_001])
    assert len(list(own_cache.rglob("*.bin"))) == 3


def test_tables_out_of_range_are_rebuilt(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is whole but holds numbers that would lead outside the arrays."""
    monkeypatch.setattr(token_tables, "MIN_TOKENS_ON_DISK", 0)
    tokens: list[bytes | None] = [b"out", b"of", b"range", b"o", None]
    vocabulary = trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[4])
    tables = vocabulary.tables
    sound = {"nodes": tables.nodes, "token_ids": tables.token_ids}
    packed = token_tables.PackedStrings(tables.data, tables.offsets)
    for column, value in ((BASE, len(tables.nodes)), (CHECK, -2), (FIRST, 5), (LAST, -1)):
        nodes = tables.nodes.copy()
        nodes[0, column] = value
        disk_cache.save("trie", tables.digest, {**sound, "nodes": nodes})
        rebuilt = token_tables.TokenTables(packed, tables.digest)
        assert (rebuilt.nodes == tables.nodes).all()
        stored = disk_cache.load("trie", tables.digest)
        assert stored is not None
        assert (stored["nodes"] == tables.nodes).all()
    failures, outputs, lengths = tables.aho_corasick
    endless = failures.copy()
    slot = int(np.flatnonzero(lengths)[0])
    endless[slot] = slot
    disk_cache.save("aho-corasick", tables.digest, {"failures": endless, "outputs": outputs, "lengths": lengths})
    again = token_tables.TokenTables(packed, tables.digest).aho_corasick
    assert all((a == b).all() for a, b in zip(again, (failures, outputs, lengths), strict=True))


def test_without_a_writable_directory_nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("TRIEAUTO_CACHE_DIR", str(blocked / "below"))
    disk_cache.save("kind", "key", ARRAYS)
    assert disk_cache.load("kind", "key") is None


def test_concurrent_writers(own_cache: Path) -> None:
    """Whoever reads sees one whole file."""
    failures: list[str] = []

    def work(number: int) -> None:
        for _ in range(50):
            disk_cache.save("kind", "key", {"a": np.full(5_000, number, np.int32)})
            loaded = disk_cache.load("kind", "key")
            if loaded is None or len(set(loaded["a"].tolist())) != 1:
                failures.append(f"writer {number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert not list(own_cache.rglob("*.tmp"))
