"""The errors trieauto raises: all of them are ``TrieautoError``, which is a ``ValueError``."""

from __future__ import annotations


class TrieautoError(ValueError):
    """Base of every error of this library."""


class EmptyConstraintError(TrieautoError):
    """The set holds no value, or the vocabulary can spell none of them: nothing could ever be generated."""


class UnsupportedError(TrieautoError):
    """A tokenizer, value or option that this library cannot serve exactly; the message says which and why."""


class ValueFileError(TrieautoError):
    """A file of values that cannot be read, holds none, or has a line that is none; the message says where."""


class SavedConstraintError(TrieautoError):
    """A file of a saved constraint that cannot be written or read, is none, is damaged, or does not fit."""


class UnreachableValueError(TrieautoError):
    """Values that no sequence of the vocabulary's tokens can spell.

    Attributes:
        values: the values concerned, in sorted order.
    """

    def __init__(self, message: str, values: list[str | bytes]) -> None:
        super().__init__(message)
        self.values = values

    def __reduce__(self) -> tuple[type[UnreachableValueError], tuple[str, list[str | bytes]]]:
        return type(self), (str(self), self.values)


class BudgetError(TrieautoError):
    """A budget of tokens within which nothing can be finished.

    Attributes:
        needed: the fewest tokens that are enough, without a stop token.
        given: the budget.
    """

    def __init__(self, needed: int, given: int, message: str | None = None) -> None:
        if message is None:
            message = f"{_tokens(needed)} needed to finish, but the budget is {given:,}"
        super().__init__(message)
        self.needed = needed
        self.given = given

    def __reduce__(self) -> tuple[type[BudgetError], tuple[int, int, str]]:
        return type(self), (self.needed, self.given, str(self))


def _tokens(count: int) -> str:
    return "1 token is" if count == 1 else f"{count:,} tokens are"


class VocabularyError(TrieautoError):
    """A tokenizer or token list that does not make a usable vocabulary, or one that does not fit the model."""


class TokenNotAllowedError(TrieautoError):
    """A token that cannot be accepted here, or an id outside the vocabulary."""


def printable(text: str) -> str:
    """A text with whatever cannot be shown, or would break the line, as escapes."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def shorten(value: object, limit: int = 80) -> str:
    """``repr`` of a value for an error message, cut in the middle when longer than ``limit`` characters."""
    try:
        text = repr(value[: 2 * limit]) if isinstance(value, (str, bytes)) and len(value) > 2 * limit else repr(value)
    except Exception:  # Python does not write integers of very many digits, and objects may have any faults
        return f"an integer of {value.bit_length():,} bits" if isinstance(value, int) else f"<{type(value).__name__}>"
    if len(text) <= limit:
        return text
    size = f" ({len(value):,} long)" if isinstance(value, (str, bytes)) else ""
    return f"{text[: limit - 20]}…{text[-15:]}{size}"


def not_in_set(value: object, num_more: int) -> str:
    """That a value, and so many more, are not in a set: the end of a message."""
    return f"{shorten(value)}{f' and {num_more:,} more are' if num_more else ' is'} not in the set"
