"""Marks become SVG that any viewer reads, in colours that any eye tells apart, and PDF and PNG of the same marks."""

from __future__ import annotations

import itertools
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import NoReturn
from xml.etree import ElementTree

import pytest

from overtone.display import figure_files
from overtone.display.drawing import (  # fmt: skip
    INKS,
    SHAPES,
    Box,
    Dot,
    Drawing,
    Line,
    Scale,
    Words,
    on,
    ramp,
    series,
    shortened,
    svg,
    width_of,
    wrapped,
)
from overtone.errors import MissingExtra, StoreError, UsageError

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('1')</script> & \x1b[31m\u202e \ud800 😀 $x^2$ \"q\""


def picture() -> Drawing:
    drawing = Drawing(200, 120, f"A title {HOSTILE}", f"Words about it {HOSTILE}", "made|v1")
    drawing.words(10, 20, HOSTILE, bold=True, key="1:funnel/a b/c")
    drawing.line((0, 40), (200, 40), dashed=True)
    drawing.add(Line(((10, 50), (60, 90), (90, 50)), "s1", 1.0, closed=True, fill="s1", opacity=0.3))
    drawing.add(Box(100, 50, 40, 20, "s2", "ink", 0.5, key='1:x"><script>', title=HOSTILE))
    for n, shape in enumerate(SHAPES):
        drawing.add(Dot(20 + 15 * n, 100, f"s{n}", shape, hollow=n % 2 == 1, title="n = 3"))
    drawing.words(190, 110, "turned", turn=-90, anchor="end", size=7)
    return drawing


@pytest.mark.parametrize("inline", [True, False])
def test_hostile_text_is_text_and_the_svg_is_well_formed(inline: bool) -> None:
    root = ElementTree.fromstring(svg(picture(), inline=inline))
    assert not list(root.iter(f"{SVG}script"))
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert any(text.startswith("<script>alert('1')</script> &") for text in texts)
    assert not re.search("[\x00-\x08\x1b\u202e\ud800]", "".join(root.itertext()))


def test_a_mark_with_a_key_leads_to_its_cases_and_names_its_key() -> None:
    root = ElementTree.fromstring(svg(picture(), inline=True))
    links = [link.get("href") for link in root.iter(f"{SVG}a")]
    assert links == ["#behind=1%3Afunnel/a%20b/c", "#behind=1%3Ax%22%3E%3Cscript%3E"]
    assert [node.get("data-key") for node in root.iter() if node.get("data-key")] == ["1:funnel/a b/c", '1:x"><script>']


def test_inline_colours_are_the_pages_and_in_a_file_they_are_fixed() -> None:
    assert f"var(--f-s1,{INKS['s1']})" in svg(picture(), inline=True)
    assert "var(" not in svg(picture())


# ── colours ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]


def _lab(linear: list[float]) -> list[float]:
    r, g, b = (min(1.0, max(0.0, x)) for x in linear)
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


def _seen(colour: str, eye: str) -> list[float]:
    """A colour as an eye sees it, in Lab. Matrices of Machado, Oliveira and Fernandes (2009), full severity."""
    rows = {
        "deuteranopia": (0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881),
        "protanopia": (0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998),
        "any": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
    }[eye]
    linear = _linear(colour)
    return _lab([sum(m * x for m, x in zip(rows[n : n + 3], linear, strict=True)) for n in (0, 3, 6)])


def _contrast(one: str, other: str) -> float:
    light = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(_linear, (one, other)))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("eye", ["any", "deuteranopia", "protanopia"])
def test_two_series_differ_in_colour_to_any_eye_or_else_in_shape(eye: str) -> None:
    for one, other in itertools.combinations(range(10), 2):
        (ink, shape), (ink2, shape2) = series(one), series(other)
        distance = sum((a - b) ** 2 for a, b in zip(_seen(INKS[ink], eye), _seen(INKS[ink2], eye), strict=True)) ** 0.5
        assert shape != shape2 or distance > 20, (one, other, distance)
    first = [_seen(INKS[series(n)[0]], eye) for n in range(3)]
    for a, b in itertools.combinations(first, 2):
        assert sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5 > 15


def test_text_and_marks_can_be_read_on_paper() -> None:
    assert _contrast(INKS["ink"], INKS["paper"]) >= 7
    assert _contrast(INKS["quiet"], INKS["paper"]) >= 4.5
    assert all(_contrast(INKS[f"s{n}"], INKS["paper"]) >= 2.0 for n in range(8))


def test_numbers_on_the_ramp_can_be_read_and_it_gets_lighter_all_the_way() -> None:
    shades = [ramp(n / 20) for n in range(21)]
    assert all(_contrast(shade, on(shade)) >= 4.5 for shade in shades)
    light = [_lab(_linear(shade))[0] for shade in shades]
    assert light == sorted(light)


# ── places and room ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scale", [Scale(0, 1, 100, 300), Scale(-2.5, 4, 300, 20), Scale(1, 5, 0, 7)])
def test_a_scale_maps_its_ends_and_is_linear_between_them(scale: Scale) -> None:
    assert scale((scale.low + scale.high) / 2) == pytest.approx((scale.start + scale.end) / 2)
    assert scale(scale.low) == scale.start and scale(scale.high) == scale.end


def test_a_text_is_never_wider_than_the_room_it_was_cut_or_wrapped_for() -> None:
    for text in ("openai:gpt-4o-audio-preview-2024-12-17", "W" * 80, "中文模型的名字很长很长", HOSTILE, "short"):
        for room in (20.0, 60.0, 200.0):
            for middle in (True, False):
                assert width_of(shortened(text, room, middle=middle)) <= room or shortened(text, room) == "…"
            assert all(width_of(line) <= room for line in wrapped(text * 3, room) if len(line) > 1)
    assert shortened("made-up-model-2026", 70, middle=True).endswith("026")


def test_widths_hold_for_the_font_that_prints() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    for text in ("Reasoning accuracy 61 (52 to 70)", "made-up:parrot, −30 (−43 to 69)", "WMm@%", "iiilllttt"):
        drawn = TextPath((0, 0), text, size=8, prop=FontProperties(family="DejaVu Sans")).get_extents().width
        assert 0.97 * drawn <= width_of(text) <= 1.2 * drawn, text


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pixels(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    place = 8
    while place < len(png):
        size, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + size]
        assert zlib.crc32(kind + body) == struct.unpack(">I", png[place + 8 + size : place + 12 + size])[0]
        place += 12 + size
    return struct.unpack(">II", png[16:24])


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_the_same_picture_gives_the_same_bytes_and_leaves_nothing_else(ending: str, tmp_path: Path) -> None:
    if ending != ".svg":
        pytest.importorskip("matplotlib")
    first, second = tmp_path / f"a{ending}", tmp_path / "new" / f"b{ending}"
    figure_files.save(picture(), first)
    figure_files.save(picture(), second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in tmp_path.rglob("*")) == [first.name, second.name, "new"]


def test_a_png_has_the_size_and_resolution_asked_for() -> None:
    pytest.importorskip("matplotlib")
    assert _pixels(figure_files.printed(picture(), ".png")) == (833, 500)
    assert _pixels(figure_files.printed(picture(), ".png", dpi=72)) == (200, 120)


def test_a_pdf_embeds_its_font_as_truetype_and_has_the_pictures_size() -> None:
    pytest.importorskip("matplotlib")
    pdf = figure_files.printed(picture(), ".pdf")
    assert pdf.startswith(b"%PDF-") and pdf.rstrip().endswith(b"%%EOF")
    assert b"/MediaBox [ 0 0 200 120 ]" in pdf
    assert b"/FontFile2" in pdf and b"/Type3" not in pdf
    assert b"CreationDate" not in pdf and b"ModDate" not in pdf


def test_a_picture_too_large_to_print_says_which_resolution_fits() -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(UsageError, match=r"--dpi \d+ or less"):
        figure_files.printed(Drawing(2000, 2000, "large"), ".png", dpi=2400)


@pytest.mark.parametrize(
    ("name", "told"),
    [("x.jpeg", "unknown format"), ("x", "no extension"), ("folder", "is a folder"), ("x.SVGZ", "unknown format")],
)
def test_a_name_that_is_no_figures_is_refused(name: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=told):
        figure_files.save(picture(), tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_disk_that_cannot_take_the_file_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "x.svg"
    out.write_text("old")

    def full(path: Path, *_: object, **__: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="No space left on device"):
        patch.setattr(Path, "open", full)
        figure_files.save(picture(), out)
    assert out.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_without_matplotlib_svg_is_written_and_pdf_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from pathlib import Path\n"
        "from overtone.errors import MissingExtra\n"
        "from overtone import figures\nfrom overtone.display import figure_files\n"
        "from overtone.display.drawing import Drawing\n"
        "figure_files.save(Drawing(9, 9, 't'), Path('a.svg'))\n"
        "try: figure_files.save(Drawing(9, 9, 't'), Path('a.pdf'))\n"
        "except MissingExtra as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert "[figures]'" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["a.svg"]
    assert issubclass(MissingExtra, Exception)


def test_a_report_does_not_import_matplotlib() -> None:
    code = (
        "import sys, overtone.report.page, overtone.figures, overtone.findings.funnel.figure, "
        "overtone.display.figure_files; print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_words_are_drawn_as_they_stand_without_mathematics(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawing = Drawing(100, 30, "t")
    drawing.add(Words(5, 20, r"$\frac{1}{0$ \x"))
    figure_files.save(drawing, tmp_path / "x.pdf")  # as mathematics it would not parse
    assert (tmp_path / "x.pdf").stat().st_size > 1000
