"""vLLM: ``structured_outputs`` served by trieauto. The entry point of the group ``vllm.general_plugins``.

vLLM's backends of structured outputs are not pluggable, so this changes a few of its functions. Therefore it does so
only when asked, by the environment variable ``TRIEAUTO_VLLM_BACKEND``, which every process of vLLM inherits:

- ``1``: with a version of vLLM that it was tested with. With another one nothing is changed; a warning says so.
- ``force``: with any version in which everything that it changes is found.
- ``0``, empty or not set: never.

vLLM loads this module in each of its processes, so it imports nothing heavy.
"""

from __future__ import annotations

import logging
import os

from trieauto.errors import TrieautoError, shorten

from ._vllm_versions import is_tested, log_as_vllm_does
from .vllm import TESTED_VERSIONS

ENVIRONMENT = "TRIEAUTO_VLLM_BACKEND"

logger = logging.getLogger("trieauto")


def register() -> None:
    """Let trieauto serve structured outputs, if that was asked for. Can be called again.

    Raises:
        TrieautoError: the environment variable has another value; or vLLM has not what would have to be changed.
    """
    wish = os.environ.get(ENVIRONMENT, "")
    if wish in ("", "0"):
        return
    if wish not in ("1", "force"):
        raise TrieautoError(f"{ENVIRONMENT} is {shorten(wish)}; it must be '1', 'force' or '0'")
    from vllm.version import __version__ as version

    log_as_vllm_does()
    if not is_tested(version) and wish != "force":
        logger.warning(
            "trieauto: vLLM %s is not a version it was tested with (%s), so vLLM's own backends serve structured "
            "outputs; with %s=force trieauto tries to",
            version,
            ", ".join(TESTED_VERSIONS),
            ENVIRONMENT,
        )
        return
    from ._vllm_backend_hooks import apply_hooks
    from ._vllm_hooks import check_hooks, register_hooks

    register_hooks()  # by which requests end
    check_hooks()
    try:
        apply_hooks()
    except (ImportError, AttributeError) as error:
        raise TrieautoError(f"vLLM {version} has changed what trieauto's backend would change: {error}") from error
