import hashlib

import pytest
import torch
from safetensors.torch import save

from benn_fpga.errors import BennError
from benn_fpga.sw import checkpoint
from benn_fpga.sw.checkpoint import Checkpoint

SETTINGS = {"net": "tfc", "seed": 1}
TENSORS = {"weight": torch.arange(6.0).reshape(2, 3), "mean": torch.ones(2, dtype=torch.float64)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c"


def written(path):
    Checkpoint(path, SETTINGS).put("member0", 3, TENSORS, finished=True)
    return path


def test_round_trip(path):
    epochs, tensors = Checkpoint(written(path), SETTINGS, resume=True).get("member0")
    assert epochs == 3
    assert set(tensors) == set(TENSORS)
    for name, tensor in TENSORS.items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)


def test_what_is_not_there(path):
    assert Checkpoint(written(path), SETTINGS, resume=True).get("member1") == (0, None)
    assert Checkpoint().get("member0") == (0, None)


def test_resume_without_a_file_starts_anew(path):
    assert Checkpoint(path, SETTINGS, resume=True).get("member0") == (0, None)


def test_unfinished_networks_are_written_now_and_then(path, monkeypatch):
    saved = Checkpoint(path, SETTINGS)
    saved.put("member0", 1, TENSORS, finished=False)
    assert not path.exists()
    monkeypatch.setattr(checkpoint, "_SECONDS", 0)
    saved.put("member0", 2, TENSORS, finished=False)
    assert Checkpoint(path, SETTINGS, resume=True).get("member0")[0] == 2


def test_flush(path):
    saved = Checkpoint(path, SETTINGS)
    saved.flush()
    assert not path.exists()
    saved.put("member0", 1, TENSORS, finished=False)
    saved.flush()
    assert path.exists()


def test_tensors_are_copied(path):
    saved, tensor = Checkpoint(path, SETTINGS), torch.zeros(3)
    saved.put("member0", 1, {"w": tensor}, finished=False)
    tensor += 1
    assert saved.get("member0")[1]["w"].tolist() == [0, 0, 0]


def test_remove(path):
    checkpoint.remove(written(path))
    assert not path.exists()
    checkpoint.remove(path)


@pytest.mark.parametrize(("settings", "message"), [
    ({"net": "sfc", "seed": 2}, "was made with net tfc, not sfc"),
    ({"net": "tfc", "seed": 2}, "was made with seed 1, not 2"),
    ({"net": "tfc", "seed": 1, "bits": 2}, "was made with bits nothing, not 2"),
    ({"net": "tfc"}, "was made with seed 1, not nothing")])
def test_other_settings_are_refused(path, settings, message):
    with pytest.raises(BennError) as caught:
        Checkpoint(written(path), settings, resume=True)
    assert str(caught.value) == (f"checkpoint {path} {message}; use the same, or remove it to "
                                 f"start again")


@pytest.mark.parametrize("at", [25, 60, 100, -1])
def test_damage_is_noticed(path, at):
    content = bytearray(written(path).read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(BennError, match=r"^checkpoint .* is damaged; remove it to start again$"):
        Checkpoint(path, SETTINGS, resume=True)


def test_a_short_file_is_damaged(path):
    path.write_bytes(written(path).read_bytes()[:-1])
    with pytest.raises(BennError, match="is damaged"):
        Checkpoint(path, SETTINGS, resume=True)


def test_another_file_is_no_checkpoint(path):
    path.write_bytes(b"hello")
    with pytest.raises(BennError, match="is not a checkpoint of this version of benn-fpga; "):
        Checkpoint(path, SETTINGS, resume=True)


@pytest.mark.parametrize("header", [
    b"{}", b"[]", b"1", b'{"settings": 1, "epochs": {}}', b'{"settings": {}, "epochs": []}',
    b'{"settings": {}, "epochs": {"member0": "x"}}', b'{"settings": {}, "epochs": {}}'])
def test_a_file_of_other_content_is_damaged(path, header):
    """Its hash is right, but it says nothing that is known, or has tensors of no network."""
    content = save({"header": torch.tensor(list(header), dtype=torch.uint8),
                    "member0/network.x": torch.zeros(1)})
    path.write_bytes(b"benn_fpga checkpoint 1\n" + hashlib.sha256(content).digest() + content)
    with pytest.raises(BennError, match="is damaged; remove it to start again"):
        Checkpoint(path, {}, resume=True)


def test_a_checkpoint_is_not_overwritten(path):
    with pytest.raises(BennError, match=r"^there is a checkpoint .* of a run that did not finish"):
        Checkpoint(written(path), SETTINGS)


def test_resume_needs_a_file():
    with pytest.raises(BennError, match=r"^Resume needs a checkpoint to go on from$"):
        Checkpoint(None, SETTINGS, resume=True)


def test_a_path_that_can_not_be_written(tmp_path):
    with pytest.raises(BennError, match="is a folder"):
        Checkpoint(tmp_path, SETTINGS)
