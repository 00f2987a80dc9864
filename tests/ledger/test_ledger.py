"""Opening a ledger: made once, migrated whole or not at all, and refused where it cannot be trusted."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from chalie.config import Retention
from chalie.errors import LedgerUnavailable
from chalie.ledger import Ledger
from chalie.ledger.migrations import MIGRATIONS

from .conftest import Clock, Start

DAY = 86_400.0
FILLED = 51  # rows on the trail of `filled`: its calls, and the permission that was set


def filled(path: Path, rows: int = 50) -> None:
    with Ledger.open(path) as ledger:
        ledger.permissions.set("chat", "mail", "email", "allow", by="terminal:ada")
        for number in range(rows):
            ledger.trail.append("call.started", call_id=f"c{number}", arguments={"text": "x" * 200})


# making it


def test_a_ledger_is_made_for_its_owner_alone_and_says_that_it_was_made(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.trail.append("call.started")
        assert ledger.created
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.glob("ledger.sqlite*")}
        assert {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"} <= set(modes)
        assert set(modes.values()) == {0o600}
    with Ledger.open(path) as ledger:
        assert not ledger.created


def test_processes_that_open_a_new_home_at_once_make_one_ledger(path: Path, start: Start) -> None:
    code = """
        print(Ledger.open(Path(sys.argv[1])).created)
    """
    running = [start(code, path) for _ in range(6)]
    made = [process.communicate(timeout=60)[0].strip() for process in running]
    assert sorted(made) == ["False"] * 5 + ["True"]


def test_a_trail_row_survives_the_process_and_a_row_a_person_set_survives_power(ledger: Ledger) -> None:
    assert ledger._fast.value("PRAGMA synchronous") == 1
    assert ledger._durably().value("PRAGMA synchronous") == 2
    assert ledger._fast.value("PRAGMA journal_mode") == "wal"


def test_an_empty_file_of_a_start_that_was_killed_becomes_a_ledger(path: Path) -> None:
    path.touch()
    with Ledger.open(path) as ledger:
        assert ledger.created
        ledger.trail.append("call.started")


def test_a_closed_ledger_refuses_and_can_be_closed_again(path: Path) -> None:
    ledger = Ledger.open(path)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="closed"):
        ledger.trail.append("call.started")


def test_a_forked_child_is_refused_its_parents_ledger_and_does_it_no_harm(path: Path, start: Start) -> None:
    code = """
        from chalie.errors import LedgerUnavailable
        ledger = Ledger.open(Path(sys.argv[1]))
        ledger.trail.append("call.started", call_id="parent")
        child = os.fork()
        if not child:
            try:
                ledger.trail.append("call.started", call_id="child")
            except LedgerUnavailable as error:
                assert "before this process was forked" in str(error)
                ledger.close()
                with Ledger.open(Path(sys.argv[1])) as own:
                    own.trail.append("call.started", call_id="child's own")
                sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        ledger.trail.append("call.started", call_id="parent again")
        print([row.call_id for row in ledger.trail.query()])
    """
    out, err = start(code, path).communicate(timeout=60)
    assert out.strip() == "['parent again', \"child's own\", 'parent']", err


# migrating

NEXT = (*MIGRATIONS, ("ALTER TABLE trail ADD COLUMN extra TEXT", "CREATE TABLE more (n INTEGER)"))


def test_an_older_ledger_is_migrated_and_keeps_its_rows(path: Path) -> None:
    filled(path)
    with Ledger.open(path, migrations=NEXT) as ledger:
        assert not ledger.created
        assert len(ledger.trail.query()) == FILLED
        assert ledger.permissions.get("chat", "mail", "email") is not None
        assert ledger._fast.value("SELECT count(*) FROM more") == 0
        assert ledger._fast.value("PRAGMA user_version") == len(NEXT)


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(path: Path) -> None:
    filled(path)
    broken = (*MIGRATIONS, ("CREATE TABLE more (n INTEGER)", "this is not SQL"))
    with pytest.raises(LedgerUnavailable, match="syntax error"):
        Ledger.open(path, migrations=broken)
    with Ledger.open(path) as ledger:
        assert len(ledger.trail.query()) == FILLED
        assert ledger._fast.read("SELECT 1 FROM sqlite_master WHERE name = 'more'") == []


def test_a_migration_killed_in_the_middle_is_done_again_by_the_next_start(path: Path, start: Start) -> None:
    filled(path)
    code = """
        import signal, chalie.ledger.ledger as module
        from chalie.ledger.migrations import MIGRATIONS, migrate
        def dying(connection, steps):
            found = migrate(connection, steps)
            os.kill(os.getpid(), signal.SIGKILL)
            return found
        module.migrate = dying
        Ledger.open(Path(sys.argv[1]), migrations=(*MIGRATIONS, ("CREATE TABLE more (n INTEGER)",)))
    """
    assert start(code, path).wait(60) == -signal.SIGKILL
    with Ledger.open(path) as ledger:  # the old version still opens it, so nothing of the new one is there
        assert len(ledger.trail.query()) == FILLED
    with Ledger.open(path, migrations=NEXT) as ledger:
        assert ledger._fast.value("SELECT count(*) FROM more") == 0


def test_processes_that_migrate_at_once_migrate_once(path: Path, start: Start) -> None:
    filled(path)
    code = """
        from chalie.ledger.migrations import MIGRATIONS
        step = ("CREATE TABLE more (n INTEGER)", "INSERT INTO more VALUES (1)")
        with Ledger.open(Path(sys.argv[1]), migrations=(*MIGRATIONS, step)) as ledger:
            print(ledger._fast.value("SELECT count(*) FROM more"), len(ledger.trail.query()))
    """
    running = [start(code, path) for _ in range(4)]
    assert {process.communicate(timeout=60)[0].strip() for process in running} == {f"1 {FILLED}"}


# refusing


def test_a_ledger_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    Ledger.open(path, migrations=NEXT).close()
    before = path.read_bytes()
    with pytest.raises(
        LedgerUnavailable, match=f"newer chalie: its format is {len(NEXT)}, this one reads"
    ) as caught:
        Ledger.open(path)
    assert caught.value.hint == "pip install --upgrade chalie"
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE notes (text)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerUnavailable, match="of some other program, not a ledger"):
        Ledger.open(path)
    assert path.read_bytes() == before


def noise(path: Path) -> None:
    path.write_bytes(b"this is no database at all, only some text. " * 200)


def flipped_header(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0:16] = bytes(byte ^ 0xFF for byte in data[0:16])
    path.write_bytes(data)


def half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def broken_schema(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:4096] = b"\xa5" * (4096 - 100)
    path.write_bytes(data)


@pytest.mark.parametrize("damage", [noise, flipped_header, half, broken_schema])
def test_a_damaged_ledger_is_refused_and_never_written_to(path: Path, damage: object) -> None:
    filled(path, 500)
    assert callable(damage)
    damage(path)
    before = path.read_bytes()
    with pytest.raises(LedgerUnavailable, match="is damaged") as caught, Ledger.open(path) as ledger:
        ledger.permissions.list()
        ledger.trail.query(limit=1000)
    assert str(path) in caught.value.message
    assert "restore it from a backup" in (caught.value.hint or "")
    assert path.read_bytes() == before


def test_damage_to_the_rows_themselves_is_an_error_and_never_no_row(path: Path) -> None:
    filled(path)
    with contextlib.closing(sqlite3.connect(path)) as other:
        (page,) = other.execute("SELECT rootpage FROM sqlite_master WHERE name = 'permissions'").fetchone()
        (size,) = other.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\xa5" * size
    path.write_bytes(data)
    with Ledger.open(path) as ledger, pytest.raises(LedgerUnavailable, match="is damaged"):
        ledger.permissions.get("chat", "mail", "email")


def test_a_ledger_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="No such file or directory"):
        Ledger.open(tmp_path / "gone" / "ledger.sqlite")


@pytest.mark.parametrize("closed", ["the folder of a ledger", "an empty folder", "the file"])
def test_a_ledger_that_cannot_be_written_is_refused_when_it_is_opened(closed: str, start: Start) -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to the account this runs as
    try:
        path = folder / "ledger.sqlite"
        if closed != "an empty folder":
            filled(path)
            for file in folder.iterdir():
                file.chmod(0o444)
        folder.chmod(0o777 if closed == "the file" else 0o555)
        code = """
            import filelock
            from chalie.errors import LedgerUnavailable
            # what a standard library imports late may lie where the other account cannot read
            Path("/").as_uri()
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            try:
                Ledger.open(Path(sys.argv[1]))
            except LedgerUnavailable as error:
                print(error.message, "|", error.hint)
        """
        out, err = start(code, path).communicate(timeout=60)
        assert f"the ledger {path} cannot be " in out, err
        assert f"make {folder} " in out
        assert "writable for this account" in out
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for 2 MiB: a file system of its own where that may be mounted, else a quota."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)], capture_output=True, check=False
    ).returncode
    yield folder
    if mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("limit", ["disk", "file size"])
def test_a_full_disk_refuses_keeps_what_was_recorded_and_goes_on_when_there_is_room(
    small_disk: Path, limit: str, start: Start
) -> None:
    code = """
        import resource
        from chalie.errors import LedgerUnavailable
        path = Path(sys.argv[1])
        ledger = Ledger.open(path)
        if sys.argv[2] == "file size" or not os.path.ismount(path.parent):
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        recorded = 0
        try:
            while recorded < 100_000:
                ledger.trail.append("call.started", detail="x" * 1000)
                recorded += 1
        except LedgerUnavailable as error:
            print(error.message, "|", error.hint)
        try:
            ledger.permissions.set("chat", "mail", "email", "allow", by="x")
        except LedgerUnavailable as error:
            print("row refused")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        (path.parent / "ballast").unlink()
        ledger.trail.append("call.finished")
        print(recorded, len(ledger.trail.query(event="call.started", limit=200_000)))
    """
    (small_disk / "ballast").write_bytes(b"x" * 300_000)
    out, err = start(code, small_disk / "ledger.sqlite", limit).communicate(timeout=60)
    refused, row, counts = out.splitlines()
    assert "the disk is full" in refused or "cannot be read or written" in refused, err
    assert str(small_disk) in refused
    assert row == "row refused"
    recorded, kept = counts.split()
    assert recorded == kept
    assert int(kept) > 100


# retention


def test_retention_deletes_by_age_and_says_how_much_on_the_trail(path: Path, clock: Clock) -> None:
    with Ledger.open(path, clock=clock, retention=Retention(trail_days=10, results_days=2)) as ledger:
        ledger.trail.append("call.started", call_id="old")
        result = ledger.results.put("ada", "body")
        ledger.inbox.deliver("ada", "talk", "old", "waiting")
        ledger.inbox.deliver("ada", "other", "old", "read")
        ledger.inbox.take("ada", "other")
        ledger.jobs.open("old", dist="d", name="n")
        ledger.jobs.finish("old")
        clock.now += 2 * DAY + 1
        assert ledger.apply_retention() == {"inbox": 1, "results": 1}
        assert ledger.results.get("ada", result) is None
        assert ledger.inbox.peek("ada", "talk")
        clock.now += 8 * DAY
        ledger.trail.append("call.started", call_id="new")
        assert ledger.apply_retention() == {"trail": 1, "jobs": 1, "inbox": 1}
        applied, new, before = ledger.trail.query()
        assert (new.call_id, applied.event, before.event) == ("new", "retention.applied", "retention.applied")
        assert applied.detail == '{"trail":1,"jobs":1,"inbox":1}'
        assert ledger.apply_retention() == {}
        assert len(ledger.trail.query()) == 3


def test_a_long_trail_is_cleared_in_pieces_to_the_last_old_row(path: Path, clock: Clock) -> None:
    with Ledger.open(path, clock=clock) as ledger:
        with ledger._fast.transaction() as connection:
            connection.executemany(
                "INSERT INTO trail (at, event) VALUES (?, 'call.started')", [(clock.now,)] * 12_000
            )
        clock.now += 91 * DAY
        assert ledger.apply_retention()["trail"] == 12_000
        (row,) = ledger.trail.query()
        assert row.id > 12_000 or row.event == "retention.applied"


def test_the_folder_of_a_ledger_holds_nothing_that_others_may_read(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.jobs.open("c1", dist="d", name="n")
        for root, folders, files in os.walk(path.parent):
            for name in (*folders, *files):
                assert (Path(root) / name).stat().st_mode & 0o077 == 0, name
