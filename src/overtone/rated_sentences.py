"""EmoBank's sentences as arrays, rated by readers and by writers, and their splits into training rows and test rows.

The benchmark EmoBank and the study `perspectives` share this module. It needs only NumPy, because a GPU machine may
have nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
DIMENSIONS = ("V", "A", "D")
PERSPECTIVES = ("reader", "writer")
SPLITS = ("official", "document", "genre")
FOLDS = 5


@dataclass(frozen=True)
class Bank:
    """EmoBank's sentences that have both perspectives. Lists have one entry per sentence, `means` arrays have shape (n,
    3), and the ratings of a sentence have shape (k, 3).

    `texts` is empty if the copy has no sentences, like the tokens of a study.
    """

    ids: list[str]
    documents: list[str]
    genres: list[str]
    splits: list[str]
    means: dict[str, Array]
    ratings: dict[str, list[Array]]
    texts: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def clusters(self) -> list[str]:
        """The document of each row. SemEval's headlines are unrelated to each other, so each of them is a document of
        its own."""
        return [i if g == "SemEval" else d for i, d, g in zip(self.ids, self.documents, self.genres, strict=True)]

    def folds(self, count: int = FOLDS) -> Array:
        """Return the fold of each row.

        Documents are not divided. They are assigned from the largest to the smallest, each to the fold with the fewest
        rows of its genre, then with the fewest rows. Equal texts can be in two documents; they are too few to matter.
        """
        sizes: dict[tuple[str, str], int] = defaultdict(int)
        for genre, cluster in zip(self.genres, self.clusters, strict=True):
            sizes[genre, cluster] += 1
        rows: dict[str, list[int]] = {genre: [0] * count for genre in self.genres}
        total = [0] * count
        fold_of = {}
        for (genre, cluster), size in sorted(sizes.items(), key=lambda entry: (-entry[1], entry[0])):
            fold = min(range(count), key=lambda k: (rows[genre][k], total[k], k))
            rows[genre][fold] += size
            total[fold] += size
            fold_of[cluster] = fold
        return np.array([fold_of[cluster] for cluster in self.clusters])

    def rows(self, split: str, part: str = "") -> tuple[Array, Array]:
        """Return the indices of the training rows and of the test rows.

        `part` is the held-out fold (0 to 4) if the split is `document`, and the held-out genre if it is `genre`. Raise
        ValueError for an unknown split or part.
        """
        if split == "official":
            held = np.array([split == "test" for split in self.splits])
            learnt = np.array([split == "train" for split in self.splits])
            return np.flatnonzero(learnt), np.flatnonzero(held)
        if split == "document":
            if part not in map(str, range(FOLDS)):
                raise ValueError(f"there is no fold {part!r}; the folds are 0 to {FOLDS - 1}")
            held = self.folds() == int(part)
        elif split == "genre":
            if part not in self.genres:
                raise ValueError(f"there is no genre {part!r}; there are {', '.join(sorted(set(self.genres)))}")
            held = np.array([genre == part for genre in self.genres])
        else:
            raise ValueError(f"there is no split {split!r}; the splits are {', '.join(SPLITS)}")
        return np.flatnonzero(~held), np.flatnonzero(held)
