import pytest

from benn_fpga.sw.bench import together


@pytest.mark.train
def test_both_sides_are_measured():
    result = together("mlp:8", members=2, batch=4, steps=2, rounds=1)
    assert result["together_seconds"] > 0
    assert result["ratio"] > 0
    assert (result["members"], result["batch"], result["steps"]) == (2, 4, 2)
