"""What each installed package wants of the host: versions of interfaces, and of Chalie itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..catalogue import files
from ..catalogue.installed import Distribution, read
from ..catalogue.interfaces import leaving, wanted
from ..names import OWN_DIST

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["requirement", "rows", "troubles"]


def rows(host: Host) -> list[dict[str, Any]]:
    """Return what each installed package wants, by package.

    `interfaces` holds words like `abilities 1`; `chalie` is its requirement, empty where it states none;
    `met` tells whether this version fits that; `leaving` is what a later host will not speak.
    """
    found = []
    for row in host.snapshot.distributions():
        one = read(Path(row.path)) if row.state != "missing" and row.path else None
        if not isinstance(one, Distribution):
            continue
        interfaces = {known for point in one.entry_points if (known := wanted(point.group))}
        said, met = requirement(Path(row.path))
        found.append(
            {
                "package": one.name,
                "version": one.version,
                "interfaces": [
                    f"{each.kind} {each.version}"
                    for each in sorted(interfaces, key=lambda each: (each.kind, each.version))
                ],
                "chalie": said,
                "met": met,
                "leaving": [
                    f"{point.group} goes with chalie {gone.removed_in}; its author should use {gone.instead}"
                    for point, gone in leaving(one.entry_points)
                ],
            }
        )
    return found


def requirement(info: Path) -> tuple[str, bool]:
    """Return the versions of chalie that a package requires, and whether this one is among them.

    Args:
        info: its metadata folder.
    """
    import email.parser

    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        headers = email.parser.HeaderParser().parsestr(files.read_text(info / "METADATA"))
    except (OSError, ValueError):
        return "", True
    for line in headers.get_all("Requires-Dist") or ():
        try:
            needed = Requirement(str(line))
        except InvalidRequirement:
            continue
        applies = needed.marker is None or needed.marker.evaluate({"extra": ""})
        if canonicalize_name(needed.name) == OWN_DIST and applies:
            return str(needed.specifier), needed.specifier.contains(__version__, prereleases=True)
    return "", True


def troubles(wants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what `chalie doctor` notes of packages that want another Chalie, now or soon."""
    found = [
        {
            "package": row["package"],
            "reason": f"it wants chalie {row['chalie']}, and this is {__version__}",
            "fix": f"python -m pip install --upgrade {OWN_DIST} {row['package']}",
        }
        for row in wants
        if not row["met"]
    ]
    return found + [
        {
            "package": row["package"],
            "reason": said,
            "fix": f"python -m pip install --upgrade {row['package']}",
        }
        for row in wants
        for said in row["leaving"]
    ]
