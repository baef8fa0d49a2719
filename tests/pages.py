"""The pages that are written for users, and what they show: code, commands, links."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def pages() -> list[Path]:
    """Every page of the repository."""
    found = [*ROOT.glob("*.md"), *(ROOT / "trieauto").glob("*.md"), *(ROOT / "examples").glob("**/*.md")]
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(ROOT).parts))


def python_blocks(page: Path) -> list[str]:
    """The blocks of Python in a page, as they are written."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def engine_block(engine: str) -> str:
    """The README's program for a serving engine, which is a whole file."""
    (block,) = (block for block in python_blocks(README) if engine_of(block) == engine)
    return block


def engine_of(block: str) -> str:
    """The serving engine that a block is for; "" if it runs in this process."""
    found = re.match(r"(?:import|from) (sglang|vllm)\b", block)
    return found[1] if found else ""


def commands(page: Path, name: str) -> list[str]:
    """The command lines of a page, in indented blocks, that begin with a name."""
    return re.findall(rf"^    ({name} .*?)(?:  # .*)?$", page.read_text("utf-8"), re.MULTILINE)


def files_named(page: Path) -> list[str]:
    """The files and directories of the repository that a page names in code."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    in_code = " ".join(re.findall(r"`([^`\n]+)`", text))
    return re.findall(r"(?<![\w/.-])([\w*-][\w/*-]*(?:\.py|\.sh|/))(?![\w/*])", in_code)


def anchors(page: Path) -> list[str]:
    """The anchors of a page's headings, and those that it sets itself."""
    text = page.read_text("utf-8")
    return [anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)] + re.findall(
        r'<a id="([^"]+)"', text
    )


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(page: Path) -> list[str]:
    """What a page links to, or shows, inside the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    return [target for target in targets if not target.startswith(("http:", "https:"))]
