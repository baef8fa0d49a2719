"""A constrained request on its way through vLLM: what its argument says after admission, and its matcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from trieauto.errors import TrieautoError, shorten

from .vllm import ARGUMENT

if TYPE_CHECKING:
    from trieauto import Matcher
    from trieauto.serving import ConstraintStore, GrammarKind, Snapshots

_CONSTRAINT = "_trieauto_constraint"  # attribute of a request's SamplingParams, which stay in one process


class AdmittedRequest(NamedTuple):
    """What stands in ``extra_args`` instead of the user's argument once a request was admitted.

    It has more than one key, so that it cannot be mistaken for an argument of a user's, nor be forged by one.

    Attributes:
        kind: as ``ConstraintStore.get`` takes it.
        text: as ``ConstraintStore.get`` takes it.
        budget: how many tokens the request has: ``max_tokens``, or what its prompt leaves of the context.
        may_end: whether vLLM shows all of the text if the request ends at a token that is no stop token.
        versions: of the sets that the text names, once the scheduler's process has settled them.
        kept_in: the directory in which these are kept for workers in other processes.
    """

    kind: GrammarKind
    text: str
    budget: int
    may_end: bool
    versions: tuple[str, ...] | None = None
    kept_in: str | None = None


def argument_of(params: Any) -> Any:
    """The argument of a request, as its user gave it or after admission; None if it has none."""
    extra_args = None if params is None else params.extra_args
    return None if extra_args is None else extra_args.get(ARGUMENT)


def replace_argument(params: Any, admitted: AdmittedRequest) -> None:
    """Let a request's own SamplingParams say what was admitted. (Their ``extra_args`` may be shared with others.)"""
    params.extra_args = {**params.extra_args, ARGUMENT: admitted._asdict()}


def admitted_request(params: Any) -> AdmittedRequest | None:
    """What was admitted; None for a request without a constraint.

    Raises:
        TrieautoError: the request has an argument, but was not admitted.
    """
    argument = argument_of(params)
    if argument is None:
        return None
    if not isinstance(argument, dict) or argument.keys() != set(AdmittedRequest._fields):
        raise TrieautoError(f"a request with {ARGUMENT} {shorten(argument)} was not admitted by the front end")
    versions = argument["versions"]
    return AdmittedRequest(**{**argument, "versions": None if versions is None else tuple(versions)})


def new_matcher(params: Any, store: ConstraintStore) -> Matcher | None:
    """A matcher for a request, before its first token; None for a request without a constraint.

    What one part of vLLM in this process has compiled is used by the others, and when a request comes back after
    preemption, so a set whose file changes meanwhile disturbs no request.

    Raises:
        BudgetError: no answer fits the request's budget.
        TrieautoError: as for ``ConstraintStore.get``; not admitted.
    """
    admitted = admitted_request(params)
    if admitted is None:
        return None
    constraint = getattr(params, _CONSTRAINT, None)
    if constraint is None:
        constraint = store.get(admitted.kind, admitted.text, admitted.versions, admitted.kept_in)
        setattr(params, _CONSTRAINT, constraint)
    return cast("Matcher", constraint.matcher(admitted.budget))


def settle_versions(params: Any, store: ConstraintStore, snapshots: Snapshots) -> None:
    """Make a request say which versions of its sets it uses, and keep them, for workers in other processes.

    Raises:
        TrieautoError: a set that does not exist any more, or cannot be read.
    """
    admitted = admitted_request(params)
    names = () if admitted is None else store.names_of_sets(admitted.kind, admitted.text)
    if admitted is not None and names:
        found = [store.sets.get(name) for name in names]
        versions = tuple(named.version for named in found)
        replace_argument(params, admitted._replace(versions=versions, kept_in=snapshots.keep(found)))
