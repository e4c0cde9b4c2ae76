"""Mean words per reply of each run, as bars."""

from overtone.display.axes import close, page
from overtone.display.drawing import Box, Drawing
from overtone.findings.figure_source import FigureSource, NothingToDraw

ROOM = "figures"


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw a bar for each run."""
    replies = [[r.text for a in reading.answers for r in a.replies] for reading in source.readings]
    means = [sum(len(text.split()) for text in texts) / len(texts) if texts else 0.0 for texts in replies]
    if not any(means):
        raise NothingToDraw("no replies: run with --levels 3")
    drawing, y = page(width, "Words per reply", "Mean over all replies.")
    for label, mean in zip(source.labels, means, strict=True):
        drawing.words(0, y + 8, label)
        drawing.add(Box(90, y, (width - 90) * mean / max(means), 9, "s0", title=f"{label}: {mean:.1f} words"))
        y += 13
    return close(drawing, y, [], "words-per-reply|v1")
