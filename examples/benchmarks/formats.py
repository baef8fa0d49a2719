"""Strings of a fixed form by a set of characters for each position, against regexes: Table 17 of the trie paper.

    python examples/benchmarks/tokenizers_fetch.py    once: three of the families are fetched
    python examples/benchmarks/formats.py             six minutes
    python examples/benchmarks/formats.py --quick     a try with two families (half a minute)

Needs ``pip install "trieauto[bench,demo]" dashscope ai2-olmo``. ``trieauto.fixed_format`` is measured beside XGrammar
and LLGuidance, each given the regex of the same language, and beside ``trieauto.regex``. Each format is timed from its
name or pattern to the first mask, the tokenizer being ready, and for each later mask along random strings of that form.
``fixed_format`` reads what a name stands for once in a process, and no engine may keep what it compiled. Masks are
compared. Writes results/formats.json and a plot. Keep the machine quiet while it runs.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from family_measures import Effort, make_engines, preparations, tried
from format_claims import FamilyFormats, FormatFigures, claims, draw
from measure import clocked
from ours import Trieauto
from peers import Engine, Form, LLGuidance, XGrammar, lark_regex
from report import Report, progress
from results import DIRECTORY, Results, add_from_json, earlier_run
from vocabularies import FAMILIES, VOCABULARIES, ByteVocabulary, families_here
from walks import Walk, WalkTimer, disagreements

import trieauto

DIGIT, HEX = "0123456789", "0123456789abcdef"
# The paper's four formats: the regex that engines are given, and the characters of each position, for random strings.
PATTERNS = {
    "date": "[0-9]{4}-[01][0-9]-[0-3][0-9]",
    "time": "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]",
    "date-time": "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]Z",
    "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
}
_DATE = [*[DIGIT] * 4, "-", "01", DIGIT, "-", "0123", DIGIT]
_TIME = ["012", DIGIT, ":", "012345", DIGIT, ":", "012345", DIGIT]
POSITIONS = {
    "date": _DATE,
    "time": _TIME,
    "date-time": [*_DATE, "T", *_TIME, "Z"],
    "uuid": [*[HEX] * 8, *["-", *[HEX] * 4] * 3, "-", *[HEX] * 12],
}


class FixedFormat(Trieauto):
    """``trieauto.fixed_format``, given the format's name."""

    name = "trieauto"
    forms = (Form("fixed_format", str),)

    def compile(self, form: Form, source: str) -> trieauto.Constraint:
        return trieauto.compile(trieauto.fixed_format(source), self.vocabulary)


class Regex(Trieauto):
    """``trieauto.regex``, which knows nothing of positions."""

    name = "trieauto, regex"
    forms = (Form("regex", PATTERNS.__getitem__),)

    def compile(self, form: Form, source: str) -> trieauto.Constraint:
        return trieauto.compile(trieauto.regex(source), self.vocabulary)


class XGrammarRegex(XGrammar):
    """XGrammar, given the regex, on as many threads as it takes by itself and on one."""

    forms = (Form("regex", PATTERNS.__getitem__), Form("regex, one thread", PATTERNS.__getitem__))


class LLGuidanceRegex(LLGuidance):
    """LLGuidance, given the regex."""

    forms = (Form("lark terminal", lambda name: lark_regex(PATTERNS[name])),)


ENGINES: tuple[type[Engine], ...] = (FixedFormat, Regex, XGrammarRegex, LLGuidanceRegex)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two of the families that are here")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, metavar="NAME", help=", ".join(FAMILIES))
    parser.add_argument("--results", type=Path, default=DIRECTORY, metavar="DIR", help="where to write")
    add_from_json(parser)
    options = parser.parse_args(arguments)
    if options.from_json is not None:
        figures, earlier = earlier_run(options.from_json, "formats")
        kept = [FamilyFormats.of_json(name, figures_of) for name, figures_of in figures["families"].items()]
        return _save(kept, options.results, earlier)
    here, missing = families_here()
    names = options.families or (here[:2] if options.quick else list(FAMILIES))
    if set(names) & set(missing):
        print("\n".join(f"{FAMILIES[name]}: {missing[name]}" for name in names if name in missing), file=sys.stderr)
        return 2
    effort = Effort(0.05, 3, 8) if options.quick else Effort(1.0, 31, 64)
    report = Report()
    return _save([_measure(name, effort, report) for name in names], options.results, {})


def _save(families: list[FamilyFormats], directory: Path, earlier: dict[str, Any]) -> int:
    results = Results("formats", "Fixed formats against regexes, by tokenizer (Table 17)")
    results.earlier = earlier
    results.figures = {"families": {family.name: family.as_json() for family in families}}
    results.claims = claims(families)
    draw(families, directory / "formats.svg")
    results.plots = {
        "formats.svg": "How many times faster than XGrammar's regex a format has its first mask, by tokenizer."
    }
    print(f"\n{results.save(directory)}")
    for claim in results.claims:
        print(f"{claim.verdict:<14} {claim.where}: {claim.says}\n{'':<15}{claim.measured} {claim.comment}")
    return 1 if any(family.different for family in families) else 0


def _measure(name: str, effort: Effort, report: Report) -> FamilyFormats:
    progress(FAMILIES[name])
    vocabulary = VOCABULARIES[name]()
    engines = make_engines(vocabulary, ENGINES)
    family = FamilyFormats(name, vocabulary.size, preparations(vocabulary, effort), {})
    section = report.section(f"{family.label}, {family.size:,} ids; a ratio is an engine's cost over fixed_format's")
    for who, timing in family.preparations.items():
        section.add("tokenizer ready", who, timing)
    for format_name in PATTERNS:
        family.formats[format_name] = figures = _measure_format(format_name, engines, vocabulary, effort)
        for what, timings in (("first mask", figures.first_masks), ("one mask", figures.masks)):
            for who, timing in timings.items():
                ratio = None if who == "trieauto" else timing.median / timings["trieauto"].median
                section.add(format_name, f"{who} ({figures.forms[who]}), {what}", timing, ratio=ratio)
        for who, different in figures.different.items():
            section.add(format_name, f"{who}: other masks", different, at_most=0, note=f"of {figures.compared} places")
    return family


def _measure_format(name: str, engines: dict[str, Engine], vocabulary: ByteVocabulary, effort: Effort) -> FormatFigures:
    chosen: dict[str, Form] = {}
    for who, engine in engines.items():
        seconds = tried(engine, engine.forms, {form: form.source(name) for form in engine.forms})
        chosen[who] = min(seconds, key=seconds.__getitem__)
    first = effort.time(
        {
            who: clocked(engine.first_mask, chosen[who], chosen[who].source(name), engine.allocate(1))
            for who, engine in engines.items()
        }
    )
    compiled = {who: engine.compile(chosen[who], chosen[who].source(name)) for who, engine in engines.items()}
    walks = _walks(name, vocabulary, effort.walks)
    masks = effort.time({who: WalkTimer(engines[who], made, walks) for who, made in compiled.items()})
    others = _walks(name, vocabulary, effort.walks, seed=2)
    different = disagreements(engines, compiled, others, vocabulary)
    return FormatFigures(first, {who: form.name for who, form in chosen.items()}, masks, len(others), different)


def _walks(name: str, vocabulary: ByteVocabulary, count: int, seed: int = 1) -> list[Walk]:
    """Random strings of the format, each randomly spelled."""
    rng = random.Random(seed)
    strings = ["".join(map(rng.choice, POSITIONS[name])) for _ in range(count)]
    return [vocabulary.random_tokens(string.encode(), rng) for string in strings]


if __name__ == "__main__":
    sys.exit(main())
