"""How the questions are worded: the trie paper's templates (appendix C.1) in words of our own.

Each has the options, comma-separated, before the text, so that prompts for the same set share a beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .values import Value, text_of

MOST_OPTIONS = 500
"""More options than this are not listed: the model says what it knows, and the constraint keeps it in the set."""

MOST_EXAMPLES = 3
"""Values of a group that are shown beside its name."""

_STRICT = "Choose exactly one of the options below.\nReply with that option alone and nothing more.\n\n"


def select(text: str, options: Sequence[Value]) -> str:
    """Asks for one of the options and nothing else: the wording that a model without a constraint needs too.

    Args:
        text: what is to be decided.
        options: the values to choose from; more than ``MOST_OPTIONS`` are not listed.
    """
    return f"{_STRICT}{_listed('Options: ', options)}Text: {text}\nAnswer:"


def select_briefly(text: str, options: Sequence[Value]) -> str:
    """Asks for one of the options in few words; that the answer is one of them is up to the constraint.

    Args:
        text, options: as for ``select``.
    """
    return f"{_listed('Choose one of: ', options)}Text: {text}\nAnswer:"


def select_group(
    text: str, names: Sequence[Value], groups: Mapping[str, Sequence[Value]], most_examples: int = MOST_EXAMPLES
) -> str:
    """Asks for the name of a group, with some of each group's values beside its name.

    >>> ask_group = functools.partial(prompts.select_group, groups=hierarchy.groups)

    Args:
        text: what is to be decided.
        names: of the groups to choose from; more than ``MOST_OPTIONS`` are not listed.
        groups: for each name its values.
        most_examples: how many of a group's values are shown.
    """
    shown = [f"{text_of(name)}: {', '.join(map(text_of, groups[text_of(name)][:most_examples]))}" for name in names]
    listed = "\n".join(shown) if len(names) <= MOST_OPTIONS else ""
    return (
        "Choose exactly one of the groups below.\nReply with the name of that group alone and nothing more.\n\n"
        f"Groups, each with examples of what is in it:\n{listed}\n\nText: {text}\nGroup:"
    )


def think(text: str, options: Sequence[Value]) -> str:
    """Asks the model to think aloud, which is not an answer yet.

    Args:
        text, options: as for ``select``.
    """
    return f"{_listed('Options: ', options)}Text: {text}\nLet us reason about this one step at a time:"


def select_after_thinking(text: str, options: Sequence[Value], thoughts: str) -> str:
    """As ``select``, with what the model thought before.

    Args:
        text, options: as for ``select``.
        thoughts: what the model wrote.
    """
    return f"{_STRICT}{_listed('Options: ', options)}Text: {text}\nThoughts: {thoughts}\nAnswer:"


def _listed(title: str, options: Sequence[Value]) -> str:
    if not 0 < len(options) <= MOST_OPTIONS:
        return ""
    return f"{title}{', '.join(map(text_of, options))}\n\n"
