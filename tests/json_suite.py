"""The official JSON Schema Test Suite, and what is in the declared subset: as the example program has it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_PROGRAM = Path(__file__).parents[1] / "examples" / "benchmarks" / "json_schema_suite.py"
_specification = importlib.util.spec_from_file_location("json_schema_suite", _PROGRAM)
assert _specification is not None
assert _specification.loader is not None
_program = importlib.util.module_from_spec(_specification)
sys.modules["json_schema_suite"] = _program
_specification.loader.exec_module(_program)

DRAFTS = _program.DRAFTS
Group = _program.Group
groups = _program.groups
is_in_subset = _program.is_in_subset
run = _program.run
totals = _program.totals
