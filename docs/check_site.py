"""Check that every link inside a built site leads to a page, and to a place on it, that is there.

Sphinx checks the links that it made; this reads what a browser will read.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: what the theme links to on pages without headings, and search results, which a script fills.
_OPEN = frozenset({"", "furo-main-content"})


class Page(HTMLParser):
    """The links of one page, and the places that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element links to, and what it is called."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id":
                self.places.add(value)
            elif name in ("href", "src"):
                self.links.append(value)
                if tag != "a" and urlsplit(value).netloc:
                    self.fetched.append(value)


def broken(site: Path) -> list[str]:
    """Return a line for each link that leads nowhere, and for each thing fetched from the network."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        found += [f"{path.relative_to(site)} fetches {link} from the network" for link in page.fetched]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists():
                found.append(f"{path.relative_to(site)} links to {link}, which is not there")
            elif place not in _OPEN and target in pages and place not in pages[target].places:
                found.append(f"{path.relative_to(site)} links to {link}: there is no such place on that page")
    return found


if __name__ == "__main__":
    lines = broken(Path(sys.argv[1]).resolve())
    sys.stdout.write("".join(f"{line}\n" for line in lines) or "every link inside the site leads somewhere\n")
    sys.exit(1 if lines else 0)
