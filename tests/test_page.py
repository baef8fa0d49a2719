"""The page of ``trieauto inspect --html``: what it carries, and what it shows in a browser, step by step."""

from __future__ import annotations

import base64
import json
import random
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import trieauto
from trieauto.cli import main
from trieauto.cli.page import PageNames, page_data, page_document, write_page
from trieauto.cli.tokenizers import NamedTokenizer, load_named
from trieauto.demo_sets import tool_names

from .browser import chromium
from .tokenizers_for_tests import (
    mistral_file,
    mistral_sentencepiece,
    qwen_tiktoken_file,
    smollm2,
    smollm2_gguf_file,
)

ODD_VALUES = [
    "",
    "</script><script>window.hacked = true</script>",
    "<img src=x onerror='window.hacked = true'>",
    "--> <!-- {{data}} {{script}} &amp; \" ' ` \\ \\x41",
    "two\nlines\tand\r\x00\x07\x7f",
    "\u2028\u2029\u202egnp.exe\u200b\ufeff",
    "שלום עולם",
    "é and e\u0301 and \u0301",
    "Zürich",
    "Zürcher",
    "東京",
    "東",
    "😀",
    "😀👍🏽",
    "get",
    "get_user",
    "get_users",
    "get",  # twice
]
# Two ids spell "ab", none the byte "z", and two tokens are no UTF-8 by themselves.
SMALL_TOKENS = [b"a", b"b", b"ab", b"ab", None, b"c", b" ", b" a", b"\xc3", b"\xa9", b"\xc3\xa9c", b"bz", b"yes"]
SMALL_VALUES = ["a", "ab", "abab", "abc", "é", "éc", "b", "bza", "cz", "cza", "c a", "ababababab", "abba"]


class Case(NamedTuple):
    """A set compiled for a tokenizer, and its page."""

    constraint: trieauto.Constraint
    own_tokens: list[list[int]] | None
    path: Path

    @property
    def values(self) -> list[str]:
        values = self.constraint.automaton.values
        assert values is not None
        return [str(value) for value in values.given]


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, NamedTokenizer]:
    small = trieauto.Vocabulary.from_tokens(SMALL_TOKENS, stop_token_ids=[4, 13], size=14)
    return {
        "smollm2": load_named(str(smollm2_gguf_file().parent)),
        "mistral": load_named(str(mistral_file("tokenizer.model.v1"))),
        "qwen": load_named(str(qwen_tiktoken_file())),
        "small": NamedTokenizer(small, True, None),
    }


@pytest.fixture(scope="module")
def cases(tokenizers: dict[str, NamedTokenizer], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    directory = tmp_path_factory.mktemp("pages")
    tools = tool_names(300)
    spaced = [" a", "b", "  c", "get", " get_user", "b"]
    made = {}
    for name, values, tokenizer, prefix_space in (
        ("odd values, byte-level BPE without 21 bytes", ODD_VALUES, "smollm2", None),
        ("odd values, SentencePiece", ODD_VALUES, "mistral", "optional"),
        ("odd values, every byte", ODD_VALUES, "qwen", None),
        ("a space required", ODD_VALUES, "mistral", "required"),
        ("values with spaces of their own", spaced, "mistral", "optional"),
        ("missing bytes and equal tokens", SMALL_VALUES, "small", None),
        ("missing bytes, a space before", SMALL_VALUES, "small", "optional"),
        ("tools", tools, "smollm2", None),
        ("tools, SentencePiece", tools, "mistral", None),
        ("100,000 tools", tool_names(100_000), "smollm2", None),
    ):
        named = tokenizers[tokenizer]
        constraint = trieauto.compile(
            trieauto.choices(values), named.vocabulary, unreachable="report", prefix_space=prefix_space
        )
        path = directory / f"{len(made)}.html"
        own = None if named.encode is None or len(values) > 1000 else named.encode(values)  # 100,000 take seconds
        write_page(path, constraint, PageNames(f"{name} <b>&", tokenizer, named.names_stop), own)
        made[name] = Case(constraint, own, path)
    return made


ALL_CASES = [
    "odd values, byte-level BPE without 21 bytes",
    "odd values, SentencePiece",
    "odd values, every byte",
    "a space required",
    "values with spaces of their own",
    "missing bytes and equal tokens",
    "missing bytes, a space before",
    "tools",
    "tools, SentencePiece",
    "100,000 tools",
]


# What a page carries


def unpacked(page: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The header and the arrays of a page, found as a browser does."""
    found = re.search(rb'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>', page)
    assert found is not None
    data = zlib.decompress(base64.b64decode(found[1], validate=True))
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    arrays = {}
    place = 4 + length
    for name, kind, count in header["arrays"]:
        arrays[name] = np.frombuffer(data, np.dtype(kind).newbyteorder("<"), count, place)
        place += arrays[name].nbytes
    assert place == len(data)
    return header, arrays


def strings_of(arrays: dict[str, npt.NDArray[Any]], name: str) -> list[bytes]:
    labels = arrays[f"{name}_labels"].tobytes()
    strings: list[bytes] = []
    place = 1
    for shared, added in zip(arrays[f"{name}_shared"].tolist(), arrays[f"{name}_added"].tolist(), strict=True):
        before = strings[-1] if strings else b""
        assert shared <= len(before)
        strings.append(before[:shared] + labels[place : place + added])
        place += added
    assert place == len(labels)
    return strings


@pytest.mark.parametrize("name", ALL_CASES)
def test_the_data_is_the_set_and_the_tokens(name: str, cases: dict[str, Case]) -> None:
    constraint, own, path = cases[name]
    header, arrays = unpacked(path.read_bytes())
    values = sorted({value.encode() for value in cases[name].values})
    strings = strings_of(arrays, "values")
    if "value_of_string" in arrays:
        assert strings == sorted(values + [b" " + value for value in values])
        for string, number in zip(strings, arrays["value_of_string"].tolist(), strict=True):
            value = cases[name].values[number].encode()
            assert string in (value, b" " + value)
    else:
        assert strings == values
    tokens = constraint.vocabulary.tokens
    pieces = strings_of(arrays, "pieces")
    carried = dict(zip(arrays["pieces_ids"].tolist(), pieces, strict=True))
    everywhere = set(range(len(tokens)))
    legal = set()
    for state in range(0, constraint.num_states, max(1, constraint.num_states // 1000)):
        legal |= set(constraint.content_tokens(state).tolist())
    assert legal <= carried.keys()
    carried |= dict(zip(arrays["others_ids"].tolist(), strings_of(arrays, "others"), strict=True))
    assert carried == {token_id: tokens[token_id] for token_id in everywhere if tokens[token_id] is not None}
    distances = constraint.distances().astype(np.int64)
    assert (arrays["distances"] == np.where(distances == 2**31 - 1, 0, distances + 1)).all()
    assert header["num_values"] == len(values)
    assert header["min_tokens"] == constraint.min_tokens
    assert header["enough_tokens"] == constraint.enough_tokens
    assert tuple(header["stop_ids"]) == constraint.vocabulary.stop_token_ids
    assert ("own_ids" in arrays) == (own is not None)


def test_a_page_is_one_file_of_some_megabytes(cases: dict[str, Case]) -> None:
    pages = {name: case.path.read_bytes() for name, case in cases.items()}
    assert len(pages["100,000 tools"]) < 3_000_000
    for page in pages.values():
        assert page.isascii() or page.decode()
        assert not re.search(rb"""(src|href|action)\s*=\s*["']?[a-z]+:""", page)
        assert page.count(b"<script") == page.count(b"</script>") == 2
        assert b"http://" not in page
        assert b"https://" not in page


def test_a_page_is_for_sets_only() -> None:
    vocabulary = trieauto.Vocabulary.from_tokens([b"a", None], stop_token_ids=[1])
    constraint = trieauto.compile(trieauto.regex("a*"), vocabulary)
    with pytest.raises(TypeError, match="for sets"):
        page_data(constraint, PageNames("v", "t", True))


# The command

Output = pytest.CaptureFixture[str]


def test_the_command_writes_a_page_and_the_report(capsys: Output, tmp_path: Path) -> None:
    values, tokenizer, page = tmp_path / "v.txt", tmp_path / "t.tiktoken", tmp_path / "page.html"
    values.write_text("ab\nabc\n")
    tokenizer.write_bytes(b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256)))
    command = ["inspect", str(values), "--tokenizer", str(tokenizer), "--html", str(page)]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "values (K)" in shown
    assert f"{page}, " in shown
    header, _ = unpacked(page.read_bytes())
    assert (header["values_file"], header["tokenizer"]) == (str(values), str(tokenizer))
    assert (header["names_stop"], header["max_tokens"]) == (False, None)
    assert main([*command, "--json", "--max-tokens", "2"]) == 0  # an older page is written over
    assert json.loads(capsys.readouterr().out)["page"] == {"path": str(page), "num_bytes": page.stat().st_size}
    assert unpacked(page.read_bytes())[0]["max_tokens"] == 2


def test_nothing_but_a_page_is_overwritten(capsys: Output, tmp_path: Path) -> None:
    values = tmp_path / "v.txt"
    values.write_text("ab\n")
    for place, problem in (
        (values, f"{values} is there already and is no page of trieauto: it is not overwritten"),
        (tmp_path, f"{tmp_path} is a directory"),
        (Path("-"), "a page is a file to open in a browser: name one, not -"),
        (tmp_path / "no" / "page.html", f"there is no directory {tmp_path / 'no'}"),
    ):
        assert main(["inspect", str(values), "--tokenizer", "no such", "--html", str(place)]) == 1
        assert capsys.readouterr().err == f"trieauto inspect: {problem}\n"
    assert values.read_text() == "ab\n"


def test_the_tokenizers_own_spellings_are_asked_of_it(tokenizers: dict[str, NamedTokenizer], tmp_path: Path) -> None:
    texts = ["get_user", "Zürich", " a", "two\nlines", "<|im_end|> <s>", "😀"]
    own = smollm2()
    path = tmp_path / "tokenizer.json"
    own.backend_tokenizer.save(str(path))
    expected = [own.encode(text, add_special_tokens=False) for text in texts]
    for named in (tokenizers["smollm2"], load_named(str(path))):
        assert named.encode is not None
        assert named.encode(texts) == expected
    assert tokenizers["mistral"].encode is not None
    assert tokenizers["mistral"].encode(texts) == [mistral_sentencepiece().encode(text) for text in texts]
    tekken = load_named(str(mistral_file("tekken_240911.json")))
    assert tekken.encode is not None
    for text, ids in zip(texts, tekken.encode(texts), strict=True):
        assert b"".join(tekken.vocabulary.tokens[token_id] or b"" for token_id in ids) == text.encode()
    assert tokenizers["qwen"].encode is None  # a file of ranks does not say how a text is split


# In a browser


class Page:
    """A page in the browser: what it shows, and what a reader does."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.browser = browser
        browser.get(path.as_uri())
        self.wait()

    def wait(self) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.browser, 60).until(
            lambda _: self.run("return !byId('main').hidden || !byId('problem').hidden")
        )
        assert self.text("problem") == ""

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def text(self, element_id: str) -> str:
        return str(self.run("return byId(arguments[0]).innerText", element_id))

    def rows(self) -> list[dict[str, Any]]:
        """All rows of the list, from the elements that are there as it is scrolled."""
        rows: list[dict[str, Any]] = self.run("""
            const list = byId("tokens");
            const seen = new Map();
            for (let top = 0; ; top += list.clientHeight) {
              list.scrollTop = top;
              app.list.draw();
              for (const row of list.querySelectorAll("[role=option]")) {
                const text = (name) => row.querySelector(name).textContent;
                seen.set(Number(row.id.slice(4)), {
                  ids: text(".ids").split(", ").map(Number), hex: text(".hex"), leads: text(".leads"),
                  then: text(".then"), allowed: row.getAttribute("aria-disabled") === "false",
                });
              }
              if (top + list.clientHeight >= list.scrollHeight) break;
            }
            if (seen.size !== app.rows.length) throw new Error(`${seen.size} of ${app.rows.length} rows`);
            return [...seen.entries()].sort((a, b) => a[0] - b[0]).map(([, row]) => row);
        """)
        return rows

    def allowed(self) -> list[int]:
        return sorted(token_id for row in self.rows() if row["allowed"] for token_id in row["ids"])

    def take(self, token_id: int) -> None:
        """By choosing its row and pressing Enter."""
        self.run(
            """
            const isOf = (row) => row.stopId === undefined ? [...app.constraint.pieces.idsAt(row.node)] : [row.stopId];
            app.list.choose(app.rows.findIndex((row) => isOf(row).includes(arguments[0])));
            byId("tokens").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
            """,
            token_id,
        )

    def set_budget(self, budget: int | None) -> None:
        self.run(
            """
            const [budget] = arguments;
            byId("budget-number").value = budget ?? 1;
            byId("budget-number").dispatchEvent(new Event("input"));
            if (byId("budget-on").checked !== (budget !== null)) byId("budget-on").click();
            """,
            budget,
        )

    def ask(self, *typed: str) -> list[str]:
        """What the page answers to each question."""
        answers: list[str] = self.run(
            """
            return arguments[0].map((typed) => {
              byId("ask").value = typed;
              byId("ask").dispatchEvent(new Event("input"));
              return byId("answer").textContent;
            });
            """,
            typed,
        )
        return answers

    def shown(self) -> dict[str, Any]:
        """The texts about where it stands, and the fewest tokens to the end."""
        texts: dict[str, Any] = self.run(
            "const [state, budget] = ['state', 'budget-text'].map((id) => byId(id).innerText);"
            "return { state, budget, needed: app.stepper.minTokens, steps: app.stepper.steps.length }"
        )
        return texts

    def find(self, part: str) -> list[str]:
        """The values that a search shows, as their bytes."""
        found: list[str] = self.run(
            "byId('find').value = arguments[0]; byId('find').dispatchEvent(new Event('input'));"
            "return app.search.found.map((value) => Array.from(app.constraint.bytesOfValue(value)))",
            part,
        )
        return [bytes(value).decode() for value in found]  # type: ignore[arg-type]

    def pick(self, index: int = 0) -> str:
        self.run("byId(`found-${arguments[0]}`).click()", index)
        return self.text("spellings")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_errors_in_the_console(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "browser" in request.fixturenames:
        assert request.getfixturevalue("browser").get_log("browser") == []


class Oracle:
    """What is possible in a set, by trying all values: fewest tokens by the bytes that are left."""

    def __init__(self, case: Case) -> None:
        vocabulary = case.constraint.vocabulary
        tokens = {token for token in vocabulary.tokens if token}
        lengths = sorted({len(token) for token in tokens})
        prefixes = {"none": [b""], "optional": [b"", b" "], "required": [b" "]}[case.constraint.prefix_space]
        self.strings = sorted({(prefix + value.encode(), value) for value in case.values for prefix in prefixes})

        @cache
        def fewest(rest: bytes) -> float:
            ways = [1 + fewest(rest[length:]) for length in lengths if length <= len(rest) and rest[:length] in tokens]
            return 0 if not rest else min(ways, default=float("inf"))

        self.fewest = fewest

    def values(self, text: bytes, most: float) -> set[str]:
        """The values that can be finished within so many tokens."""
        return {
            value
            for string, value in self.strings
            if string.startswith(text) and self.fewest(string[len(text) :]) <= most
        }


def number_in(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return None if found is None else int(found[1].replace(",", ""))


def check(page: Page, matcher: trieauto.Matcher, oracle: Oracle | None, text: bytes) -> list[int]:
    """Compare all that a page shows with a matcher; the allowed ids."""
    allowed = page.allowed()
    at = page.shown()
    state = at["state"]
    assert at["steps"] == matcher.num_accepted
    if matcher.is_terminated():
        assert allowed == []
        assert "Ended by a stop token" in state
        assert f"The value is {shown(str(matcher.value))}" in state
        return allowed
    assert allowed == matcher.allowed_token_ids().tolist()
    assert at["needed"] == matcher.min_tokens_to_finish
    away = number_in(r"The end is ([\d,]+) tokens? away", state)
    assert (away or 0) == matcher.min_tokens_to_finish
    assert ("Complete: " in state) == matcher.is_complete
    assert ("It may stop here, or go on" in state) == (matcher.is_accepting and not matcher.is_complete)
    if matcher.remaining_tokens is not None:
        assert number_in(r"^([\d,]+) tokens? left", at["budget"]) == matcher.remaining_tokens
    value = matcher.value
    assert (f"The value is {shown(str(value))}" in state) == (value is not None)
    if value is None:
        possible = number_in(r"([\d,]+) values? possible", state)
        within = number_in(r"([\d,]+) of them within the budget", state)
        if oracle is not None:
            assert possible == len(oracle.values(text, 10**6))
            if matcher.remaining_tokens is not None:
                assert within == len(oracle.values(text, matcher.remaining_tokens))
    return allowed


def shown(value: str) -> str:
    """How the page writes a value that has nothing unusual in it; "" for the others."""
    if value == "":
        return "(empty)"
    return value.replace(" ", "␣") if re.fullmatch(r"[\w<>/=&;:.,'`\" -]+", value, re.ASCII) else ""


@pytest.mark.parametrize("name", ALL_CASES)
def test_a_walk_shows_what_the_matcher_says(name: str, cases: dict[str, Case], browser: Any) -> None:
    case = cases[name]
    constraint = case.constraint
    page = Page(browser, case.path)
    is_large = len(case.values) > 1000
    oracle = None if is_large else Oracle(case)
    choose = random.Random(name)
    tokens = constraint.vocabulary.tokens
    enough = constraint.enough_tokens
    assert enough is not None
    least = constraint.min_tokens
    for budget in (None, least, choose.randint(least, enough + 2)):
        page.set_budget(budget)
        matcher = constraint.matcher(budget)
        if budget is not None:
            fit = number_in(r", ([\d,]+) fit in", page.text("budget-text"))
            assert fit == constraint.num_values_within(budget)
        text = b""
        while allowed := check(page, matcher, oracle, text):
            ask_about(page, matcher, choose)
            contents = sorted(set(allowed) - set(constraint.vocabulary.stop_token_ids))
            if not contents or (len(contents) < len(allowed) and choose.random() < 0.2):
                token_id = constraint.vocabulary.stop_token_ids[0]
            else:
                token_id = choose.choice(contents)
            assert matcher.accept_token(token_id)
            page.take(token_id)
            before = text
            text += tokens[token_id] or b"" if token_id < len(tokens) else b""
            if choose.random() < 0.2:
                matcher.rollback()
                page.run("byId('back').click()")
                text = before
        page.run("byId('reset').click()")
        matcher.reset()
        check(page, matcher, oracle, b"")


def ask_about(page: Page, matcher: trieauto.Matcher, choose: random.Random) -> None:
    """Ask about some ids, legal ones and others, and see that the answer is right."""
    allowed = set(matcher.allowed_token_ids().tolist())
    size = matcher.constraint.vocabulary.size
    some = choose.sample(sorted(allowed), min(1, len(allowed)))
    some += [choose.randrange(size), matcher.constraint.vocabulary.stop_token_ids[0]]
    for token_id, answer in zip(some, page.ask(*map(str, some)), strict=True):
        by_id = answer[answer.rfind(f"oken {token_id}") :]  # the digits may be a token, too
        assert ("Allowed: " in by_id) == (token_id in allowed), answer
        assert ("Not allowed: " in answer) or token_id in allowed, answer


def test_why_a_token_is_not_allowed(cases: dict[str, Case], browser: Any) -> None:
    page = Page(browser, cases["missing bytes and equal tokens"].path)
    at_the_start = "at the start only these go on: a, b, c, é."
    for typed, answer in {
        "ab": "ab is token 2, 3. Allowed: ab leads to 5 values, and the answer may end after it.",
        "11": "Token 11 is bz. Allowed: bz leads to 1 value, and it needs at least 1 more token to the end.",
        "4": "Token 4 is a stop token. Not allowed: a stop token may only follow a whole value, and the end is 1 token "
        "away at least.",
        "14": "There is no token 14: ids go up to 13.",
        "yes": f"yes is token 12. Not allowed: yes leaves the set: {at_the_start}",
        r"\xa9": rf"\xa9 is token 9. Not allowed: \xa9 leaves the set: {at_the_start}",
        "cz": "No token is exactly cz. The set goes on with it, but no tokens spell it here.",
        "aba": "No token is exactly aba. The set goes on with it. It takes 2 tokens at least, such as ab first, and 1 "
        "more to the end.",
        "abx": "No token is exactly abx. Not allowed: abx leaves the set: after ab only these go on: a, b, c; or the "
        "value may end there.",
    }.items():
        assert page.ask(typed) == [answer]
    page.set_budget(1)
    assert page.ask("c") == ["c is token 5. Not allowed: c needs 1 more token, 0 would be left."]
    page.set_budget(None)
    page.take(0)
    assert page.ask("13") == ["Token 13 is a stop token. Allowed: the answer may end here."]
    page.take(4)
    assert page.ask("b", "4") == [
        "b is token 1. The answer is over: a stop token was taken.",
        "Token 4 is a stop token. It was taken: the answer is over.",
    ]


# Values


def count_by_hand(string: bytes, tokens: Sequence[bytes | None], most: int | None) -> int:
    """How many sequences of token ids spell a string, of ``most`` tokens at most: length by length."""
    by_bytes: dict[bytes, int] = {}
    for token in tokens:
        if token:
            by_bytes[token] = by_bytes.get(token, 0) + 1
    ways = [{0: 1}] + [{} for _ in string]
    for end in range(1, len(string) + 1):
        for begin in range(end):
            number = by_bytes.get(string[begin:end], 0)
            for length, count in ways[begin].items() if number else ():
                ways[end][length + 1] = ways[end].get(length + 1, 0) + number * count
    return sum(count for length, count in ways[-1].items() if most is None or length <= most)


@pytest.mark.parametrize("name", ALL_CASES[:-1])
def test_the_spellings_of_a_value(name: str, cases: dict[str, Case], browser: Any) -> None:
    case = cases[name]
    page = Page(browser, case.path)
    oracle = Oracle(case)
    tokens = case.constraint.vocabulary.tokens
    for value in random.Random(name).sample(case.values, min(8, len(case.values))):
        strings = [string for string, of in oracle.strings if of == value]
        found = page.find(value) if "\n" not in value and value else []
        if value not in found:  # what no line of text can hold, or too many others have
            page.run(
                "app.values.pick(Array.from({ length: app.constraint.header.num_values }, (_, value) => value).find("
                "(value) => String(app.constraint.bytesOfValue(value)) === arguments[0]))",
                ",".join(map(str, value.encode())),
            )
        else:
            assert found[0] == value
            page.pick(0)
        for budget in (None, 3, 1):
            page.set_budget(budget)
            text = page.text("spellings")
            total = sum(count_by_hand(string, tokens, None) for string in strings)
            if total == 0:
                assert "No tokens of this vocabulary spell it" in text
                continue
            assert number_in(r"([\d,]+) spellings? in tokens", text) == total
            if budget is not None:
                within = sum(count_by_hand(string, tokens, budget) for string in strings)
                assert number_in(r"([\d,]+) within the budget", text) == within
        page.set_budget(None)
        fewest = min(oracle.fewest(string) for string in strings)
        buttons = page.run("return [...document.querySelectorAll('.spelling button')].length")
        for index in range(buttons):
            page.run("document.querySelectorAll('.spelling button')[arguments[0]].click()", index)
            ids = page.run("return app.stepper.steps.map(({ id }) => id)")
            assert b"".join(tokens[token_id] or b"" for token_id in ids) in strings
            is_own = case.own_tokens is not None and ids == case.own_tokens[case.values.index(value)]
            assert len(ids) == fewest or is_own
            matcher = case.constraint.matcher()
            assert matcher.accept_tokens(ids)
            assert matcher.is_accepting
            assert page.allowed() == matcher.allowed_token_ids().tolist()
        own = None if case.own_tokens is None else case.own_tokens[case.values.index(value)]
        if own:
            spelled = b"".join(tokens[token_id] or b"" for token_id in own)
            says_own = "As the tokenizer itself writes it" in page.text("spellings")
            assert says_own == (spelled in strings and all(tokens[token_id] for token_id in own))
            assert says_own != ("do not spell these bytes" in page.text("spellings"))


def test_a_spelling_beyond_the_budget_stops_where_it_must(cases: dict[str, Case], browser: Any) -> None:
    page = Page(browser, cases["tools"].path)
    page.set_budget(cases["tools"].constraint.min_tokens)
    value = max(cases["tools"].values, key=len)
    assert page.find(value) == [value]
    assert "beyond the budget" in page.pick()
    page.run("document.querySelector('.spelling button').click()")
    assert "more tokens, " in page.text("chosen")
    assert "would be left" in page.text("chosen")
    matcher = cases["tools"].constraint.matcher(cases["tools"].constraint.min_tokens)
    assert matcher.accept_tokens(page.run("return app.stepper.steps.map(({ id }) => id)"))
    assert page.allowed() == matcher.allowed_token_ids().tolist()


def test_what_the_budget_forbids_is_shown_with_the_reason(cases: dict[str, Case], browser: Any) -> None:
    page = Page(browser, cases["tools"].path)
    constraint = cases["tools"].constraint
    budget = constraint.min_tokens
    page.set_budget(budget)
    rows = page.rows()
    every = constraint.matcher().allowed_token_ids().tolist()
    assert sorted(token_id for row in rows for token_id in row["ids"]) == every
    for row in rows:
        matcher = constraint.matcher()
        matcher.accept_token(row["ids"][0])
        needed = matcher.min_tokens_to_finish
        if row["allowed"]:
            assert row["then"] == ("may stop" if needed == 0 else f"at least {needed} more")
        else:
            assert row["then"] == f"needs {needed} more, {budget - 1} would be left"
    page.set_budget(budget - 1)
    assert page.allowed() == []
    assert page.text("budget-text").startswith("Refused: ")
    assert "The budget is too small to finish from here" in page.text("state")


# Reading it


def test_the_keyboard_is_enough(cases: dict[str, Case], browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    page = Page(browser, cases["tools"].path)
    constraint = cases["tools"].constraint

    def press(*keys: str) -> None:
        for key in keys:
            browser.switch_to.active_element.send_keys(key)

    def focused() -> str:
        return str(page.run("return document.activeElement.id"))

    assert focused() == "tokens"  # at once
    first = page.rows()[1]["ids"][0]
    press(Keys.ARROW_DOWN, Keys.ENTER)
    assert page.run("return app.stepper.steps.map(({ id }) => id)") == [first]
    matcher = constraint.matcher()
    assert matcher.accept_token(first)
    assert page.allowed() == matcher.allowed_token_ids().tolist()
    press(Keys.END)
    active = page.run("return byId(byId('tokens').getAttribute('aria-activedescendant')).ariaSelected")
    assert active == "true"
    press(Keys.HOME, Keys.ENTER, Keys.BACKSPACE)
    assert page.run("return app.stepper.steps.length") == 1
    press("/")
    assert focused() == "find"
    press("get", Keys.ARROW_DOWN, Keys.ENTER)
    assert "in tokens" in page.text("spellings")
    press(Keys.BACKSPACE)  # of the text typed, not of the tokens
    assert page.run("return app.stepper.steps.length") == 1
    press(Keys.TAB, Keys.ENTER)  # the first "Walk"
    assert page.run("return app.stepper.steps.length") >= 1
    assert focused() == "tokens"
    assert page.run("return app.stepper.isWithinBudget && app.stepper.mayStop")
    press("?")
    assert focused() == "ask"
    press("zzz", Keys.ESCAPE)
    assert "leaves the set" in page.text("answer") or "value is whole" in page.text("answer")
    assert focused() == "tokens"
    # Everything that can be used is reached by Tab, in the order in which it is read.
    page.run("byId('reset').click(); document.activeElement.blur(); window.getSelection().removeAllRanges();")
    page.run("document.body.tabIndex = -1; document.body.focus()")
    order = []
    for _ in range(12):
        press(Keys.TAB)
        order.append(focused())
    places = [order.index(name) for name in ("budget-on", "budget-number", "budget", "order", "tokens", "ask", "find")]
    assert places == sorted(places)
    page.run("byId('budget-on').focus()")
    press(" ")
    page.run("byId('budget').focus()")
    before = page.run("return app.stepper.budget")
    press(Keys.ARROW_RIGHT)
    assert page.run("return app.stepper.budget") == before + 1


def test_nothing_breaks_out_of_its_place(cases: dict[str, Case], browser: Any, tmp_path: Path) -> None:
    page = Page(browser, cases["odd values, every byte"].path)
    for value in ODD_VALUES:
        if value:
            page.run(
                "app.values.pick(app.constraint.valueOf(arguments[0]))",
                sorted({value.encode() for value in ODD_VALUES}).index(value.encode()),
            )
            page.run("document.querySelector('.spelling button').click()")
    page.find("s")
    assert page.run("return window.hacked") is None
    assert page.run("return document.querySelectorAll('script').length") == 2
    assert page.run("return document.querySelectorAll('img').length") == 0
    assert page.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.title == "odd values, every byte <b>& · trieauto"
    # What has no shape, or changes the direction of the text, is written out.
    page.find("gnp")
    assert page.run("return byId('found').textContent") == r"\u{2028}\u{2029}\u{202e}gnp.exe\u{200b}\u{feff}"
    page.find("lines")
    assert page.run("return byId('found').textContent") == r"two\nlines\tand\r\x00\x07\x7f"
    # The policy lets no script run but the page's own.
    page.run("const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)")
    assert page.run("return window.hacked") is None
    assert [entry["source"] for entry in browser.get_log("browser")] == ["security"]


_CONTRAST = """
const luminance = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
const ground = (element) => {
  for (; element; element = element.parentElement) {
    const color = numbers(getComputedStyle(element).backgroundColor);
    if (color.length === 3 || color[3] > 0) return color;
  }
  return [255, 255, 255];
};
const weak = [];
for (const element of document.querySelectorAll("body *")) {
  const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
  if (!hasText || element.closest("script, :disabled, noscript") || !element.checkVisibility()) continue;
  const [one, other] = [luminance(numbers(getComputedStyle(element).color)), luminance(ground(element))];
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) weak.push([element.tagName, element.className, element.textContent, ratio]);
}
return weak;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_it_is_readable_in_light_and_dark_and_on_narrow_screens(
    scheme: str, width: int, cases: dict[str, Case], browser: Any
) -> None:
    page = Page(browser, cases["odd values, byte-level BPE without 21 bytes"].path)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.set_budget(2)
        page.ask("gex")
        page.find("ü")
        page.pick()
        for _ in range(2):
            background = page.run("return getComputedStyle(document.documentElement).backgroundColor")
            channels = [int(number) for number in re.findall(r"\d+", background)]
            assert (sum(channels) > 380) == (scheme == "light")
            assert page.run(_CONTRAST) == []
            assert page.run("return document.documentElement.scrollWidth") <= width
            assert any(not row["allowed"] for row in page.rows())
            page.run("app.list.choose(app.rows.findIndex((row) => !row.isAllowed))")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_list_has_few_elements_however_many_tokens_there_are(cases: dict[str, Case], browser: Any) -> None:
    page = Page(browser, cases["odd values, every byte"].path)
    page.run("app.rows = Array(100000).fill(app.rows[0]); app.list.show(100000)")
    assert page.run("return document.querySelectorAll('#tokens [role=option]').length") < 60
    page.run("app.list.choose(99999)")
    assert page.run("return byId('row-99999').getAttribute('aria-posinset')") == "100000"
    box = page.run("const {top, bottom} = byId('row-99999').getBoundingClientRect(); return [top, bottom]")
    within = page.run("const {top, bottom} = byId('tokens').getBoundingClientRect(); return [top, bottom]")
    assert within[0] <= box[0] < box[1] <= within[1] + 1


def test_a_page_that_cannot_be_read_says_so(cases: dict[str, Case], browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(page_document(b"\x02\x00\x00\x00{}"))
    browser.get(path.as_uri())
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(lambda _: browser.execute_script("return !byId('problem').hidden"))
    assert "This page cannot be shown: " in browser.execute_script("return byId('problem').textContent")
    assert len(browser.get_log("browser")) == 1
