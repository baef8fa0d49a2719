"""Lists of values of a set, all of them different: languages too large for an automaton of their own."""
