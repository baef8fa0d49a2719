"""What the benchmarks of serving engines ask."""

from __future__ import annotations

import random


def prompts(count: int, seed: int) -> list[str]:
    """So many prompts for the name of a tool, always the same for a seed."""
    rng = random.Random(seed)
    verbs = ("send", "find", "delete", "list", "pay for", "translate", "book", "cancel")
    things = ("a message", "the invoice", "my files", "all users", "a flight", "the issue", "that project", "a channel")
    return [
        f"Request {rng.randrange(10**6)}: {rng.choice(verbs)} {rng.choice(things)}. The tool is " for _ in range(count)
    ]
