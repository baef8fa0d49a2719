"""What ``trieauto choose`` says about a set of values that a model cannot answer with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trieauto

from .. import sources
from ..errors import BudgetError, EmptyConstraintError, UnreachableValueError, shorten
from ..value_files import place_of_value
from .errors import CommandError
from .terminal import counted
from .tokenizers import vocabulary_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SHOWN_VALUES = 5


@contextmanager
def naming_values(path: Path, values: Sequence[str]) -> Iterator[None]:
    """Errors about ``values`` say where in their file they stand, or what the whole file lacks.

    Raises:
        CommandError: in place of an error of the library.
    """
    try:
        yield
    except UnreachableValueError as error:
        shown = ", ".join(
            f"{shorten(value)} ({place_of_value(path, values.index(str(value)))})"
            for value in error.values[:_SHOWN_VALUES]
        )
        more = len(error.values) - _SHOWN_VALUES
        more_text = f" and {more:,} more" if more > 0 else ""
        raise CommandError(f"{path}: the model's tokens cannot spell {shown}{more_text}: remove them") from error
    except EmptyConstraintError as error:
        raise CommandError(
            f"{path}: the model's tokens can spell none of the {counted(len(values), 'value')}"
        ) from error
    except BudgetError as error:
        raise CommandError(
            f"{path}: no value can be finished within --max-new-tokens {error.given:,}: raise it to at least "
            f"{error.needed:,}"
        ) from error


def check_budget(
    tokenizer: PreTrainedTokenizerBase, path: Path, values: Sequence[str], max_new_tokens: int | None
) -> None:
    """Refuse a budget that no value fits, as soon as the tokens are known: a model takes much longer to load.

    Raises:
        CommandError: there is none, or some values cannot be spelled at all.
    """
    if max_new_tokens is None or min(len(value.encode()) for value in values) <= max_new_tokens:
        return  # every token is at least a byte: there is no need to look at the tokens
    with naming_values(path, values):
        vocabulary, _ = vocabulary_of(sources.token_source(tokenizer))
        trieauto.compile(trieauto.choices(values), vocabulary).matcher(max_new_tokens)
