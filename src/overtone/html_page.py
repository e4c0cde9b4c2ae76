"""Self-contained HTML pages: how templates are rendered, what a page may load, and how its file is written.

Texts of models, data and file names are untrusted. Jinja escapes them, `visible` writes out characters that change how
a page reads, and a Content-Security-Policy blocks everything but the page's own style and script.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from overtone.paths import write_whole
from overtone.version import __version__

_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Return text with control and direction-changing characters escaped as code points. The report's script does the
    same."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def asset(package: str, name: str) -> str:
    """Read a style sheet or a script that is stored in a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def write_page(out: Path, package: str, template: str, context: dict[str, Any], *, css: str = "", js: str = "") -> Path:
    """Write a page atomically from a template of `package` that extends page.html.j2, and return `out`.

    Without `css` the page has the plain style of page.css. `context` must have a title. Generators in it are read while
    the page is written, so that a large page need not fit into memory. Raises OSError.
    """
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package, "."), jinja2.PackageLoader("overtone", ".")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    css = css or asset("overtone", "page.css")
    head = {"css": Markup(css), "js": Markup(js), "csp": Markup(_policy(css, js)), "version": __version__}
    page = environment.get_template(template).generate(head | context)
    write_whole(out, (text.encode() for text in page))
    return out


def _policy(css: str, js: str) -> str:
    """Return a Content-Security-Policy that allows this style, this script and sounds, and blocks everything else."""
    style, script = (f"'sha256-{base64.b64encode(hashlib.sha256(x.encode()).digest()).decode()}'" for x in (css, js))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; media-src 'self' file: blob: data:; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
