"""Laws of the demo's sets: exactly as many distinct values as asked, the same everywhere, of the stated form."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys

import pytest

from trieauto.demo_sets import MAX_TOOL_NAMES, icd10_cm_codes, tool_names
from trieauto.errors import TrieautoError

FORM = re.compile(r"([a-z]+\.)?[a-z]+_([a-z]+_){0,2}[a-z]+")


def prefix_sharing_ratio(values: list[str]) -> float:
    """Nodes of the character trie over characters of the set (paper, appendix H.7)."""
    nodes = {value[:length] for value in values for length in range(len(value) + 1)}
    return len(nodes) / sum(map(len, values))


@pytest.mark.parametrize("count", [1, 2, 3, 10, 333, 334, 1_000, 1_100, 1_429, 5_000, 60_000, MAX_TOOL_NAMES])
def test_exactly_count_distinct_names_of_the_form(count: int) -> None:
    names = tool_names(count)
    assert len(names) == len(set(names)) == count
    assert all(FORM.fullmatch(name) for name in names)
    assert sum("." in name for name in names) == count - round(0.3 * count)


def test_qualifiers_come_only_when_the_pool_is_used_up() -> None:
    assert not any(name.count("_") > 1 for name in tool_names(300))
    names = tool_names(1_100)
    assert sum(name.count("_") == 1 for name in names if "." not in name) == 100
    assert not any(name.count("_") > 1 for name in names if "." in name)


def test_prefix_sharing_is_near_the_papers() -> None:
    assert prefix_sharing_ratio(tool_names(1_000)) == pytest.approx(0.43, abs=0.01)


def test_names_depend_on_seed_and_not_on_hash_order() -> None:
    program = "from trieauto.demo_sets import tool_names; print(*tool_names(5_000, seed=7), sep='\\n', end='')"
    digests = {
        hashlib.sha256(
            subprocess.run(
                [sys.executable, "-c", program],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
            ).stdout.replace(b"\r\n", b"\n")
        ).hexdigest()
        for seed in ("1", "2")
    }
    assert digests == {hashlib.sha256("\n".join(tool_names(5_000, seed=7)).encode()).hexdigest()}
    assert tool_names(5_000, seed=8) != tool_names(5_000, seed=7)


@pytest.mark.parametrize("count", [0, -1, MAX_TOOL_NAMES + 1])
def test_a_count_out_of_range_is_named(count: int) -> None:
    with pytest.raises(TrieautoError, match=str(count)):
        tool_names(count)


def test_icd10_cm_codes_are_all_there() -> None:
    codes = icd10_cm_codes()
    assert len(codes) == len(set(codes)) == 74_719
    assert {"B20", "F99", "P84", "R99", "Z66"} <= set(codes)
    assert all(re.fullmatch(r"[A-Z][0-9A-Z]{2}(\.[0-9A-Z]{1,4})?", code) for code in codes)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simple_icd_10_cm", None)
    with pytest.raises(ModuleNotFoundError, match=r"trieauto\[demo\]"):
        icd10_cm_codes()
