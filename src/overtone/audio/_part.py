"""Read a part of a long sound file, or one of its channels, without decoding the rest."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np

from overtone.audio._kind import media_type
from overtone.audio._read import MAX_BYTES, MAX_SECONDS, Samples, check_length
from overtone.audio._wav import AGAIN, Fault, check_shape


def read_part(
    path: Path | str, start: float = 0.0, end: float | None = None, *, channel: int | None = None
) -> tuple[Samples, int]:
    """Return the samples between two times in seconds, and their rate: one channel, or the mean of all.

    Without `end`, the part lasts to the end of the file; the file itself may be longer than the limit of `read`.
    Raises AudioError if the file cannot be decoded, lacks the channel, or ends before the part does.
    """
    import soundfile

    name = str(path)
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116 - as in `read_bytes`
            raise Fault(name, "unreadable", "not a regular file")
        with open(path, "rb") as raw:  # noqa: PTH123
            if not media_type(raw):
                raise Fault(name, "foreign", "it is not a sound file", "convert it, or leave it out")
            raw.seek(0)
            with soundfile.SoundFile(raw) as file:
                rate = int(file.samplerate)
                check_shape(file.channels, rate, name)
                if channel is not None and not 0 <= channel < file.channels:
                    raise Fault(
                        name, "unreadable", f"it has {file.channels} channels, and channel {channel + 1} is wanted"
                    )
                first = round(start * rate)
                last = file.frames if end is None else round(end * rate)
                if not 0 <= first < last:
                    raise Fault(name, "empty", f"no sound between {start:g} and {end} s")
                check_length(last - first, rate, MAX_SECONDS, MAX_BYTES, name)
                file.seek(min(first, file.frames))
                block: Samples = file.read(last - first, dtype="float32", always_2d=True)
    except FileNotFoundError:
        raise Fault(name, "missing", "there is no such file", "check the data folder and its download") from None
    except soundfile.LibsndfileError as error:
        raise Fault(name, "unreadable", f"it is damaged or truncated ({error.error_string.strip()})", AGAIN) from None
    except OSError as error:
        raise Fault(name, "unreadable", f"cannot be read: {error.strerror}") from None
    if len(block) < last - first - rate // 10:  # times in tables are rounded
        raise Fault(name, "truncated", f"it ends before {last / rate:.2f} s", AGAIN)
    samples: Samples = block.mean(axis=1, dtype=np.float32) if channel is None else block[:, channel].copy()
    if not np.isfinite(samples).all():
        raise Fault(name, "not-finite", "it has NaN or infinite samples", AGAIN)
    return samples, rate
