"""Binary ensemble neural networks from PyTorch to FPGA, bit for bit."""

from pathlib import Path

__version__ = "0.1.0"
__all__ = ["BennError", "BennWarning", "__version__", "eval", "generate", "load", "predict",
           "search", "simulate", "synth", "train"]

# After a non-editable install, `python -m benn_fpga` in a checkout finds this folder first; its
# siblings hw, sim and sw then lie beside it, not inside it.
_checkout = Path(__file__).resolve().parent.parent
if (_checkout / "pyproject.toml").is_file() and (_checkout / "hw").is_dir():
    __path__.append(str(_checkout))

from benn_fpga.errors import BennError, BennWarning  # noqa: E402  (after the path is complete)


def __getattr__(name):
    """The verbs of the command line, imported on first use: they need the optional extras."""
    if name in __all__:
        from benn_fpga import api
        return getattr(api, name)
    raise AttributeError(f"module 'benn_fpga' has no attribute {name!r}")
