"""``python -m benn_fpga`` is ``benn-fpga``."""

from benn_fpga.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
