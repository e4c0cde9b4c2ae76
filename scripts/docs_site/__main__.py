"""Build the documentation site into site/: `make docs`.

python -m scripts.docs_site [--out DIR]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.docs_site.assemble import ROOT, assemble
from scripts.docs_site.check import problems


def build(out: Path) -> None:
    """Build the site strictly and check it. Raise SystemExit with what is wrong; `out` is replaced only on success."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        assemble(work)
        zensical = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(zensical, cwd=work, capture_output=True, text=True, check=False, env=_environment())
        if done.returncode:
            raise SystemExit(f"zensical build --strict failed:\n{done.stdout}{done.stderr}")
        site = work / "site"
        for page in (work / "pages").rglob("*.md"):  # llms.txt links to them
            shutil.copy(page, site / page.relative_to(work / "pages"))
        if found := problems(site):
            raise SystemExit("\n".join(["the built site has these problems:", *found]))
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(site, out)


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "NO_COLOR": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", metavar="DIR", type=Path, default=ROOT / "site", help="output folder (default: site)")
    out = parser.parse_args().out
    build(out)
    print(f"open {out / 'index.html'}, or serve it with its search: python -m http.server --directory {out}")


if __name__ == "__main__":
    main()
