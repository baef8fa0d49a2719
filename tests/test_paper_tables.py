"""The programs of the trie paper's tables by K, of the structure of sets and of phases: small runs of each, whose
claims are computed from their figures; and what their figures are made with, against plain ways to the same."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trieauto
from trieauto.reference.regex_dfa import RegexDfa
from trieauto.reference.token_trie import TokenTrie

BENCHMARKS = Path(__file__).parents[1] / "examples" / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import judging  # noqa: E402
import phase_alternatives  # noqa: E402
import phase_compile  # noqa: E402
import structure_sets  # noqa: E402
import structure_tries  # noqa: E402
import token_tries  # noqa: E402
from vocabularies import ByteVocabulary  # noqa: E402

PROGRAMS = ("compile_by_k", "set_structure", "phases")
VERDICTS = {"holds", "in part", "does not hold", "not reproduced"}
VALUES = st.lists(st.text("ab_", min_size=1, max_size=6), min_size=1, max_size=12, unique=True)
LETTERS = [b"a", b"b", b"_"]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a small run of each program leaves behind, all of them in one process."""
    directory = tmp_path_factory.mktemp("results")
    script = (
        f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n"
        f"import {', '.join(PROGRAMS)}\n"
        f"for program in ({', '.join(PROGRAMS)}):\n"
        f"    program.main(['--quick', '--results', {str(directory)!r}])\n"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    found = {}
    for name in PROGRAMS:
        found[name] = json.loads((directory / f"{name}.json").read_text("utf-8"))
        for plot in found[name]["plots"]:
            assert (directory / plot).read_text("utf-8").lstrip().startswith("<?xml")
    return found


def test_every_claim_says_what_is_reported_and_measured(documents: dict[str, dict[str, Any]]) -> None:
    for name, document in documents.items():
        assert document["program"] == name
        assert len(document["claims"]) > 10
        for claim in document["claims"]:
            assert claim["paper"] == "trie"
            assert claim["verdict"] in VERDICTS
            for part in ("where", "says", "reported", "measured"):
                assert claim[part], claim
            if "not measured" in claim["measured"]:
                assert claim["verdict"] == "not reproduced"


def test_all_engines_are_measured_and_their_masks_are_ours(documents: dict[str, dict[str, Any]]) -> None:
    figures = documents["compile_by_k"]["figures"]
    engines = {"trieauto", "trieauto, as in the paper", "GENRE", "GENRE, masks ready"}
    engines |= {"XGrammar", "LLGuidance", "outlines-core"}
    assert engines <= figures["set to first mask"].keys()
    for line in figures["set to first mask"].values():
        assert all(timing["low"] <= timing["median"] <= timing["high"] for timing in line.values())
    for found in figures["places with other masks than ours, and places"].values():
        assert {"XGrammar", "LLGuidance"} <= found.keys()
        assert all(wrong == 0 and places > 0 for wrong, places in found.values())


def test_tries_have_the_same_masks_and_are_not_minimal(documents: dict[str, dict[str, Any]]) -> None:
    figures = documents["set_structure"]["figures"]
    for own in figures["agreement"].values():
        assert own["places"] > 100
        assert own["masks"] == own["ends"] == own["outputs"] == 0
    for shape in (*figures["shapes"].values(), *figures["tools"].values()):
        assert shape["minimal"] < shape["nodes"] <= shape["characters"] + 1
    for count, nodes in figures["token_nodes"].items():
        assert nodes < figures["tools"][count]["nodes"]
    isomorphic = next(claim for claim in documents["set_structure"]["claims"] if "isomorphic" in claim["says"])
    assert isomorphic["verdict"] == "does not hold"
    assert figures["depths"][0]["nodes"] == 1
    assert sum(row["nodes"] for row in figures["depths"]) == figures["tools"]["1000"]["nodes"]


def test_other_ways_lead_to_the_same_masks(documents: dict[str, dict[str, Any]]) -> None:
    figures = documents["phases"]["figures"]
    assert figures["naive"]["agrees"] is True
    assert all(own["different"] == 0 and own["nodes"] > 1_000 for own in figures["precomputed"])
    assert all(own["different"] == 0 and own["places"] > 10 for own in figures["hash_sets"])


@given(st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=1, max_size=12))
def test_a_trie_over_tokens_is_that_of_the_reference(sequences: list[list[int]]) -> None:
    root, count = token_tries.build(sequences)
    reference = TokenTrie(sequences)
    assert count == len(reference.children)
    for path, children in reference.children.items():
        node = root
        for token_id in path:
            node = node[token_id]
        assert node.keys() - {token_tries.END} == children
        assert (token_tries.END in node) == (path in reference.ends)
        words, bits = token_tries.words_and_bits(node, 40)
        row = np.zeros(2, np.int32)
        row[words] = bits
        expected = sorted(children | ({40} if path in reference.ends else set()))
        assert np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist() == expected


@given(VALUES)
def test_the_minimal_automaton_has_as_many_states_as_interegular_finds(values: list[str]) -> None:
    automaton = trieauto.choices(values)
    minimal = RegexDfa.from_values([value.encode() for value in values]).minimised()
    assert structure_tries.minimal_states(automaton) == len(minimal.live)


@given(VALUES)
def test_depths_are_those_of_the_prefixes(values: list[str]) -> None:
    prefixes = {value[:length] for value in values for length in range(len(value) + 1)}
    depths = structure_tries.depths(trieauto.choices(values)).tolist()
    assert sorted(depths) == sorted(map(len, prefixes))
    shape = structure_tries.shape(values)
    assert (shape.nodes, shape.characters) == (len(prefixes), sum(map(len, values)))


@given(VALUES, st.lists(st.text("ab_", min_size=1, max_size=4), max_size=8, unique=True))
def test_masks_by_a_hash_set_and_by_trying_every_token(values: list[str], more: list[str]) -> None:
    tokens: list[bytes | None] = [*LETTERS, *(text.encode() for text in more), None]
    vocabulary = trieauto.Vocabulary.from_tokens(tokens, stop_token_ids=[len(tokens) - 1])
    automaton = trieauto.choices(values)
    constraint = trieauto.compile(automaton, vocabulary, mode="eager")
    byte_vocabulary = ByteVocabulary("small", tokens, len(tokens) - 1)
    plain = phase_alternatives.HashSet(values, byte_vocabulary)
    prefixes = _prefixes(automaton)
    legal = [set(constraint.content_tokens(state).tolist()) for state in range(automaton.num_states)]
    assert [plain.allowed(prefix) for prefix in prefixes] == legal
    tables = vocabulary.tables
    states = np.arange(automaton.num_states)
    arguments = automaton.labels, automaton.links, tables.data, tables.offsets, states
    assert phase_compile._count_naively(*arguments).tolist() == list(map(len, legal))
    assert structure_tries.mask_sizes(constraint).tolist() == list(map(len, legal))
    within = [i for i, token in enumerate(tokens) if token and any(token in value.encode() for value in values)]
    assert phase_alternatives.within(values, byte_vocabulary) == within


def _prefixes(automaton: trieauto.Automaton) -> list[bytes]:
    found = [b""] * automaton.num_states
    for state, above in enumerate(structure_tries.parents(automaton).tolist()):
        if above >= 0:
            found[state] = found[above] + bytes([automaton.labels[state]])
    return found


@pytest.mark.parametrize(("power", "at"), [(1.0, 1_000.0), (0.5, 200.0), (2.0, 30_000.0)])
def test_power_laws_cross_where_they_do(power: float, at: float) -> None:
    sizes = [10, 100, 1_000, 10_000, 100_000]
    flat = dict.fromkeys(sizes, 3.0)
    rising = {size: 3.0 * (size / at) ** power for size in sizes if size != at}
    (found,) = judging.crossovers(flat, rising)
    assert math.isclose(found, at, rel_tol=1e-9)
    assert math.isclose(judging.cost_at(rising, found), 3.0, rel_tol=1e-9)
    largest, is_bound = judging.largest_within(rising, 3.0)
    assert math.isclose(largest, at, rel_tol=1e-9)
    assert not is_bound
    assert judging.crossovers(flat, dict.fromkeys(sizes, 4.0)) == []
    assert judging.largest_within(flat, 5.0) == (100_000, True)


def test_product_names_are_distinct_and_share_about_as_much_as_the_papers() -> None:
    names = structure_sets.product_names()
    assert len(set(names)) == structure_sets.PRODUCTS
    assert all(len(name.split(" > ")) == 4 for name in names)
    assert abs(structure_tries.shape(names).ratio - 0.40) < 0.05
    assert structure_sets.product_names() == names
