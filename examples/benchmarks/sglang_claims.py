"""The trie paper's claims about other engines, and about sets that change with the query, judged by SGLang's lines."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves
from engine_claims import MODELS, rates, share_valid, tokens_each
from lines import JsonLine, Lines, MissingLineError, Subject
from results import Claim
from wording import duration, span

_claim = partial(Claim, "trie")
BACKENDS = {"trieauto": "trie", "XGrammar": "xgrammar", "LLGuidance": "llguidance"}
CASES = ("K=1,000", "K=5,000", "K=10,000", "ICD-10")
AT_ONCE = (64, 16, 4, 1)


def _line(lines: Lines, model: str, name: str, case: str, at_once: int) -> JsonLine | None:
    """The cell of answers of up to 32 tokens, if all were valid."""
    found = lines.some(f"{model}, {BACKENDS[name]}", case, f"32 tokens at most, {at_once} at once")
    return found[0] if found and share_valid(found[0]) == 100 else None


def _rate(lines: Lines, model: str, name: str, case: str, at_once: int) -> float | None:
    """Requests a second."""
    found = _line(lines, model, name, case, at_once)
    return None if found is None else found["number"]


def _tokens(lines: Lines, model: str, name: str, case: str, at_once: int) -> float | None:
    """Tokens a second."""
    found = _line(lines, model, name, case, at_once)
    return None if found is None else found["number"] * (tokens_each(found) or 0.0)


def throughput(lines: Lines) -> Iterator[Claim]:
    rows, ratios, by_token, at_once = [], [], [], 0
    for model in MODELS:
        for case in CASES:
            sizes = [size for size in AT_ONCE if _rate(lines, model, "trieauto", case, size)]
            if not sizes:
                continue
            at_once = sizes[0]
            found = [_rate(lines, model, name, case, at_once) for name in BACKENDS]
            rows.append(f"{model}, {case}: {rates(found)}")
            if found[0] and found[1]:
                ratios.append(found[0] / found[1])
            ours, guided = (_tokens(lines, model, name, case, at_once) for name in ("trieauto", "LLGuidance"))
            if ours and guided:
                by_token.append(ours / guided)
    if not ratios:
        raise MissingLineError("trie and xgrammar")
    yield _claim(
        where="Appendix E, SGLang",
        says="The algorithmic part of the gain transfers to any engine, SGLang among them "
        f"(requests/s, {at_once} at once: {' / '.join(BACKENDS)})",
        reported="not measured; masks 9 times faster",
        measured="; ".join(rows),
        verdict="holds" if min(ratios) > 1.05 else "in part" if max(ratios) > 1.05 else "does not hold",
        comment=f"In SGLang trieauto serves {span(ratios)} XGrammar's requests. "
        + (
            "LLGuidance is given a JSON enum, in whose quotes the model chooses other names, of other lengths: "
            f"in tokens a second trieauto writes {span(by_token)} as many. "
            if by_token
            else ""
        )
        + "A dash: it refused the set, or not all answers were in it.",
        order=3,
    )


def new_sets(lines: Lines) -> Iterator[Claim]:
    what = "first answer of a new set, beyond an unconstrained one"
    rows, ours, theirs = [], [], []
    for model in MODELS:
        for case in CASES:
            try:
                found = [lines.seconds(f"{model}, {backend}", case, what) for backend in BACKENDS.values()]
            except MissingLineError:
                continue
            rows.append(f"{model}, {case}: {' / '.join(duration(max(0.0, seconds)) for seconds in found)}")
            ours.append(found[0])
            theirs.append(found[1])
    if not rows:
        raise MissingLineError(what)
    yield _claim(
        where="Section 5.1, sets per query",
        says="A new set for every query is compiled on the fly by the trie; XGrammar adds a delay that is felt from "
        f"K=1,000 on (SGLang, beyond a free answer: {' / '.join(BACKENDS)})",
        reported="33 to 40 ms against 75 to 239 ms for K=1,000 to 10,000",
        measured="; ".join(rows),
        verdict="holds"
        if all(own < other for own, other in zip(ours, theirs, strict=True)) and max(ours) < 0.1
        else "in part"
        if any(own < other for own, other in zip(ours, theirs, strict=True))
        else "does not hold",
        order=3,
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """Requests per second by how many come at once."""

    def points(model: str, name: str) -> dict[int, float]:
        found = {at_once: _rate(lines, model, name, CASES[0], at_once) for at_once in AT_ONCE}
        return {at_once: rate for at_once, rate in found.items() if rate is not None}

    panels = {title: [Curve(name, points(model, name)) for name in BACKENDS] for model, title in MODELS.items()}
    name = "sglang_throughput.svg"
    if not draw_curves(directory / name, panels, "requests at once", "requests per second", "number", at_sizes=True):
        return {}
    return {name: "SGLang: requests per second by how many come at once, K=1,000 tool names, up to 32 tokens"}


SUBJECT = Subject(
    "sglang_throughput", "SGLang with each of its grammar backends and with ours", [throughput, new_sets], draw
)
