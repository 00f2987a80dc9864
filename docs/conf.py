"""How Sphinx builds the site from these pages: `nox -s docs`. Nothing here reaches the network."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
#: where pages that live elsewhere in the checkout are copied to for the build; never committed.
GATHERED = "_gathered"

project = "Chalie"
author = "The Chalie authors"
copyright = "The Chalie authors, under Apache-2.0"
version = release = re.search(r'__version__ = "(.+)"', (ROOT / "core/chalie/__init__.py").read_text())[1]  # type: ignore[index]

extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_build", "examples"]
highlight_language = "none"
pygments_style, pygments_dark_style = "tango", "monokai"
nitpicky = True
smartquotes = False  # what is quoted here is often typed

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = "Chalie"
html_static_path = ["_static"]
html_css_files = ["chalie.css"]
html_favicon = html_logo = "_static/chalie.svg"
html_copy_source = html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6b5d", "color-brand-content": "#0b6b5d"},
    "dark_css_variables": {"color-brand-primary": "#5fd3bf", "color-brand-content": "#5fd3bf"},
}

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def elsewhere() -> dict[str, str]:
    """Return path in the checkout -> name in the site of every page that does not live in docs/."""
    found = {"CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
    for readme in (*sorted(ROOT.glob("plugins/*/README.md")), ROOT / "skills" / "README.md"):
        name = re.search(r'^name = "(.+)"', (readme.parent / "pyproject.toml").read_text(), re.M)[1]  # type: ignore[index]
        found[readme.relative_to(ROOT).as_posix()] = name
    return found


def sited(text: str, folder: str) -> str:
    """Return a page's text with links out of docs/ turned to where the site has their page.

    Args:
        text: Markdown, as it is in the checkout.
        folder: the folder of the checkout that its relative links start from.
    """
    gathered = elsewhere()

    def moved(link: re.Match[str]) -> str:
        words, target, anchor = link[1], link[2], link[3] or ""
        if "://" in target or target.startswith(("mailto:", "/")):
            return link[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if path == "README.md":
            return f"[{words}](/tutorial.md)"
        if path in gathered:
            return f"[{words}](/{GATHERED}/{gathered[path]}.md{anchor})"
        if path.startswith("docs/"):
            return f"[{words}](/{path.removeprefix('docs/')}{anchor})"
        return words  # a file that a reader of the checkout can open, and a reader of the site cannot

    return _LINK.sub(moved, text)


def gather() -> None:
    """Copy the pages that live elsewhere in the checkout to where Sphinx finds them."""
    folder = DOCS / GATHERED
    folder.mkdir(exist_ok=True)
    wanted = elsewhere()
    for old in folder.glob("*.md"):
        if old.stem not in wanted.values():
            old.unlink()
    for path, name in wanted.items():
        text = sited((ROOT / path).read_text(encoding="utf-8"), posixpath.dirname(path))
        copy = folder / f"{name}.md"
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.write_text(text, encoding="utf-8")


def _read(app: Any, name: str, source: list[str]) -> None:
    if not name.startswith(f"{GATHERED}/"):
        source[0] = sited(source[0], posixpath.join("docs", posixpath.dirname(name)))


def setup(app: Any) -> None:
    """Have Sphinx see every page through `sited`."""
    gather()
    app.connect("source-read", _read)
