"""Overtone measures whether a speech language model hears how something is said, and responds to it.

The names in this module are the public interface. `run` asks a model and stores its replies, `score` scores stored
replies, `open_run` reads a run, `compare` compares two runs, and `register` makes a Python object usable by name.
`wer`, `bleu`, `rouge_l`, `meteor` and `bertscore` score pairs of texts.
"""

from typing import TYPE_CHECKING, Any

from overtone.version import __version__

if TYPE_CHECKING:
    from overtone.api import Run, compare, open_run, run, score
    from overtone.errors import OvertoneError
    from overtone.objects import register
    from overtone.schema import Item, Reply, Request, Score
    from overtone.text_scores import bertscore, bleu, meteor, rouge_l, wer

_HOME = {
    "api": ("Run", "compare", "open_run", "run", "score"),
    "errors": ("OvertoneError",),
    "objects": ("register",),
    "schema": ("Item", "Reply", "Request", "Score"),
    "text_scores": ("bertscore", "bleu", "meteor", "rouge_l", "wer"),
}
__all__ = [
    "Item", "OvertoneError", "Reply", "Request", "Run", "Score", "__version__", "bertscore", "bleu", "compare",
    "meteor", "open_run", "register", "rouge_l", "run", "score", "wer",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"overtone.{module}"), name)
    raise AttributeError(f"module 'overtone' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
