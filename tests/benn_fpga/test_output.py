import os

import pytest

from benn_fpga.errors import BennError
from benn_fpga.output import check_file


def test_what_is_not_a_file_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BennError, match="is not a regular file; give the name of a file"):
        check_file(tmp_path / "pipe")
