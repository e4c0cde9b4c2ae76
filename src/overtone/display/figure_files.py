"""A figure as a file: SVG by `drawing`, PDF and PNG from the same marks by matplotlib (extra `figures`).

The same figure gives the same bytes: files have no dates, and PDF and PNG always use the fonts that come with
matplotlib. A PDF embeds the font as TrueType, so that text can be searched and publishers accept it.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overtone.display.drawing import INKS, Box, Dot, Drawing, Mark, Words, outline_of, svg
from overtone.errors import MissingExtra, StoreError, UsageError, install_line
from overtone.paths import shown, write_whole
from overtone.spec import suggest
from overtone.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

FORMATS = (".svg", ".pdf", ".png")
DPI = 300
MOST_PIXELS = 100_000_000
_ABSENT = "▯"  # replaces a character that the font lacks


def check(path: Path) -> str:
    """Return the format of a file by its name. Raises UsageError for an unknown format or a path that is not a file."""
    ending = path.suffix.lower()
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file, e.g. -o {path / 'figure.svg'}")
    if ending not in FORMATS:
        what = f"unknown format {path.suffix!r}{suggest(ending, FORMATS)}" if ending else "has no extension"
        raise UsageError(f"{path}: {what}; name a .svg, .pdf or .png file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file; name another")
    if ending != ".svg":
        _matplotlib()
    return ending


def save(drawing: Drawing, path: Path, *, dpi: int = DPI) -> None:
    """Write a figure to a file, completely or not at all."""
    ending = check(path)
    made = svg(drawing).encode() if ending == ".svg" else printed(drawing, ending, dpi=dpi)
    try:
        write_whole(path, made)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; choose another file with -o") from None


def printed(drawing: Drawing, ending: str, *, dpi: int = DPI) -> bytes:
    """Return a figure as PDF or PNG."""
    if not 30 <= dpi <= 2400:
        raise UsageError(f"--dpi is a number from 30 to 2400, not {dpi}")
    if ending == ".png" and (pixels := drawing.width * drawing.height * (dpi / 72) ** 2) > MOST_PIXELS:
        fits = math.floor(dpi * math.sqrt(MOST_PIXELS / pixels))
        raise UsageError(f"the figure would have {pixels / 1e6:.0f} million pixels; give --dpi {fits} or less")
    matplotlib = _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.figure import Figure

    plain = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
    plain |= {"pdf.fonttype": 42, "lines.scale_dashes": False, "path.simplify": False, "text.parse_math": False}
    out = io.BytesIO()
    with matplotlib.rc_context(plain):
        figure = Figure(figsize=(drawing.width / 72, drawing.height / 72), facecolor=INKS["paper"])
        if ending == ".png":
            canvas: Any = FigureCanvasAgg(figure)
            more: dict[str, Any] = {"metadata": {"Software": f"overtone {__version__}", "Title": shown(drawing.title)}}
        else:
            canvas = FigureCanvasPdf(figure)
            about = {"Title": shown(drawing.title), "Subject": shown(drawing.text), "Keywords": drawing.signature}
            never = {"CreationDate": None, "ModDate": None}
            more = {"metadata": {**about, **never, "Creator": f"overtone {__version__}"}}
        _fill(figure, drawing)
        canvas.print_figure(out, format=ending[1:], dpi=dpi, facecolor=INKS["paper"], **more)
    return out.getvalue()


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("matplotlib", ""):
            raise
        raise MissingExtra(
            f"PDF and PNG need matplotlib; run: {install_line('figures')}. A .svg file needs nothing"
        ) from None
    return matplotlib


class _Fonts:
    """The regular and the bold face of a font that comes with matplotlib, and the characters that they have."""

    def __init__(self, font: str) -> None:
        import matplotlib
        from matplotlib.font_manager import FontProperties, get_font

        folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
        files = [folder / f"DejaVu{font.capitalize()}{face}.ttf" for face in ("", "-Bold")]
        self.faces: list[FontProperties] = [FontProperties(fname=str(file)) for file in files]
        self.known = set.intersection(*(set(get_font(str(file)).get_charmap()) for file in files))

    def text(self, text: str) -> str:
        return "".join(c if ord(c) in self.known else _ABSENT for c in shown(text))


def _fill(figure: Figure, drawing: Drawing) -> None:
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, drawing.width)
    axes.set_ylim(drawing.height, 0)
    axes.set_axis_off()
    fonts = _Fonts(drawing.font)
    for order, mark in enumerate(drawing.marks):
        _put(axes, mark, order, fonts)


def _put(axes: Axes, mark: Mark, order: int, fonts: _Fonts) -> None:
    from matplotlib.patches import Circle, Polygon, Rectangle

    def colour(ink: str, opacity: float = 1.0) -> Any:
        return (INKS.get(ink, ink), opacity) if ink else "none"

    patch: Any
    if isinstance(mark, Words):
        axes.text(
            mark.x, mark.y, fonts.text(mark.text), fontsize=mark.size, color=colour(mark.ink), zorder=order,
            ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor], va="baseline",
            rotation=-mark.turn, rotation_mode="anchor", fontproperties=_sized(fonts, mark), parse_math=False,
        )  # fmt: skip
        return
    if isinstance(mark, Box):
        place, width, height = (mark.x, mark.y), max(mark.width, 0), max(mark.height, 0)
        patch = Rectangle(place, width, height, facecolor=colour(mark.fill, mark.opacity), edgecolor=colour(mark.ink))
        patch.set_linewidth(0.5 if mark.ink else 0)
    elif isinstance(mark, Dot):
        corners = outline_of(mark)
        patch = Polygon(corners, closed=True) if corners else Circle((mark.x, mark.y), mark.size)
        patch.set(facecolor=colour("paper" if mark.hollow else mark.ink), edgecolor=colour(mark.ink), linewidth=1)
        patch.set_joinstyle("miter")
    else:
        patch = Polygon(mark.points, closed=mark.closed, fill=bool(mark.fill))
        patch.set(facecolor=colour(mark.fill, mark.opacity), edgecolor=colour(mark.ink), linewidth=mark.width)
        patch.set(capstyle="butt", joinstyle="miter", linestyle=(0, (3, 2)) if mark.dashed else "-")
    patch.set(zorder=order, clip_on=False)
    axes.add_patch(patch)


def _sized(fonts: _Fonts, mark: Words) -> FontProperties:
    face = fonts.faces[mark.bold].copy()
    face.set_size(mark.size)
    return face
