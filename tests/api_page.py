"""The page of the API, made of docstrings and signatures.

usage, in the repository's root: python -m tests.api_page > trieauto/API.md
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import griffe

from .api_objects import MODULES, ROOT, Public, module, of_module, top_level
from .pages import anchor

PAGE = ROOT / "trieauto" / "API.md"
_WIDTH = 100  # of a signature on one line
_INTRODUCTION = """\
# The API of trieauto

Made of the docstrings by `tests/api_page.py`, not by hand. [The design](DESIGN.md) says why things are as they are.
Sections and appendices are those of the [two papers](../README.md). Every error is a `TrieautoError`.
"""


def page() -> str:
    """The whole page."""
    sections = {f"trieauto: {title.lower()}": (None, found) for title, found in top_level().items()}
    sections |= {shown: (module(path), of_module(shown)) for shown, path in MODULES.items()}
    lines = [_INTRODUCTION]
    for title, (_, found) in sections.items():
        names = ", ".join(f"[{it.definition.name}](#{anchor(heading(it))})" for it in found)
        lines.append(f"- [{title}](#{anchor(title)}): {names}")
    lines.append("- [The command line](#the-command-line)\n")
    for title, (source, found) in sections.items():
        lines.append(f"## {title}\n")
        if source is not None:
            lines += [*rendered(source.docstring), ""]
        for it in found:
            lines += [*entry(it), ""]
    lines += ["## The command line\n", *command_line()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def heading(it: Public) -> str:
    """The heading of a name."""
    return f"`{it.name}`"


def entry(it: Public) -> Iterator[str]:
    """What the page says of a name and of its members."""
    yield f"### {heading(it)}\n"
    yield from code(signature(it))
    yield from rendered(it.definition.docstring)
    if it.has_constructor and it.init.docstring is not None:
        yield from rendered(it.init.docstring)
    for member in it.members:
        yield ""
        yield from code(signature(member))
        yield from rendered(member.definition.docstring)
    yield f"\n<sub>[{it.file}]({os.path.relpath(it.file, PAGE.parent.relative_to(ROOT))})</sub>"


def signature(it: Public) -> str:
    """How it is called, or what it is."""
    definition = it.definition
    kinds = [kind for kind in ("property", "cached_property", "classmethod") if kind in definition.labels]
    if definition.is_class and not it.has_constructor:
        return f"class {it.name}"
    if not (definition.is_class or definition.is_function):
        if kinds:
            return f"{it.name}: {definition.annotation}  # a property"
        value = "" if definition.value is None else f" = {definition.value}"
        is_type = str(definition.annotation) == "TypeAlias"
        return f"{it.name}{'' if is_type or definition.annotation is None else f': {definition.annotation}'}{value}"
    shown = list(_parameters(it.parameters))
    result = "" if definition.is_class or definition.returns is None else f" -> {definition.returns}"
    line = f"{'class ' if definition.is_class else ''}{it.name}({', '.join(shown)}){result}"
    if len(line) > _WIDTH:
        listed = "".join(f"    {parameter},\n" for parameter in shown)
        line = f"{line.partition('(')[0]}(\n{listed}){result}"
    return line


def _parameters(parameters: Iterable[Any]) -> Iterator[str]:
    has_star = False
    for it in parameters:
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(it.kind, "")
        if it.kind == griffe.ParameterKind.keyword_only and not has_star:
            yield "*"
        has_star = has_star or stars == "*" or it.kind == griffe.ParameterKind.keyword_only
        annotation = "" if it.annotation is None else f": {it.annotation}"
        default = "" if it.default is None or stars else f"{' = ' if annotation else '='}{it.default}"
        yield f"{stars}{it.name}{annotation}{default}"


def code(text: str) -> list[str]:
    """A block of Python."""
    return ["```python", text, "```\n"]


_TITLES = {"parameters": "Arguments", "raises": "Raises", "attributes": "Attributes"}


def rendered(docstring: Any) -> Iterator[str]:
    """A docstring as Markdown."""
    if docstring is None:
        return
    for section in docstring.parse("google", warnings=False, returns_multiple_items=False, returns_named_value=False):
        kind = section.kind.value
        if kind == "text":
            yield from text(section.value)
        elif kind == "returns":
            yield f"\nReturns: {markdown(section.value[0].description)}\n"
        elif kind in _TITLES:
            yield f"\n{_TITLES[kind]}:\n"
            for item in section.value:
                name = item_name(item)
                yield textwrap.indent(f"- `{name}`: {markdown(item.description)}", "  ")[2:]
            yield ""
        else:
            raise NotImplementedError(f"a docstring with a section of the kind {kind}: {docstring.value}")


def item_name(item: Any) -> str:
    """The name, or the names, that an item of a section is about."""
    if hasattr(item, "name"):
        return str(item.name)
    return str(item.annotation).strip("()")


def text(value: str) -> Iterator[str]:
    """Paragraphs; examples become blocks of Python."""
    for paragraph in re.split(r"\n\n+", value.strip()):
        if paragraph.startswith(">>>"):
            yield from ["", *code(paragraph)]
        else:
            yield f"\n{markdown(paragraph)}\n"


def markdown(value: str) -> str:
    """What is between double backticks in docstrings is between single ones here."""
    return re.sub(r"``(.+?)``", r"`\1`", value, flags=re.DOTALL)


def command_line() -> Iterator[str]:
    """The commands and their options, as the parser has them."""
    from trieauto.cli import _parser

    parser = _parser()
    yield f"{parser.description}\n"
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        yield f"### `trieauto {name}`\n"
        yield f"{command.description}\n"
        for action in command._actions:
            if isinstance(action, argparse._HelpAction):
                continue
            shown = action.option_strings[-1] if action.option_strings else ""
            value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
            needed = " (required)" if action.required and shown else ""
            yield f"- `{f'{shown} {value}'.strip()}`: {action.help}{needed}."
        yield f"\n{command.epilog}\n" if command.epilog else ""


if __name__ == "__main__":
    sys.stdout.write(page())
