"""Claims of the papers that no program here measures, and why not."""

from __future__ import annotations

from functools import partial

from results import Claim

_trie = partial(Claim, "trie", measured="", verdict="not reproduced")
_reachability = partial(Claim, "reachability", measured="", verdict="not reproduced")

CLAIMS = [
    _trie(
        where="Section 1",
        says="Providers cap enums: a cardinality wall at 120 to 1,000 values",
        reported="OpenAI 1,000 values; Gemini about 120; Anthropic 180 s for compiling, about 200 values",
        comment="These are closed services, and their limits change. We draw them into the plot of compile times, "
        "as the paper does.",
    ),
    _trie(
        where="Table 3, Section 5.1",
        says="Requests per second on an A100 with Qwen3-8B",
        reported="219 (trie), 7.5 (XGrammar) and 104 (unconstrained) requests/s at batch 256",
        comment="No such GPU or model here. We measure the same comparison in vLLM on a CPU, with a small model and "
        "with one of a single random layer, whose forward pass is short: see the other claims about this table.",
        order=9,
    ),
    _trie(
        where="Section 5.1, deployment",
        says="At batch 128 masks leave the GPU idle for 7.8 % (XGrammar), 27 % (LLGuidance), 0.1 % (trie) of a step",
        reported="a forward pass of about 10 ms; masks 783 µs, 3.7 ms, 10 µs",
        comment="Shares of a forward pass need that GPU. The masks of a batch are measured: Table 19. The paper gives "
        "37 % for LLGuidance as well: one is of the forward pass, the other of the step.",
        order=9,
    ),
    _trie(
        where="Table 7, Appendix B",
        says="In 21 of 24 cells (6 models, 4 datasets) constrained decoding is the most accurate",
        reported="21 of 24; unconstrained is at least 95 % valid in 8 of 24",
        comment="The six models have 1.7 to 20 billion parameters; they neither fit here nor can be had offline. "
        "The same arms run on the same datasets with a model of 135 million: see Table 6.",
    ),
    _trie(
        where="Appendix C",
        says="A Rust and a C++ implementation on 96 cores are a fair comparison",
        reported="trie in Rust with Rayon, XGrammar 0.1.11, LLGuidance 1.6.1, AMD EPYC 7R32",
        comment="The paper's code is not published, so its trie cannot be run here. Ours is numba on numpy, one "
        "thread; XGrammar and LLGuidance are of newer versions.",
        order=9,
    ),
    _trie(
        where="Appendix E, engines",
        says="TensorRT-LLM has a stack of its own",
        reported="left to future work",
        comment="Nothing is claimed that could be measured.",
        order=9,
    ),
    _trie(
        where="Appendix G.6",
        says="The FSM's table of transitions overflows the L2 cache, which makes masks 2 to 2.5 times slower",
        reported="47 MB at K=2,000, 235 MB at K=10,000; a model with one fitted factor, no measurement",
        comment="No engine here keeps such a table: XGrammar and LLGuidance do not, and trieauto's"
        " masks are short lists.",
    ),
    _trie(
        where="Appendix L, accuracy",
        says="Strong models are at least 95 % valid without a constraint up to 59 labels, and can be more accurate "
        "than with the trie; at 76 to 150 labels the trie matches them",
        reported="gpt-oss on CLINC150 79.7 % against 77.0 %; weaker ones: Mistral 42.5 %, DeepSeek R1 0.2 % valid",
        comment="A matter of models that are not here. What a small model does is under Table 6.",
        order=9,
    ),
    _reachability(
        where="Section 2",
        says="The first to turn time-bounded backward reachability into a mask for generation",
        reported="no earlier work named",
        comment="A claim of priority; nothing to measure.",
    ),
    _reachability(
        where="Section 3.2, memory",
        says="A step allocates no memory: masks are written in place",
        reported="an argument",
        comment="A property of an implementation that is not published. trieauto's steps write into the caller's row; "
        "the objects of a Python call are made by any.",
        order=9,
    ),
    _reachability(
        where="Abstract, GPU",
        says="Under 0.05 ms a token on a GPU",
        reported="< 0.05 ms, without a table or the name of a GPU",
        comment="No GPU here, and no figures in the paper to set ours beside.",
        order=9,
    ),
]
