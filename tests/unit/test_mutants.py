"""The faults that measure the tests can still be made."""

from pathlib import Path

import pytest

from tests.support.mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.fault)
def test_the_code_that_a_fault_replaces_stands_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.path).read_text("utf-8").count(mutant.old) == 1
    assert all((ROOT / "tests" / each).exists() for each in mutant.likely)
