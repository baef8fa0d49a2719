"""Canonical tokenization: exactly the tokens that the tokenizer itself writes (appendix H.9 of the trie paper).

The mask law: with S the set of the sequences that it writes for the strings of a language, token v is legal after the
tokens t iff t and then v begin a sequence of S, and a stop token is legal iff t is in S.

A set, or a language of few strings, is encoded string by string by the tokenizer itself (``strings``). Any other
language is followed together with a model of a byte-pair tokenizer: its pre-tokenizer as an automaton (``patterns``,
``characters``, ``splitting``) and its merges (``byte_pairs``).
"""
