"""Grammars in the notations that serving engines take, each as the cheapest automaton of its language."""

from .dispatch import from_grammar

__all__ = ["from_grammar"]
