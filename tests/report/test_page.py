"""The report's file: self-contained, escaped, and honest about its sounds."""

from __future__ import annotations

import base64
import hashlib
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from overtone.cli import main as overtone
from overtone.errors import StoreError, UsageError
from overtone.report import media
from overtone.report.case_data import to_json
from overtone.report.page import write_report
from overtone.report.template_tables import shade
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Turn
from tests.report.fake_run import HOSTILE, make_run, tone


class Page(HTMLParser):
    """Every element with its attributes, and the text of scripts and styles."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: list[tuple[str, dict[str, str | None], str]] = []
        self._open: tuple[str, dict[str, str | None]] | None = None
        self.html = path.read_text(encoding="utf-8")
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_data(self, data: str) -> None:
        if self._open:
            self.blocks.append((*self._open, data))

    def handle_endtag(self, tag: str) -> None:
        self._open = None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    home = tmp_path_factory.mktemp("html")
    runs = [
        make_run(home / "a", root=home / "data"),
        make_run(home / "b", root=home / "data", seed=2, skill=0.4, version=2, repeats=2, model="openai:other"),
    ]
    return home, write_report(runs, home / "out.html")


def test_nothing_is_loaded_from_elsewhere(made: tuple[Path, Path]) -> None:
    page = Page(made[1])
    for tag, attrs in page.tags:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base"), tag
        assert "src" not in attrs and "style" not in attrs, (tag, attrs)
        assert not any(name.startswith("on") for name in attrs), (tag, attrs)
        assert (attrs.get("href") or "#").startswith("#"), attrs
    assert not re.search(r"https?://", re.sub(r"<script type=.*?</script>", "", page.html, flags=re.S))


def test_the_policy_allows_exactly_our_script_and_style(made: tuple[Path, Path]) -> None:
    page = Page(made[1])
    csp = next(a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy")
    assert csp is not None and csp.startswith("default-src 'none';") and "unsafe" not in csp
    executed = [text for tag, attrs, text in page.blocks if tag == "style" or not attrs.get("type")]
    assert len(executed) == 2
    for text in executed:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in csp


def test_hostile_text_cannot_leave_its_place(made: tuple[Path, Path]) -> None:
    page = Page(made[1])
    assert "<img" not in page.html
    assert "window.hacked=1</script>" not in page.html
    assert [a for t, a in page.tags if t == "script" and not a.get("type")] == [{}]
    told = [text for _, attrs, text in page.blocks if (attrs.get("id") or "").startswith("chunk-")]
    assert told and all(not re.search("[<>&\u2028\u2029]", text) for text in told)
    texts = [
        t
        for chunk in told
        for c in msgspec.json.decode(chunk)
        for i in c["items"]
        for a in i["a"]
        for t in a.get("t", [])
    ]
    assert any(HOSTILE in text for text in texts), "the text itself is kept, whole"
    assert "\u202e" not in re.sub(r"<script type=.*?</script>", "", page.html, flags=re.S)


def test_json_in_a_script_element_keeps_its_value_and_loses_its_teeth() -> None:
    packed = to_json({"k": HOSTILE})
    assert not re.search("[<>&\u2028\u2029]", packed)
    assert msgspec.json.decode(packed) == {"k": HOSTILE}


def test_several_runs_stand_as_rows_and_differing_signatures_are_said(made: tuple[Path, Path]) -> None:
    html = Page(made[1]).html
    assert html.count("openai:some-model") > 3 and html.count("openai:other") > 3
    assert "These runs were not measured the same way" in html
    assert "Published results" in html and "GPT-4o-Audio" in html
    assert "37 of 39 cues covered" in html or re.search(r"\d+ of 39 cues covered", html)
    assert "timeout" in html and "unparsable" in html


def test_the_index_and_the_chunks_agree(made: tuple[Path, Path]) -> None:
    page = Page(made[1])
    blocks = {a["id"]: text for _, a, text in page.blocks if a.get("id")}
    index = msgspec.json.decode(blocks["index"])
    chunks = [msgspec.json.decode(blocks[f"chunk-{n}"]) for n in range(-(-len(index["cases"]) // index["chunk"]))]
    assert sum(len(c) for c in chunks) == len(index["cases"]) == 36
    first = chunks[0][0]["items"]
    assert {a["r"] for item in first for a in item["a"]} == {0, 1}, "runs of one benchmark share their cases"
    clip = first[0]["t"][0][0]
    assert clip == "data/clips/id_0%20%C3%A4%231/target.wav"
    spoken = next(x for c in chunks for k in c for i in k["items"] for a in i["a"] for x in a.get("au", []) if x)
    assert (made[0] / spoken).is_file()


def test_embedded_sounds_are_the_files_and_nothing_else(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", scripts=2, root=tmp_path / "data")
    page = Page(write_report([run], tmp_path / "r.html", embed_audio=True, data=[tmp_path / "data"]))
    blocks = {a["id"]: (a["data-type"], text) for _, a, text in page.blocks if a.get("type") == "text/plain"}
    assert len(blocks) > 6
    kind, text = blocks["m0"]
    assert kind == "audio/wav"
    assert base64.b64decode(text) == (tmp_path / "data/clips/id_0 ä#1/target.wav").read_bytes()
    assert len({text for _, text in blocks.values()}) == len(blocks), "a sound is put in once"


def test_too_much_sound_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run", scripts=2, root=tmp_path / "data")
    monkeypatch.setattr(media, "EMBED_LIMIT", 50_000)
    with pytest.raises(UsageError, match="leave out --embed-audio"):
        write_report([run], tmp_path / "r.html", embed_audio=True, data=[tmp_path / "data"])
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("path", ["../secret.wav", "/etc/passwd", "clips/../../secret.wav", "link.wav"])
def test_a_strangers_run_cannot_reach_outside_its_data(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.wav").write_bytes(tone(300))
    (tmp_path / "data").mkdir()
    (tmp_path / "data/link.wav").symlink_to(tmp_path / "secret.wav")
    run = _run_with_clip(tmp_path, path)
    html = write_report([run], tmp_path / "r.html", embed_audio=True, data=[tmp_path / "data"]).read_text()
    assert 'type="text/plain"' not in html
    assert base64.b64encode(tone(300)).decode()[:200] not in html


def test_only_sounds_are_embedded(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/key.wav").write_bytes(b"-----BEGIN PRIVATE KEY-----")
    (tmp_path / "data/id_rsa").write_bytes(tone(300))
    for name in ("key.wav", "id_rsa"):
        run = _run_with_clip(tmp_path, name)
        html = write_report([run], tmp_path / "r.html", embed_audio=True, data=[tmp_path / "data"]).read_text()
        assert 'type="text/plain"' not in html


def _embedded(page: Path) -> set[str]:
    """The media types of the sounds inside a report."""
    return set(re.findall(r'data-type="(audio/[a-z]+)"', page.read_text()))


@pytest.mark.parametrize("place", ["data", ".", "elsewhere", "home", "root", "temporary"])
def test_clips_are_embedded_only_from_the_working_directory_or_a_folder_that_is_named(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    recordings = home / "recordings"
    recordings.mkdir(parents=True)
    (recordings / "private.wav").write_bytes(tone(300))
    run = _run_with_clip(tmp_path, "private.wav", root=recordings)  # a stranger's run that names a folder of ours
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    folders = {"data": recordings, ".": recordings, "elsewhere": tmp_path / "elsewhere", "home": home, "root": "/"}
    monkeypatch.chdir(folders.get(place, tmp_path))
    out = tmp_path / "r.html"
    words = ["report", str(run), "--embed-audio", "-o", str(out)]
    assert overtone(words) == 0
    told = capsys.readouterr().err
    if place in ("data", "."):
        assert _embedded(out) == {"audio/wav"} and not told
        return
    assert not _embedded(out)
    assert f"--data {recordings}" in told and "are not in this report" in out.read_text()
    for folder, wanted in ((tmp_path / "elsewhere", set()), (recordings, {"audio/wav"}), (home, {"audio/wav"})):
        assert overtone([*words, "--data", str(folder)]) == 0
        assert _embedded(out) == wanted


def test_a_link_does_not_bring_a_data_folder_into_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "recordings").mkdir()
    (tmp_path / "recordings/private.wav").write_bytes(tone(300))
    here = tmp_path / "here"
    here.mkdir()
    (here / "data").symlink_to(tmp_path / "recordings")
    monkeypatch.chdir(here)
    for root in (here / "data", here / "../recordings", here / "data/../recordings"):
        run = _run_with_clip(tmp_path, "private.wav", root=root)
        assert not _embedded(write_report([run], tmp_path / "r.html", embed_audio=True))


def test_a_hostile_audio_name_is_not_followed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", scripts=2, root=tmp_path / "data")
    with Store.create(run) as store:
        store.db.execute("UPDATE replies SET audio = '../../../../etc/passwd' WHERE audio <> ''")
    html = write_report([run], tmp_path / "r.html").read_text()
    assert "is not the name of a stored sound" in html
    assert not re.search(r'"au":\["[^!"]', html)


def _run_with_clip(home: Path, path: str, root: Path | None = None) -> Path:
    folder = home / f"run-{abs(hash((path, root)))}"
    turn = Turn(Clip(path), "words")
    one = Item("i", "toy", 3, "converse", "conversation", "synthesis/s/target", "synthesis/s", "target", (turn,))
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "toy", "model": "x", "root": str(root or home / "data")})
        store.plan([(one, ["zero/audio"])], 1)
    return folder


def test_runs_of_the_same_model_are_told_apart(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, scripts=1) for name in ("one", "two")]
    html = write_report(runs, tmp_path / "r.html").read_text()
    assert "openai:some-model (one)" in html and "openai:some-model (two)" in html


def test_an_empty_run_still_has_a_report(tmp_path: Path) -> None:
    Store.create(tmp_path / "run").close()
    html = write_report([tmp_path / "run"], tmp_path / "r.html").read_text()
    assert "No questions were asked" in html


def test_the_command_writes_beside_the_run_and_prints_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, other = make_run(tmp_path / "run", scripts=1), make_run(tmp_path / "other", scripts=1)
    assert overtone(["report", str(run)]) == 0
    assert capsys.readouterr().out.strip() == str(run / "report.html")
    assert (run / "report.html").stat().st_mode & 0o044
    monkeypatch.chdir(tmp_path)
    assert overtone(["report", str(run), str(other)]) == 0
    assert (tmp_path / "report.html").is_file()
    assert overtone(["report", str(run), "-o", "deep/er/x.html", "--embed-audio"]) == 0
    assert (tmp_path / "deep/er/x.html").is_file()
    assert not list(tmp_path.rglob("*.part"))


def test_errors_say_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert overtone(["report", str(tmp_path)]) == 2
    assert "is not a run: it has no run.db" in capsys.readouterr().err
    run = make_run(tmp_path / "run", scripts=1)
    assert overtone(["report", str(run), "-o", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another file with -o"):
        write_report([run], tmp_path / "file" / "r.html")


def test_shades_run_from_poor_to_good() -> None:
    assert [shade((0.25, 1.0), x) for x in (0.0, 0.25, 1.0)] == [0, 0, 8]
    assert [shade((0.5, 0.0), x) for x in (1.0, 0.5, 0.0)] == [0, 0, 8]
