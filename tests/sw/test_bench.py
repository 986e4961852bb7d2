import pytest

from benn_fpga.sw.bench import WAYS, together


@pytest.mark.train
@pytest.mark.parametrize("net", ["mlp:8", "nin"])
def test_every_way_is_measured(net):
    found = together(net, (8, 8, 1), members=2, width=0.1, batch=4, steps=2, epochs=1, rounds=1)
    assert list(found["seconds"]) == list(WAYS)
    assert list(found["faster"]) == list(WAYS)[1:]
    assert all(value > 0 for value in found["seconds"].values())
    assert (found["members"], found["batch"], found["steps"]) == (2, 4, 2)
