"""The trie paper's claims about vLLM (tables 3 and 13, figure 1b), judged by the lines of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from curves import Curve, draw_curves
from engine_claims import MODELS, rates, share_valid, tokens_each
from lines import JsonLine, Lines, MissingLineError, Subject
from results import Claim
from wording import duration, times

_claim = partial(Claim, "trie")
BATCHES = (1, 16, 64, 256)
K = "K=1,000"
WAYS = {
    "trieauto, processor": "processor",
    "trieauto, backend": "backend",
    "XGrammar": "xgrammar",
    "LLGuidance": "guidance",
}
FREE = "without constraint"
ORDER = f"{' / '.join(WAYS)} / {FREE}"


def _line(lines: Lines, model: str, way: str, case: str, batch: int) -> JsonLine | None:
    """The cell of a way, if it was measured and all of its answers were in the set."""
    if way == FREE:
        found = lines.some(f"{model}, free text", f"batch {batch}")
    else:
        found = lines.some(f"{model}, {WAYS[way]}", case, f"choice, batch {batch}")
    usable = [line for line in found if line["timing"] is not None and (way == FREE or share_valid(line) == 100)]
    return usable[0] if usable else None


def _rate(lines: Lines, model: str, way: str, case: str, batch: int) -> float | None:
    line = _line(lines, model, way, case, batch)
    return None if line is None else 1 / float(line["timing"]["median"])


def _all(lines: Lines, model: str, batch: int, ways: Sequence[str]) -> list[float]:
    """The rates of some ways, all of which must be there."""
    found = [_rate(lines, model, way, K, batch) for way in ways]
    if None in found:
        raise MissingLineError(f"{model}, {K}, batch {batch}: {', '.join(ways)}")
    return [rate for rate in found if rate is not None]


def _batches(lines: Lines, model: str) -> list[int]:
    """Those in which our processor and XGrammar were measured."""
    ways = ("trieauto, processor", "XGrammar")
    found = [batch for batch in BATCHES if all(_rate(lines, model, way, K, batch) for way in ways)]
    if not found:
        raise MissingLineError(f"{model}, {K}, processor and xgrammar")
    return found


def _throughput(model: str, lines: Lines) -> Iterator[Claim]:
    batches = _batches(lines, model)
    by_batch = {batch: [_rate(lines, model, way, K, batch) for way in (*WAYS, FREE)] for batch in batches}
    last = batches[-1]
    ours, theirs = _all(lines, model, last, ["trieauto, processor", "XGrammar"])
    ratio = ours / theirs
    reported = {last: "219 / – / 7.5 / – / 104"} if last == 256 else {}
    yield _claim(
        where="Table 3, Figure 1b, Abstract",
        says=f"vLLM serves 29 times the requests with the trie at batch 256, measured with {MODELS[model]} "
        f"(requests/s: {ORDER})",
        reported="; ".join(f"batch {batch}: {figures}" for batch, figures in reported.items()) or "29× at batch 256",
        measured="; ".join(f"batch {batch}: {rates(found)}" for batch, found in by_batch.items()),
        verdict="holds" if ratio >= 20 else "in part" if ratio >= 1.5 else "does not hold",
        comment=f"Ours is {times(ratio)} XGrammar's rate at batch {last}. The paper's is of Qwen3-8B on an "
        "A100; here two CPU cores compute the model and the masks.",
        order=1 if model == "random" else 2,
    )


def _early_end(lines: Lines) -> Iterator[Claim]:
    parts, ratios = [], []
    for model in MODELS:
        ours = _line(lines, model, "trieauto, processor", K, 256)
        free = _line(lines, model, FREE, K, 256)
        if ours is None or free is None:
            raise MissingLineError(f"{model}, {K}, batch 256, with and without constraint")
        ratio = free["timing"]["median"] / ours["timing"]["median"]
        ratios.append(ratio)
        parts.append(f"{model}: {times(ratio)} the rate, {tokens_each(ours):g} against {tokens_each(free):g} tokens")
    yield _claim(
        where="Table 3, early end",
        says="The trie serves more requests than free text, because answers end at a leaf",
        reported="219 against 104 requests/s, 3.2 against 8.7 tokens",
        measured=", ".join(parts),
        verdict="holds" if min(ratios) > 1 else "in part" if max(ratios) > 1 else "does not hold",
        comment="Free text runs to its own stop token, at most 64 tokens here. By the token, masks still cost: the "
        "trie does not make a step faster than an unconstrained one.",
        order=3,
    )


def _tokens(lines: Lines) -> Iterator[Claim]:
    parts, same = [], []
    for model in MODELS:
        found = [_line(lines, model, way, K, 256) for way in ("trieauto, processor", "XGrammar")]
        counts = [tokens_each(line) for line in found if line is not None]
        if len(counts) < 2 or None in counts:
            raise MissingLineError(f"{model}, {K}, batch 256, tokens")
        parts.append(f"{model}: {counts[0]:g} and {counts[1]:g}")
        same.append(counts[0] == counts[1])
    yield _claim(
        where="Table 3, tokens",
        says="Trie and XGrammar generate the same number of tokens",
        reported="3.2 a request, both",
        measured=", ".join(parts),
        verdict="holds" if all(same) else "does not hold",
        comment=""
        if all(same)
        else "The content is the same; trieauto ends a complete answer without a step for the stop token.",
        order=4,
    )


def _path(lines: Lines) -> Iterator[Claim]:
    ratios = {}
    for model in MODELS:
        for batch in _batches(lines, model):
            processor, backend = _all(lines, model, batch, ["trieauto, processor", "trieauto, backend"])
            ratios[model, batch] = processor / backend
    best = max(ratios.values())
    yield _claim(
        where="Section 5.1, integration path",
        says="29× is 7× of faster masks times a serving path that only precomputed masks can take",
        reported="29/7, about 4×, by going round the guided decoding pipeline",
        measured="the rate with the same masks as a logits processor, over that through the pipeline: "
        + ", ".join(f"{model}, batch {batch} {times(ratio)}" for (model, batch), ratio in ratios.items()),
        verdict="holds" if min(ratios.values()) >= 3 else "in part" if best >= 1.2 else "does not hold",
        comment="trieauto has both ways in, so the path can be told from the masks. vLLM is newer than the paper's.",
        order=5,
    )


def _saturation(lines: Lines) -> Iterator[Claim]:
    growths = {}
    for model in MODELS:
        growths[model] = [
            _all(lines, model, 256, [way])[0] / _all(lines, model, 16, [way])[0]
            for way in ("trieauto, processor", "XGrammar")
        ]
    theirs = [growth for _, growth in growths.values()]
    ahead = [ours > other for ours, other in growths.values()]
    yield _claim(
        where="Appendix E, saturation",
        says="XGrammar saturates in vLLM (near 7.5 requests/s) while the trie goes on scaling with the batch",
        reported="7.5 against 219 requests/s at batch 256",
        measured="rate at batch 256 over batch 16: "
        + ", ".join(f"{model} {times(a)} (trieauto), {times(b)} (XGrammar)" for model, (a, b) in growths.items()),
        verdict="holds" if max(theirs) < 1.3 and all(ahead) else "in part" if any(ahead) else "does not hold",
        comment="On two cores the model itself soon saturates, for all engines alike.",
        order=2,
    )


def _one_request(lines: Lines) -> Iterator[Claim]:
    cold = {
        (way, form, line["case"]): line["timing"]["median"]
        for way in WAYS
        for form in ("choice", "regex")
        for line in lines.some(f"smollm2, {WAYS[way]}, first answers", who=form)
        if line["timing"] is not None
    }
    if cold:
        cases = list(dict.fromkeys(case for _, _, case in cold))
        shown = {
            "trieauto, choice": ("trieauto, backend", "choice"),
            "XGrammar, choice": ("XGrammar", "choice"),
            "XGrammar, regex": ("XGrammar", "regex"),
        }
        measured = "; ".join(
            f"{case}: "
            + " / ".join(duration(cold[(*key, case)]) if (*key, case) in cold else "–" for key in shown.values())
            for case in cases
        )
        what = f"first answer beyond a free one of as many tokens: {' / '.join(shown)}"
        ours, theirs = (
            [cold[(*shown[name], case)] for case in cases if (*shown[name], case) in cold]
            for name in ("trieauto, choice", "XGrammar, regex")
        )
    else:
        cases = [case for case in (K, "K=10,000") if _line(lines, "smollm2", "XGrammar", case, 1)]
        found = {
            case: [_line(lines, "smollm2", way, case, 1) for way in ("trieauto, backend", "XGrammar")] for case in cases
        }
        pairs = {case: [float(line["timing"]["median"]) for line in pair if line] for case, pair in found.items()}
        pairs = {case: pair for case, pair in pairs.items() if len(pair) == 2}
        if not pairs:
            raise MissingLineError("smollm2, one request")
        measured = "; ".join(f"{case}: {' / '.join(map(duration, pair))}" for case, pair in pairs.items())
        what = "one request, set compiled before: trieauto / XGrammar"
        ours, theirs = ([pair[place] for pair in pairs.values()] for place in (0, 1))
    if not ours or not theirs:
        raise MissingLineError("smollm2, one request, trieauto and XGrammar")
    ahead = ours[-1] < theirs[-1]
    is_flat = max(ours) <= 2 * min(ours)
    yield _claim(
        where="Table 13",
        says=f"A single request is flat in K by choice, and grows with K by XGrammar's regex ({what})",
        reported="0.05 to 0.10 s by choice for K=500 to 10,000; up to 5.88 s by regex at K=10,000",
        measured=measured,
        verdict="holds" if is_flat and ahead else "in part" if ahead else "does not hold",
        comment="Here the set was compiled before; with compiling see Table 8. The paper's table says that both modes "
        "are XGrammar's, its text that choice is the trie's.",
    )


def draw(lines: Lines, directory: Path) -> dict[str, str]:
    """Figure 1b: requests per second by batch."""

    def points(model: str, way: str) -> dict[int, float]:
        rates_of = {batch: _rate(lines, model, way, K, batch) for batch in BATCHES}
        return {batch: rate for batch, rate in rates_of.items() if rate is not None}

    styles = {"trieauto, backend": "--", FREE: ":"}
    panels = {
        title: [Curve(way, points(model, way), style=styles.get(way, "-")) for way in (*WAYS, FREE)]
        for model, title in MODELS.items()
    }
    name = "vllm_throughput.svg"
    if not draw_curves(directory / name, panels, "batch", "requests per second", "number", at_sizes=True):
        return {}
    return {name: "vLLM: requests per second by batch size, K=1,000 tool names (Figure 1b of the trie paper)"}


def _named(model: str) -> partial[Iterator[Claim]]:
    maker = partial(_throughput, model)
    maker.__name__ = f"throughput of {model}"  # type: ignore[attr-defined]
    return maker


SUBJECT = Subject(
    "vllm_throughput",
    "vLLM with each of its backends and with ours: requests per second",
    [*map(_named, MODELS), _early_end, _tokens, _path, _saturation, _one_request],
    draw,
)
