"""What ``structured_outputs`` of a request of vLLM asks for, and who serves it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vllm.v1.structured_output.backend_types import StructuredOutputOptions
from vllm.v1.structured_output.utils import grammar_is_likely_lark

from trieauto.errors import TrieautoError, UnsupportedError, shorten
from trieauto.serving import ConstraintRequest, GrammarKind, read_request
from trieauto.serving.named_sets import PREFIX, mentions_sets

BACKEND = "trie"
"""What ``StructuredOutputsParams._backend`` says of requests that trieauto serves."""

VALUES = "*values:"
"""Before a JSON array of strings where a grammar is expected, as ``*set:`` before a set's name: how a choice travels
to the engine. One string is copied and sent many times faster than a list of thousands."""

_KINDS: dict[StructuredOutputOptions, GrammarKind] = {
    StructuredOutputOptions.JSON: "json_schema",
    StructuredOutputOptions.REGEX: "regex",
    StructuredOutputOptions.CHOICE: "values",
    StructuredOutputOptions.GRAMMAR: "ebnf",
}


def constraint_asked_for(params: Any) -> ConstraintRequest:
    """What a request's ``StructuredOutputsParams`` want of a ``ConstraintStore``.

    Microseconds, but for a choice or a schema that is no text yet: a microsecond for some ten values.

    Raises:
        UnsupportedError: it is of a kind that trieauto does not serve, whatever its text.
        EmptyConstraintError: a choice without values.
        TrieautoError: a choice that is not a list of strings.
    """
    if params.choice is not None:
        if not isinstance(params.choice, (list, tuple)):
            raise TrieautoError(f"a choice is a list of strings, not {shorten(params.choice)}")
        return read_request(params.choice)
    if params.json is not None:
        if params.whitespace_pattern is not None:
            raise UnsupportedError("whitespace_pattern is not supported: its JSON has no white space")
        return ConstraintRequest("json_schema", as_text(params.json))
    if params.regex is not None:
        return ConstraintRequest("regex", params.regex)
    if params.grammar is not None:
        if params.grammar.startswith(VALUES):
            return ConstraintRequest("values", params.grammar[len(VALUES) :])
        if not params.grammar.startswith(PREFIX) and grammar_is_likely_lark(params.grammar):
            raise UnsupportedError("grammars in Lark's notation are not supported")
        return ConstraintRequest("ebnf", params.grammar)
    if params.structural_tag is not None:
        raise UnsupportedError("structural tags (which vLLM makes of strict tools, too) are not supported")
    raise UnsupportedError("any JSON object at all has no end of its own")


def only_prefills(params: Any) -> bool:
    """Whether a request is there for the cache of its prompt, which another engine decodes from, so that its one token
    is no answer."""
    transfer = (params.extra_args or {}).get("kv_transfer_params")
    return isinstance(transfer, dict) and bool(transfer.get("do_remote_decode"))


def as_text(schema: Any) -> str:
    """A schema that may be text already."""
    return schema if isinstance(schema, str) else json.dumps(schema)


def mark_as_ours(params: Any, asked_for: ConstraintRequest) -> None:
    """Note that trieauto serves a request, and give its constraint the form in which it travels fastest."""
    params._backend = BACKEND
    params._backend_was_auto = True  # so that the same parameters are taken again
    if params.choice is not None:
        params.choice, params.grammar = None, VALUES + asked_for.text
    elif params.json is not None:
        params.json = asked_for.text


def constraint_of_key(kind: StructuredOutputOptions, text: str) -> ConstraintRequest:
    """What the engine wants of a ``ConstraintStore``, by what it was sent."""
    if kind is StructuredOutputOptions.GRAMMAR and text.startswith(VALUES):
        return ConstraintRequest("values", text[len(VALUES) :])
    return ConstraintRequest(_KINDS[kind], text)


def drops_sets_of_tools(tools: Sequence[Any], params: Any) -> bool:
    """Whether tools of a request name sets in their parameters, but its ``StructuredOutputsParams``, which vLLM made of
    them, do not. A scan of the parameters' text."""
    parameters = [json.dumps(getattr(getattr(tool, "function", None), "parameters", None)) for tool in tools]
    if not any(map(mentions_sets, parameters)):
        return False
    return params is None or not mentions_sets(as_text(params.json or params.structural_tag or ""))
