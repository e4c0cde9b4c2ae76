"""`overtone figure`: what it names, writes and refuses."""

from __future__ import annotations

import re
import struct
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from bench.findings_runs import make_runs
from overtone.arena.standings import Place, Standing, Standings
from overtone.cli import main
from overtone.results.measures import Estimate
from tests.results.small import Maker


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [str(run) for run in make_runs(tmp_path_factory.mktemp("made-up"), runs=2, scripts=12)]


def test_without_a_name_every_picture_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines][:2] == ["funnel", "cues"]
    assert all(len(line.split()) > 5 for line in lines)


def test_a_picture_is_written_at_the_width_asked_for(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new folder" / "x.svg"
    assert main(["figure", "funnel", *runs, "-o", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    assert 'width="481.8898pt"' in out.read_text()
    for width in ("84", "84mm", "8.4cm"):
        assert main(["figure", "funnel", *runs, "-o", str(out), "--width", width]) == 0
        assert 'width="238.1102pt"' in out.read_text()
    assert main(["figure", "funnel", *runs, "-o", str(out), "--width", "4in"]) == 0
    assert 'width="288pt"' in out.read_text()


def test_a_width_is_exact_in_every_format(runs: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; run 'pip install overtone[figures]'")
    for ending in ("svg", "pdf", "png"):
        out = tmp_path / f"x.{ending}"
        assert main(["figure", "funnel", *runs, "-o", str(out), "--width", "84mm", "--bare", "--font", "serif"]) == 0
    svg = ElementTree.parse(tmp_path / "x.svg").getroot()
    assert float(svg.attrib["width"].removesuffix("pt")) / 72 * 25.4 == pytest.approx(84, abs=0.001)
    box = re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+) ([0-9.]+)", (tmp_path / "x.pdf").read_bytes())
    assert box and float(box[1]) / 72 * 25.4 == pytest.approx(84, abs=0.001)
    assert float(box[2]) == pytest.approx(float(svg.attrib["height"].removesuffix("pt")), abs=0.001)
    wide, tall = struct.unpack(">II", (tmp_path / "x.png").read_bytes()[16:24])
    assert (wide, tall) == pytest.approx((84 / 25.4 * 300, float(box[2]) / 72 * 300), abs=1)
    assert b"DejaVuSerif" in (tmp_path / "x.pdf").read_bytes()
    assert svg.attrib["font-family"].endswith(" serif")


def test_a_bare_figure_has_its_words_in_the_caption_file(runs: list[str], tmp_path: Path) -> None:
    whole, bare, caption = tmp_path / "whole.svg", tmp_path / "bare.svg", tmp_path / "caption.tex"
    assert main(["figure", "levels", *runs, "-o", str(whole)]) == 0
    assert main(["figure", "levels", *runs, "-o", str(bare), "--bare", "--caption", str(caption)]) == 0
    drawn = [[e for e in ElementTree.parse(path).getroot() if e.tag.endswith("}text")] for path in (whole, bare)]
    texts = [[e.text or "" for e in each] for each in drawn]
    assert texts[1] and len(texts[1]) < len(texts[0])
    assert not any("levels|v" in text for text in texts[1]) and any("levels" in text for text in texts[0])
    start = texts[0].index(texts[1][0])
    assert texts[0][start : start + len(texts[1])] == texts[1]
    assert float(drawn[1][0].attrib["y"]) < float(drawn[0][start].attrib["y"])
    lines = caption.read_text().splitlines()
    assert lines[0].startswith(r"\caption{") and lines[1] == r"\label{fig:levels}" and lines[2].startswith("% levels|v")


def test_labels_stages_and_input_are_those_given(runs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    flags = ["--label", "First <b>", "--label", "Second", "--set", "funnel.words=0.4", "--input", "transcript"]
    assert main(["figure", "funnel", *runs, "-o", str(out), *flags]) == 0
    text = out.read_text()
    assert "First &lt;b&gt;" in text and "wer&lt;=0.4" in text and "/transcript/" in text


@pytest.mark.parametrize("ending", ["pdf", "png"])
def test_print_formats_are_written(ending: str, runs: list[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / f"x.{ending.upper()}"
    assert main(["figure", "text-only", runs[0], "-o", str(out)]) == 0
    assert out.read_bytes().startswith({"pdf": b"%PDF", "png": b"\x89PNG"}[ending])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["funel", "RUN", "-o", "x.svg"], "did you mean 'funnel'"),
        (["RUN", "-o", "x.svg"], "name the figure before the runs"),
        (["funnel", "RUN"], "-o funnel.svg"),
        (["funnel", "-o", "x.svg"], "name the runs"),
        (["funnel", "RUN", "-o", "x.gif"], "name a .svg, .pdf or .png file"),
        (["funnel", "RUN", "-o", "."], "is a folder"),
        (["funnel", "nowhere", "-o", "x.svg"], "nowhere is not a run"),
        (["funnel", "RUN", "RUN", "-o", "x.svg"], "given twice"),
        (["funnel", "RUN", "-o", "x.svg", "--width", "5"], "70 to 1000 mm"),
        (["funnel", "RUN", "-o", "x.svg", "--width", "nan"], "70 to 1000 mm"),
        (["funnel", "RUN", "-o", "x.svg", "--width", "84px"], "84mm or 3.3in"),
        (["funnel", "RUN", "-o", "x.svg", "--caption", "x.txt"], "ends in .tex"),
        (["funnel", "RUN", "-o", "x.svg", "--dpi", "300"], "--dpi applies to .png"),
        (["funnel", "RUN", "-o", "x.svg", "--label", "a", "--label", "b"], "2 labels for 1 runs"),
        (["funnel", "RUN", "-o", "x.svg", "--set", "funnel.word=1"], "did you mean 'words'"),
        (["arena", "RUN", "-o", "x.svg"], "--arena DIR"),
        (["arena", "RUN", "-o", "x.svg", "--arena", "."], "has no standings.json"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(
    words: list[str], told: str, runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["figure", *(runs[0] if word == "RUN" else word for word in words)]) == 2
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_run_without_the_data_is_told_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maker = Maker(tmp_path / "run")
    assert main(["figure", "text-only", str(maker.done()), "-o", str(tmp_path / "x.svg")]) == 2
    assert "run the benchmark first" in capsys.readouterr().err


def test_pdf_without_matplotlib_names_what_to_install(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["figure", "funnel", runs[0], "-o", str(tmp_path / "x.pdf")]) == 2
    assert "[figures]'" in capsys.readouterr().err
    assert main(["figure", "funnel", runs[0], "-o", str(tmp_path / "x.svg")]) == 0


def test_an_arena_is_drawn_from_its_folder_without_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rate(value: float) -> Estimate:
        return Estimate(value, value - 0.1, value + 0.1, 20, 20)

    places = tuple(
        Place(f"people/run/{name}", name, n, (1, 2), Estimate(1000 - 50 * n, 900.0, 1100.0, 20, 20), None, 1000.0,
              rate(0.5), rate(0.5), rate(0.1), 20)
        for n, name in enumerate(("a", "<b>"), 1)
    )  # fmt: skip
    one = Standing("people", "people", 20, 20, 10, 2, places, {}, ())
    (tmp_path / "standings.json").write_bytes(msgspec.json.encode(Standings("arena|v1", ("a", "<b>"), (one,), ())))
    out = tmp_path / "x.svg"
    assert main(["figure", "arena", "--arena", str(tmp_path), "-o", str(out)]) == 0
    assert "&lt;b&gt;" in out.read_text()
    (tmp_path / "standings.json").write_text("{}")
    assert main(["figure", "arena", "--arena", str(tmp_path), "-o", str(out)]) == 2
    assert "cannot read" in capsys.readouterr().err
