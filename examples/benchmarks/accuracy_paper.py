"""The trie paper's figures beside which ours stand: those that its text gives. (Models of 1.7 to 20 billion parameters;
per cent.)"""

from __future__ import annotations

PE, STRICT, SHORT, THINK_PE, THINK_TRIE = "PE", "trie strict", "trie", "think + PE", "think + trie"
"""The arms of its tables 6 and 7. PE (prompt engineering) is not constrained; "strict" has the same prompt as PE."""

SAME_SPELLING = "same tokens as in canonical spelling"
"""What lines say about answers under a trie of all spellings and one of the tokenizer's own."""

ACCURACY = {
    ("TREC", PE): "Qwen3-8B 36.3",
    ("TREC", THINK_TRIE): "Qwen3-8B 63.1",
    ("Banking77", PE): "Qwen3-1.7B 4.8 (valid 6.6), Qwen3-8B 48.8, Mistral 7B (valid 78.4)",
    ("Banking77", STRICT): 'Qwen3-1.7B 24.8 ("with trie")',
    ("Banking77", THINK_PE): "Qwen3-8B 37.6",
    ("CLINC150", PE): "Qwen3-1.7B (valid 10.4), gpt-oss 79.7 (valid 89)",
    ("CLINC150", STRICT): "gpt-oss 77.0",
}
"""By set and arm."""

COMPLIANCE = {"trie": "100", "unconstrained": "0 (with retries)", PE: "84-98 (K = 500-5,000, Qwen3-8B)"}
"""Valid answers about tool names (its tables 9 and 16)."""

RECALL = "87 (medical codes) to 97 (places)"
"""Recall@20 of its shortlists (appendix J)."""

CONTRADICTIONS = """\
What the paper leaves open or contradicts:
- Its appendix J says in one sentence that a shortlist trades the guarantee away, and in another that the cascade keeps
  it; it does not say what sends an answer on to the next stage. Here a further option does ("none of these").
- "Answers are fuzzy-matched": neither the measure nor a threshold is given. Here the first line of an answer is matched
  to the label with the highest WRatio of rapidfuzz, however low; so a wrong guess costs PE nothing in accuracy.
- "Retry, up to 3 attempts" and greedy decoding exclude one another: the same prompt gives the same answer. Here the
  first attempt is greedy, further ones are sampled (temperature 0.7).
- PE's validity "approaches 0 %" from K = 1,000 on (appendix L), but is 84 to 98 % there in table 16."""
