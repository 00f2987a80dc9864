"""Read the facts of packages' abilities twice, in processes of their own, and compare the readings."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from ..errors import DescribeFailed
from .descriptor import Descriptor, Problem
from .installed import Distribution
from .reading import read_frame, write_frame
from .tables import descriptor_of

__all__ = ["SLOW_S", "TICK_S", "Described", "describe"]

#: an import that takes longer is named to the person who waits for it
SLOW_S: Final = 1.0
#: seconds without an answer after which the caller gets a turn
TICK_S: Final = 0.25
#: seconds that a reading process may take to end what packages have started
_END_S: Final = 5.0
_GROUP: Final = "chalie.abilities"

#: what differs between the two readings; facts must not depend on any of it
_READINGS: Final[tuple[dict[str, str], ...]] = (
    {"PYTHONHASHSEED": "1", "TZ": "UTC0", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
    {"PYTHONHASHSEED": "2", "TZ": "KIR-14", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
)
#: what a package may need to be imported at all; nothing else of the environment is passed on
_KEPT: Final = (
    "PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "OPENBLAS_CORETYPE",
)


@frozen
class Described:
    """A distribution whose abilities were read.

    Attributes:
        dist: its normalised name.
        abilities: their descriptors, sealed.
        seconds: how long its slowest import took.
    """

    dist: str
    abilities: tuple[Descriptor, ...]
    seconds: float = 0.0


def describe(
    distributions: Sequence[Distribution],
    *,
    limit_s: float,
    paths: Sequence[str],
    folders: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Described | Problem | None]:
    """Yield each distribution's abilities, or why it is set aside, in the order they are done.

    Yields None every `TICK_S` while nothing is, so that the caller can do something else meanwhile.

    Args:
        distributions: those to read.
        limit_s: seconds that one distribution may take.
        paths: the import path to read them with.
        folders: distribution -> folders to import it from besides, where an editable is newer than `paths`.
    """
    todo = {one.name: one for one in distributions}
    tasks = [_task(one, (folders or {}).get(one.name, ())) for one in distributions]
    arrived: queue.SimpleQueue[tuple[int, dict[str, Any] | None]] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="chalie-reading-") as scratch:
        readers = [
            _start(Path(scratch, str(number)), own, {"tasks": tasks, "limit_s": limit_s}, paths)
            for number, own in enumerate(_READINGS)
        ]
        for number, reader in enumerate(readers):
            threading.Thread(target=_collect, args=(number, reader, arrived), daemon=True).start()
        try:
            yield from _compare(todo, arrived, scratch)
        finally:
            for reader in readers:
                reader.terminate()
            for reader in readers:
                _end(reader)


def _end(reader: subprocess.Popen[bytes]) -> None:
    try:
        reader.wait(_END_S)  # it ends what it has started first
    except subprocess.TimeoutExpired:
        reader.kill()
        reader.wait()


def _task(one: Distribution, folders: Sequence[str]) -> dict[str, Any]:
    entries = [(point.name, point.value) for point in one.entry_points if point.group == _GROUP]
    return {"dist": one.name, "version": one.version, "entries": entries, "folders": list(folders)}


def _start(
    folder: Path, own: dict[str, str], task: Mapping[str, Any], paths: Sequence[str]
) -> subprocess.Popen[bytes]:
    folder.mkdir()
    return subprocess.Popen(
        # -P: the working folder is not on the path. -B: reading leaves no compiled files behind, which would
        # look like something had been installed.
        [sys.executable, "-P", "-B", "-m", f"{__package__}.reading"],
        stdin=_frame_file(folder / "task", task),
        stdout=subprocess.PIPE,
        stderr=(folder / "errors").open("wb"),
        cwd=folder,
        env=environment(paths) | own | {"HOME": str(folder), "TMPDIR": str(folder)},
        start_new_session=True,
    )


def _frame_file(path: Path, task: Mapping[str, Any]) -> Any:
    # A file and not a pipe: the task may be longer than a pipe holds, and nobody waits for anybody.
    with path.open("wb") as file:
        write_frame(file, task)
    return path.open("rb")


def environment(paths: Sequence[str]) -> dict[str, str]:
    """Return the environment of a process that reads packages: the import path, and nothing of a person's."""
    own = str(Path(__file__).parents[2])
    kept = {key: os.environ[key] for key in _KEPT if key in os.environ}
    return kept | {"PYTHONPATH": os.pathsep.join([*paths, own]), "PYTHONUTF8": "1"}


def _collect(
    number: int,
    reader: subprocess.Popen[bytes],
    arrived: queue.SimpleQueue[tuple[int, dict[str, Any] | None]],
) -> None:
    assert reader.stdout is not None
    try:
        with reader.stdout as stream:
            while True:
                arrived.put((number, read_frame(stream)))
    except (EOFError, OSError, ValueError, RecursionError):
        arrived.put((number, None))


def _compare(
    todo: dict[str, Distribution],
    arrived: queue.SimpleQueue[tuple[int, dict[str, Any] | None]],
    scratch: str,
) -> Iterator[Described | Problem | None]:
    first: dict[str, dict[str, Any]] = {}
    open_readers = len(_READINGS)
    answers = 0
    while todo and open_readers:
        try:
            number, answer = arrived.get(timeout=TICK_S)
        except queue.Empty:
            yield None
            continue
        if answer is None:
            open_readers -= 1
            if not answers:
                raise _unable(Path(scratch, str(number), "errors"))
            continue
        answers += 1
        name = answer["dist"]
        if name not in todo:
            continue
        outcome = _judged(todo[name], first.get(name), answer)
        if outcome is None:
            first[name] = answer
        else:
            del todo[name]
            yield outcome
    for one in todo.values():
        yield _failed(
            one, {"phase": "describe", "entry_point": "", "reason": "the process that read it ended"}
        )


def _judged(
    one: Distribution, first: Mapping[str, Any] | None, answer: Mapping[str, Any]
) -> Described | Problem | None:
    """Return what a distribution's answers come to, None while the second is still to come."""
    try:
        if "failed" in answer:
            return _failed(one, answer["failed"])
        return None if first is None else _settled(one, first, answer)
    except Exception as error:
        # What comes from the process that imported it may be anything; it costs that distribution.
        reason = f"what was read of it makes no sense ({type(error).__name__}: {str(error)[:200]})"
        return _failed(one, {"phase": "describe", "entry_point": "", "reason": reason})


def _unable(errors: Path) -> DescribeFailed:
    """Say why a reading process could not even begin: that is no package's fault."""
    lines = errors.read_text("utf-8", "replace").strip().splitlines() or ["it said nothing"]
    return DescribeFailed(
        f"the process that reads packages ended before it read any: {lines[-1][:300]}",
        hint="is this Python's chalie complete? python -m pip check",
    )


def _settled(one: Distribution, first: Mapping[str, Any], second: Mapping[str, Any]) -> Described | Problem:
    if json.dumps(first["facts"]) != json.dumps(second["facts"]):
        reason = _difference(first["facts"], second["facts"])
        return _failed(one, {"phase": "describe", "entry_point": "", "reason": reason})
    abilities = tuple(descriptor_of(facts) for facts in first["facts"])
    return Described(one.name, abilities, max(first["seconds"], second["seconds"]))


def _difference(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> str:
    by_name = {facts["name"]: facts for facts in second}
    for facts in first:
        other = by_name.get(facts["name"])
        if other is None:
            return f"it has an ability {facts['name']} on one reading and not on the other"
        for key, value in facts.items():
            if json.dumps(value) != json.dumps(other[key]):
                return (
                    f"{key} of {facts['name']} differs between two readings: it depends on hash order, "
                    "time zone, working folder or chance"
                )
    return "its abilities differ between two readings"


def _failed(one: Distribution, failed: Mapping[str, Any]) -> Problem:
    entry_point = failed["entry_point"]
    if not entry_point:
        points = [f"{p.group}: {p.name} = {p.value}" for p in one.entry_points if p.group == _GROUP]
        entry_point = points[0] if len(points) == 1 else ""
    return Problem(
        dist=one.name,
        entry_point=entry_point,
        phase=failed["phase"],
        reason=f"{failed['reason']} ({', of '.join(filter(None, (failed.get('where'), str(one.path))))})",
        fix=_fix(one, failed),
    )


def _fix(one: Distribution, failed: Mapping[str, Any]) -> str:
    aside = f"or set it aside: chalie disable {one.name}"
    missing = failed.get("missing", "")
    own = {module.partition(".")[0] for module in one.modules()}
    if missing and missing.partition(".")[0] not in own:
        return f"install what it needs, probably: python -m pip install {missing.partition('.')[0]}; {aside}"
    where, hint = failed.get("where", ""), failed.get("hint", "")
    edit = f"edit {where}" + (f": {hint}" if hint else "")
    if one.editable:
        again = "install it again from where its code is now"
        return f"{edit}; {aside}" if where else f"mend it, or {again}; {aside}"
    if hint and where:
        newer = f"python -m pip install --upgrade {one.name}"
        return f"its author has to {edit}; a newer version may be there: {newer}; {aside}"
    return f"python -m pip install --upgrade --force-reinstall {one.name}; {aside}"
