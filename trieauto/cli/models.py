"""Loading a language model and its tokenizer. Needs torch and transformers, which are imported when called."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .errors import CommandError, reason, require

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

INSTALL = 'pip install "trieauto[demo]"'
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_FILE_SUFFIXES = (".json", ".model", ".gguf", ".tiktoken")
# A directory without any of these holds nothing that transformers could load a tokenizer from.
_TOKENIZER_FILES = ("config.json", "tokenizer*", "tekken.json", "vocab*", "*.model", "*.tiktoken")


def require_transformers(gguf: str | None) -> None:
    """Fail if what runs a model is not installed, before anything slow is done."""
    require(["torch", "transformers", *(["gguf"] if gguf else [])], INSTALL)


def load_tokenizer(name: str, gguf: str | None = None) -> PreTrainedTokenizerBase:
    """The tokenizer of a model.

    Args:
        name: the model's directory, or its name in the Hugging Face hub.
        gguf: the file within it that holds the model, if it is a GGUF.

    Raises:
        CommandError: there is none, or it cannot be loaded; the message says why.
    """
    from transformers import AutoTokenizer

    with _loading("tokenizer", name, gguf):
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            name, gguf_file=gguf, trust_remote_code=False
        )
    return tokenizer


def load_model(name: str, gguf: str | None = None) -> PreTrainedModel:
    """A decoder or encoder-decoder in eval mode: on the GPU as it is stored, or else in float32 on the CPU.

    Arguments and errors as for ``load_tokenizer``.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

    with _loading("model", name, gguf):
        # A GGUF holds decoders only, and reading its header twice takes seconds.
        config = AutoConfig.from_pretrained(name, trust_remote_code=False) if gguf is None else None
        loader = AutoModelForSeq2SeqLM if config is not None and config.is_encoder_decoder else AutoModelForCausalLM
        on_gpu = torch.cuda.is_available()
        model: Any = loader.from_pretrained(
            name, gguf_file=gguf, dtype="auto" if on_gpu else torch.float32, trust_remote_code=False
        )
        if on_gpu:
            model.to("cuda")
        model.eval()
    return cast("PreTrainedModel", model)


@contextmanager
def _loading(what: str, name: str, gguf: str | None) -> Iterator[None]:
    """Without progress bars, and with errors in one line."""
    check_place(name, gguf)
    try:
        # Warnings still appear: the logger of transformers has kept the stderr that it found when it was imported.
        with redirect_stderr(io.StringIO()):
            yield
    except (OSError, ImportError) as error:
        raise CommandError(f"cannot load the {what} of {name}: {reason(error)}") from error
    except Exception as error:  # what these loaders raise for a malformed file depends on where they fail in it
        if gguf is not None and not _is_whole_gguf(Path(name) / gguf):
            raise CommandError(f"{Path(name) / gguf}: not a whole GGUF file") from error
        raise CommandError(f"{name}: not a {what} that can be read: {reason(error)}") from error


def _is_whole_gguf(path: Path) -> bool:
    """Whether a GGUF can be read to its end. Takes seconds."""
    from gguf import GGUFReader

    try:
        GGUFReader(path)
    except Exception:  # the reader checks nothing: it fails with whatever the wrong bytes lead to
        return False
    return True


def _looks_like_path(name: str) -> bool:
    """Whether this cannot be meant as a name in the hub, which is NAME or OWNER/NAME."""
    return name.lower().endswith(_FILE_SUFFIXES) or not _HUB_NAME.fullmatch(name)


def check_place(name: str, gguf: str | None) -> None:
    """Fail if a name is neither a directory that may hold a tokenizer nor one that the hub could have."""
    place = Path(name)
    if place.is_dir():
        files = sorted(path.name for path in place.glob("*.gguf"))
        if gguf is not None and not (place / gguf).is_file():
            found = f"; there is {', '.join(files)}" if files else ""
            raise CommandError(f"no file {gguf} in {name}{found}")
        if gguf is None and files and not (place / "config.json").exists():
            raise CommandError(f"{name} holds a GGUF file: add --gguf {files[0]}")
        if gguf is None and not any(next(place.glob(pattern), None) for pattern in _TOKENIZER_FILES):
            raise CommandError(f"{name} holds no tokenizer")
    elif place.exists():
        raise CommandError(f"{name} is a file, not the directory of a model")
    elif _looks_like_path(name):
        raise CommandError(f"no such file or directory: {name}")
