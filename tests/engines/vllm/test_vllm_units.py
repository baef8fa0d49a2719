"""The parts of the vLLM adapter without an engine: vLLM's own loaders, requests, parameters, and runners' records."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from vllm import SamplingParams
from vllm.config import ModelConfig
from vllm.exceptions import VLLMValidationError
from vllm.v1.engine import EngineCoreRequest
from vllm.v1.request import Request, RequestStatus
from vllm.v1.sample.logits_processor import (
    BatchUpdate,
    LogitsProcessors,
    MoveDirectionality,
    _load_custom_logitsprocs,
    validate_logits_processors_parameters,
)
from vllm.v1.worker.gpu.sample.logits_processor import LogitsContext, LogitsProcRequestState
from vllm.v1.worker.gpu.sample.logits_processor.loader import (
    _load_v2_logitsprocs,
    build_custom_logits_processors_params_validator,
)

from trieauto import TrieautoError
from trieauto.integrations import _vllm_hooks as hooks
from trieauto.integrations import vllm as plugin
from trieauto.integrations._vllm_admission import admit, check_engine
from trieauto.integrations._vllm_processor import TrieLogitsProcessor
from trieauto.integrations._vllm_requests import admitted_request, new_matcher, settle_versions
from trieauto.integrations._vllm_stores import snapshots, store_of
from trieauto.serving import ENVIRONMENT

pytestmark = pytest.mark.vllm

NAME = "trieauto.integrations.vllm:TrieLogitsProcessor"
STOP_ID = 151645
MODEL_LEN = 256
VALUES = ["get", "get_user", "send_mail"]


@pytest.fixture(scope="module")
def config(models: Path) -> Any:
    """What the adapter reads of a ``VllmConfig``, with a real ``ModelConfig``."""
    plugin.register()
    return SimpleNamespace(
        model_config=ModelConfig(model=str(models / "random"), max_model_len=MODEL_LEN),
        structured_outputs_config=SimpleNamespace(reasoning_parser=""),
        speculative_config=None,
        scheduler_config=SimpleNamespace(async_scheduling=False),
        use_v2_model_runner=False,
    )


@pytest.fixture(scope="module")
def tokenizer(config: Any) -> Any:
    from vllm.tokenizers import cached_tokenizer_from_config

    return cached_tokenizer_from_config(config.model_config)


def admitted(config: Any, tokenizer: Any, argument: Any, max_tokens: int = 16, length: int = 8, **options: Any) -> Any:
    """A request as the front end sends it to the engine."""
    params = SamplingParams(max_tokens=max_tokens, extra_args={"trieauto": argument}, **options)
    params.update_from_generation_config({}, STOP_ID)
    request = EngineCoreRequest(
        request_id="r",
        prompt_token_ids=[64] * length,
        mm_features=None,
        sampling_params=params,
        pooling_params=None,
        arrival_time=0.0,
        lora_request=None,
        cache_salt=None,
        data_parallel_rank=None,
    )
    admit(request, config, tokenizer)
    return request


# Loading


def test_both_loaders_take_the_class() -> None:
    assert plugin.SETS == ENVIRONMENT
    assert TrieLogitsProcessor in _load_custom_logitsprocs([NAME])
    assert TrieLogitsProcessor in _load_v2_logitsprocs([NAME])
    assert _load_v2_logitsprocs([]) == [TrieLogitsProcessor]


def test_the_plugin_is_light() -> None:
    """It is loaded in every process of every vLLM of an environment; until a request asks for it, it has no kernels."""
    code = (
        "import sys; import trieauto.integrations.vllm as plugin; assert 'torch' not in sys.modules; "
        "plugin.register(); "
        "plugin.TrieLogitsProcessor; assert 'numba' not in sys.modules; from vllm import SamplingParams; "
        "plugin.TrieLogitsProcessor.validate_params(SamplingParams()); assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


def test_without_the_hooks_constraints_are_refused() -> None:
    code = (
        "from vllm import SamplingParams; from vllm.plugins import load_general_plugins; load_general_plugins(); "
        "from vllm.v1.sample.logits_processor import validate_logits_processors_parameters as validate; "
        "validate(None, SamplingParams()); validate(None, SamplingParams(extra_args={'trieauto': ['a']}))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=False,
                         env=os.environ | {"VLLM_PLUGINS": "other"})  # fmt: skip
    assert "which was not loaded (VLLM_PLUGINS?)" in run.stderr


def test_what_a_version_has_changed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "_missing", ["vllm.v1.core.sched.scheduler:check_stop"])
    with pytest.raises(TrieautoError, match=r"has changed vllm\.v1\.core\.sched\.scheduler:check_stop; it was tested"):
        hooks.check_hooks()


def test_hooks_are_put_in_place_once(config: Any) -> None:
    from vllm.v1.engine.input_processor import InputProcessor

    before = InputProcessor.process_inputs
    plugin.register()
    assert InputProcessor.process_inputs is before
    assert hasattr(before, "__wrapped__")


# Admission


def test_conflicts_are_refused_by_both_validators(config: Any) -> None:
    params = SamplingParams(stop=["a"], extra_args={"trieauto": ["a"]})
    for validate in (
        lambda: validate_logits_processors_parameters(None, params),
        lambda: build_custom_logits_processors_params_validator(None)(params),
    ):
        with pytest.raises(VLLMValidationError, match="stop cannot be used with trieauto"):
            validate()


def test_engines_that_would_not_apply_constraints(config: Any) -> None:
    def changed(**values: Any) -> Any:
        return SimpleNamespace(**{**vars(config), **values})

    check_engine(config)
    ahead = SimpleNamespace(async_scheduling=True)
    check_engine(changed(scheduler_config=ahead, use_v2_model_runner=True))
    for values, message in (
        ({"structured_outputs_config": SimpleNamespace(reasoning_parser="deepseek_r1")}, "reasoning parser (deepseek"),
        ({"speculative_config": object()}, "decodes speculatively"),
        ({"scheduler_config": ahead}, "--logits-processors trieauto.integrations.vllm:TrieLogitsProcessor"),
    ):
        with pytest.raises(TrieautoError) as refused:
            check_engine(changed(**values))
        assert message in str(refused.value)


def test_what_is_admitted(config: Any, tokenizer: Any) -> None:
    own = {"trieauto": VALUES, "other": 1}
    request = admitted(config, tokenizer, VALUES, max_tokens=300, length=200)
    params = request.sampling_params
    found = admitted_request(params)
    assert found is not None
    assert (found.kind, found.budget, found.may_end) == ("values", MODEL_LEN - 200, True)
    assert params.include_stop_str_in_output
    assert own == {"trieauto": VALUES, "other": 1}
    for options, may_end in (
        ({"skip_special_tokens": False}, False),
        ({"skip_special_tokens": False, "include_stop_str_in_output": True}, True),
        ({"detokenize": False}, True),
    ):
        params = admitted(config, tokenizer, VALUES, **options).sampling_params
        again = admitted_request(params)
        assert again is not None
        assert again.may_end is may_end
    with pytest.raises(TrieautoError, match="was not admitted"):
        new_matcher(SamplingParams(extra_args={"trieauto": VALUES}), store_of(config.model_config))


def test_a_session_that_goes_on_is_refused(config: Any, tokenizer: Any) -> None:
    request = admitted(config, tokenizer, VALUES)
    request.resumable = True
    request.sampling_params.extra_args = {"trieauto": VALUES}
    with pytest.raises(TrieautoError, match="goes on after its answer"):
        admit(request, config, tokenizer)


# The end


def scheduled(config: Any, tokenizer: Any, argument: Any, max_tokens: int = 16, **options: Any) -> Any:
    """A request as the scheduler has it."""
    request = Request.from_engine_core_request(admitted(config, tokenizer, argument, max_tokens, **options), None)
    store = store_of(config.model_config)
    settle_versions(request.sampling_params, store, snapshots())
    request.trieauto_matcher = new_matcher(request.sampling_params, store)
    return request


def end_after(request: Any, token_ids: Sequence[int]) -> Any:
    """The status with which a request ends after one of these tokens, by vLLM's own check and then ours."""
    from vllm.v1.core.sched import scheduler

    for place, token_id in enumerate(token_ids, start=1):
        request.append_output_token_ids(token_id)
        if scheduler.check_stop(request, MODEL_LEN):
            return request.status, place
    return None


def test_ends(config: Any, tokenizer: Any) -> None:
    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    stopped, limited, error = (
        RequestStatus.FINISHED_STOPPED,
        RequestStatus.FINISHED_LENGTH_CAPPED,
        RequestStatus.FINISHED_ERROR,
    )
    user, mail = ids("get_user"), ids("send_mail")
    shown = {"skip_special_tokens": False}
    cases: list[tuple[Any, int, dict[str, Any], list[int], Any]] = [
        (VALUES, 16, {}, mail, (stopped, len(mail))),
        (VALUES, 16, shown, mail, None),  # vLLM would not show the last token's text
        (VALUES, 16, shown, [*mail, STOP_ID], (stopped, len(mail) + 1)),
        (VALUES, len(mail), {}, mail, (stopped, len(mail))),
        (VALUES, len(mail), shown, mail, (limited, len(mail))),
        (VALUES, 16, {}, ids("get"), None),
        (VALUES, 1, {}, ids("get"), (limited, 1)),
        (VALUES, 16, {}, [*ids("get"), STOP_ID], (stopped, 2)),
        (VALUES, 16, {"ignore_eos": True}, [*ids("get"), STOP_ID], (stopped, 2)),
        (VALUES, 16, {}, user, (stopped, len(user))),
        (VALUES, 16, {}, ids("x"), (error, 1)),
        (VALUES, 16, {}, [STOP_ID], (error, 1)),
        ({"regex": "a(bb)*"}, 2, {}, ids("a"), (limited, 1) if len(ids("bb")) > 1 else None),
    ]
    for argument, max_tokens, options, token_ids, wanted in cases:
        request = scheduled(config, tokenizer, argument, max_tokens, **options)
        assert end_after(request, token_ids) == wanted, (argument, max_tokens, options)
        assert end_after(Request.from_engine_core_request(plain(), None), token_ids) is None


def plain() -> Any:
    return EngineCoreRequest("p", [64] * 8, None, SamplingParams(max_tokens=99), None, 0.0, None, None, None)


# Batches


def masked(logits: torch.Tensor) -> list[list[int]]:
    """The tokens that are left in each row; all are fine for a row that is not masked."""
    return [torch.isfinite(row).nonzero().flatten().tolist() for row in logits]


def all_legal(size: int, count: int) -> torch.Tensor:
    return torch.zeros(count, size)


def test_batches_of_the_v1_runner(config: Any, tokenizer: Any) -> None:
    """Requests come, go, move, and are thrown out and come back with what they had."""
    processor = TrieLogitsProcessor(config, torch.device("cpu"), False)
    assert LogitsProcessors([processor]).non_argmax_invariant == [processor]
    size = config.model_config.get_vocab_size()
    processor.update_state(BatchUpdate(1, [], [(0, SamplingParams(), [64], [])], []))
    assert processor.apply(all_legal(size, 1)).isfinite().all()

    first, second = (admitted(config, tokenizer, values).sampling_params for values in (VALUES, ["on", "off"]))
    store = store_of(config.model_config)
    outputs: list[list[int]] = [[], []]
    processor.update_state(BatchUpdate(3, [], [(1, first, [64], outputs[0]), (2, second, [64], outputs[1])], []))
    expected = [new_matcher(params, store) for params in (first, second)]

    def check(rows: list[int | None]) -> None:
        left = masked(processor.apply(all_legal(size, len(rows))))
        for tokens, which in zip(left, rows, strict=True):
            matcher = None if which is None else expected[which]
            assert tokens == (list(range(size)) if matcher is None else matcher.allowed_token_ids().tolist())

    def accept(which: int, text: str) -> None:
        for token_id in tokenizer.encode(text, add_special_tokens=False):
            outputs[which].append(token_id)
            matcher = expected[which]
            assert matcher is not None
            assert matcher.accept_token(token_id)

    check([None, 0, 1])
    accept(0, "get")
    accept(1, "o")
    processor.update_state(None)
    check([None, 0, 1])
    processor.update_state(BatchUpdate(3, [], [], [(0, 2, MoveDirectionality.SWAP)]))
    check([1, 0, None])
    accept(0, "_user")
    processor.update_state(BatchUpdate(2, [0], [], [(1, 0, MoveDirectionality.UNIDIRECTIONAL)]))
    check([0, None])
    processor.update_state(BatchUpdate(3, [], [(2, second, [64], outputs[1])], []))
    check([0, None, 1])
    outputs[1].pop()
    matcher = expected[1]
    assert matcher is not None
    matcher.rollback()
    check([0, None, 1])


def test_a_row_that_cannot_be_constrained_leaves_only_stop_tokens(config: Any, tokenizer: Any) -> None:
    processor = TrieLogitsProcessor(config, torch.device("cpu"), False)
    size = config.model_config.get_vocab_size()
    good, outputs = admitted(config, tokenizer, VALUES).sampling_params, [-1]
    unknown = SamplingParams(extra_args={"trieauto": VALUES})
    added = [(0, good, [64], outputs), (1, unknown, [64], []), (2, good, [64], tokenizer.encode("x"))]
    processor.update_state(BatchUpdate(3, [], added, []))
    assert masked(processor.apply(all_legal(size, 3))) == [[STOP_ID]] * 3


class Buffer:
    """A tensor with a view as an array, as vLLM's buffers are."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.gpu = tensor
        self.np = tensor.numpy()


def test_batches_of_the_v2_runner(config: Any, tokenizer: Any) -> None:
    """Slots, rows in any order, and tokens on the device: the runner's records, as its interface describes them."""
    size = config.model_config.get_vocab_size()
    tokens, prompt_lens, total_lens = torch.full((8, MODEL_LEN), -7), torch.zeros(8, dtype=torch.int32), [0] * 8
    states = LogitsProcRequestState(
        device=torch.device("cpu"),
        max_num_reqs=8,
        vocab_size=size,
        all_token_ids=Buffer(tokens),
        prompt_len=Buffer(prompt_lens),
        prefill_len=Buffer(prompt_lens),
        total_len=Buffer(prompt_lens),
    )
    processor = TrieLogitsProcessor(config, states)
    store = store_of(config.model_config)
    expected: dict[int, Any] = {}

    def add(slot: int, argument: Any, prompt: int, generated: Sequence[int] = ()) -> None:
        if argument is None:
            assert not processor.add_request(slot, SamplingParams())
            expected.pop(slot, None)
        else:
            params = admitted(config, tokenizer, argument, length=prompt).sampling_params
            assert processor.add_request(slot, params)
            expected[slot] = new_matcher(params, store)
            assert expected[slot].accept_tokens(generated)
        tokens[slot] = -7
        tokens[slot, :prompt] = 64
        tokens[slot, prompt : prompt + len(generated)] = torch.tensor(generated)
        prompt_lens[slot], total_lens[slot] = prompt, prompt + len(generated)

    def check(slots: list[int]) -> None:
        mapping = torch.tensor(slots)
        context = LogitsContext(
            expanded_idx_mapping=mapping,
            idx_mapping=mapping,
            idx_mapping_np=mapping.numpy(),
            expanded_local_pos=torch.zeros_like(mapping),
            input_ids=torch.zeros_like(mapping),
            pos=torch.tensor([total_lens[slot] - 1 for slot in slots]),
            seq_lens_upper_bound_np=np.array([total_lens[slot] for slot in slots], np.int32),
        )
        left = masked(processor.apply(all_legal(size, len(slots)), context))
        for found, slot in zip(left, slots, strict=True):
            wanted = expected[slot].allowed_token_ids().tolist() if slot in expected else list(range(size))
            assert found == wanted, slot

    def accept(slot: int, text: str) -> None:
        for token_id in tokenizer.encode(text, add_special_tokens=False):
            tokens[slot, total_lens[slot]] = token_id
            total_lens[slot] += 1
            assert expected[slot].accept_token(token_id)

    add(3, None, 5)
    check([3])
    add(5, VALUES, 9)
    add(0, ["on", "off"], 1)
    check([5, 3, 0])
    accept(5, "get")
    check([0, 5])
    accept(0, "o")
    accept(5, "_user")
    check([3, 0, 5])
    add(5, ["yes"], 30)  # a slot is used again
    check([5, 0])
    total_lens[5] = 20  # a part of a long prompt
    check([5, 0, 3])
    total_lens[5] = 30
    add(0, ["on", "off"], 1, tokenizer.encode("of", add_special_tokens=False))  # back after preemption
    check([0, 5, 3])
    add(0, None, 4)
    check([0, 5])


def test_drafts_are_an_error(config: Any, tokenizer: Any) -> None:
    states = LogitsProcRequestState(torch.device("cpu"), 2, 9, Buffer(torch.zeros(2, 9)), Buffer(torch.ones(2).int()),
                                    Buffer(torch.ones(2)), Buffer(torch.ones(2)))  # fmt: skip
    processor = TrieLogitsProcessor(config, states)
    assert processor.add_request(0, admitted(config, tokenizer, VALUES).sampling_params)
    rows = torch.tensor([0, 0])
    context = LogitsContext(rows, rows[:1], np.array([0]), rows, rows, rows, np.array([1]))
    with pytest.raises(RuntimeError, match="among drafts"):
        processor.apply(torch.zeros(2, 9), context)
