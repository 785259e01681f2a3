"""Names of pilots: made and taken apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.pilots import pilot_name, split_pilot

NAME = "NEST_261116_261122"


@given(st.integers(1, 10**12))
def test_a_name_is_taken_apart_as_it_was_made(limit: int) -> None:
    assert split_pilot(pilot_name(NAME, limit)) == (NAME, limit)


@pytest.mark.parametrize("end", ["", ".pilot", ".pilot0", ".pilot020", ".pilot-1", ".pilotx", ".pilot20.run.json"])
def test_anything_else_is_no_pilot(end: str) -> None:
    assert split_pilot(NAME + end) == (NAME + end, None)
    assert pilot_name(NAME, None) == NAME
