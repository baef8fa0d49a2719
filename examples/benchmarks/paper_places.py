"""Every place of both papers that claims something, in the order of the papers.

The page is sorted by it, and a test demands that each place is on the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

TRIE = """
Abstract: faster masks, faster compiling, more requests per second, always valid
Figure 1a: compile time by K, and the limits of providers
Figure 1b: throughput of vLLM by batch size
Section 1: providers cap enums at about 120 to 1,000 values
Section 2: an FSM of 2,000 tools takes 25 to 50 s to compile
Section 3: LLGuidance's compile times and masks
Section 4.1: masks are looked up
Section 4.2: the automaton of the vocabulary is made once per tokenizer; few tokens are valid after 3 or 4 characters
Table 1: operation counts
Proposition 1: the same masks as the FSM; the trie is the minimal DFA
Table 2: compile time beside a trie of tokens
Section 4.3: a component for mixed schemas
Section 5.1: batch serving, idle GPU, memory, mixed schemas
Table 3: throughput of vLLM at K=1,000
Table 4: compile time and masks by K
Section 5.2: masks cost the same in every tokenizer family
Table 5: compile time in seven tokenizer families
Section 5.3: validity, and thinking first
Table 6: accuracy and validity of three models
Appendix A: doubling K more than doubles latency
Table 7: accuracy and validity of six models in 24 cells
Appendix C: a JSON enum compiles as fast as a regex in XGrammar
Appendix C.1: two prompts
Appendix C.2: the sets, and how much prefix they share
Table 8: end-to-end latency by K
Table 9: schema compliance
Table 10: memory of masks
Table 11: product names and ICD-10-CM
Table 12: ablation at K=5,000
Table 13: vLLM, one request, by K
Appendix E: updates, other engines, LLGuidance as a baseline
Appendix F: operations for one tool out of 2,000
Appendix G.1: the worked example
Appendix G.2: how many states the DFA has
Appendix G.3: the cost of compiling and of masks
Appendix G.5: proof of Proposition 1
Proposition 2: groups of √K
Appendix G.6: a table of transitions overflows the cache
Appendix G.7: the largest K within a time limit
Appendix H.1: operation counts at K=2,000
Appendix H.2: precomputed masks of XGrammar
Appendix H.3: lookup and application apart
Appendix H.4: four phases of compiling
Appendix H.5: memory of a process
Appendix H.6: masks on the GPU
Appendix H.7: prefix sharing
Table 14: prefix sharing of the sets
Table 15: valid tokens by depth
Appendix H.8: tries of characters and of tokens
Appendix H.9: spellings that are not the tokenizer's own
Appendix H.10: other baselines
Appendix H.11: validity at high cardinality
Table 16: validity by K
Appendix H.12: when a trie is worth it
Appendix I: groups first
Appendix J: a shortlist first
Appendix K: fixed formats
Table 17: fixed formats beside XGrammar's regex
Appendix L: advice for practitioners
Appendix M: LLGuidance
Table 18: LLGuidance, XGrammar and the trie
Appendix M.1: batch serving
Table 19: masks of a batch
"""
REACHABILITY = """
Abstract: always whole, O(1), faster by ending early
Section 1: frameworks know no budget
Section 2: the first of its kind
Section 3.1: backward reachability says what can still be finished
Section 3.2: a step is O(1), and allocates nothing
Experiment 1: traps
Experiment 2: JSON under a budget
Experiment 3: an agent that calls tools
Experiment 4: time and memory by states and vocabulary
Experiment 5: a real model
"""
_TEXTS = {"trie": TRIE, "reachability": REACHABILITY}
_SAME = {
    "trie": {
        "Abstract": "Table 4",
        "Section 2": "Appendix F",
        "Section 3": "Table 18",
        "Section 4.1": "Table 4",
        "Section 5.2": "Table 5",
        "Section 5.3": "Table 6",
        "Appendix C.2": "Table 14",
        "Appendix G.2": "Proposition 1",
        "Appendix G.3": "Table 1",
        "Appendix G.5": "Proposition 1",
        "Appendix H.7": "Table 14",
        "Appendix H.11": "Table 16",
        "Appendix K": "Table 17",
        "Appendix M": "Table 18",
        "Appendix M.1": "Table 19",
    },
    "reachability": {},
}
"""What only says in words what is in a table, and the table."""


@cache
def places(paper: str) -> dict[str, str]:
    """What is claimed where, in order."""
    pairs = (line.partition(": ")[::2] for line in _TEXTS[paper].strip().splitlines())
    return dict(pairs)


def named(paper: str, where: str) -> list[str]:
    """The places that the text of a claim's ``where`` names, in the order of its text.

    "Tables 2 and 4", "Table 4, Appendix M", "Section 5.1, mixed schemas" are all understood.
    """
    found = []
    for kind, numbers in re.findall(
        r"(Table|Figure|Section|Appendix|Appendices|Proposition|Experiment|Exp|Abstract)s?\b\.? ?"
        r"((?:[A-M]?\d*[a-b]?(?:\.\d+)*)(?:(?:, | and |, and )[A-M]?\d*[ab]?(?:\.\d+)*(?![A-Za-z]))*)",
        where.replace("Prop.", "Proposition"),
        re.IGNORECASE,
    ):
        kind = {"Exp": "Experiment", "Appendices": "Appendix"}.get(kind.title(), kind.title())
        numbers = [number for number in re.split(r", and |, | and ", numbers) if number]
        found += [f"{kind} {number}" for number in numbers] or [kind]
    return [place for place in found if place in places(paper)]


def missing(paper: str, claimed: Iterable[str]) -> list[str]:
    """The places that no claim is about, given the ``where`` of all claims."""
    found = {place for where in claimed for place in named(paper, where)}
    return [place for place in places(paper) if place not in found and _SAME[paper].get(place) not in found]


def rank(paper: str, where: str) -> float:
    """Where a claim stands on the page; what names no place comes last."""
    order = list(places(paper))
    found = named(paper, where)
    return float(order.index(found[0])) if found else float(len(order))
