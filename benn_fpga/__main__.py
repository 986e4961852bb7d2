"""``python -m benn_fpga`` is ``benn-fpga``."""


def main():
    try:
        from benn_fpga import cli
        return cli.main()
    except KeyboardInterrupt:  # while importing
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
