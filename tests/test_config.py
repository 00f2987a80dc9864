"""The configuration: where the home is, what its files may say, and which environment this is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from chalie.config import (
    Config,
    PackageOptions,
    environment_key,
    home_path,
    import_paths,
    save_package_option,
)
from chalie.errors import ConfigError


def written(home: Path, text: str, name: str = "config.toml") -> Path:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / name).write_text(text)
    return home / name


# the home


def test_the_home_is_where_the_environment_says(home: Path) -> None:
    assert home_path() == home


def test_the_home_is_the_platforms_data_folder_where_the_environment_says_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CHALIE_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home_path().name == "chalie"
    assert home_path().is_relative_to(tmp_path)


def test_a_home_is_made_for_its_owner_alone(home: Path) -> None:
    config = Config.load()
    assert config.home == home
    assert home.stat().st_mode & 0o777 == 0o700


def test_an_empty_folder_that_becomes_a_home_is_closed_to_others(home: Path) -> None:
    home.mkdir()
    home.chmod(0o755)
    Config.load()
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_folder_in_other_use_keeps_its_mode(home: Path) -> None:
    written(home, "hello", "notes.txt")
    home.chmod(0o755)
    Config.load()
    assert home.stat().st_mode & 0o777 == 0o755


def test_a_home_that_anybody_may_write_is_refused(home: Path) -> None:
    written(home, "hello", "notes.txt")
    home.chmod(0o777)
    with pytest.raises(ConfigError, match="may be written by anybody") as caught:
        Config.load()
    assert caught.value.hint == f"chmod 700 {home}"


def test_a_home_that_cannot_be_made_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"the home .*/file/home cannot be used: Not a directory"):
        Config.load(tmp_path / "file" / "home")


# config.toml


def test_without_files_every_option_has_its_default(home: Path) -> None:
    config = Config.load()
    assert (config.limits.result_kib, config.limits.build_wait_s, config.limits.call_s) == (64, 2.0, None)
    assert (config.retention.trail_days, config.retention.results_days) == (90, 7)
    assert (config.gate.required, config.gate.deadline_ms, config.gate.ask_timeout_s) == ((), 1000, 300.0)
    assert (config.discovery.model, config.discovery.nearest, config.discovery.ceiling) == (None, 5, None)
    assert config.channels == {}
    assert config.package("anything") == PackageOptions()


def test_every_option_is_read(home: Path) -> None:
    written(
        home,
        """
        [channels.chat]
        pins = ["find_tools", "chalie-ability-memory:memory"]
        background = true
        [channels.nightly]
        policy = "subconscious"
        [gate]
        required = ["Chalie_Policy.Budget"]
        deadline_ms = 50
        ask_timeout_s = 0
        [discovery]
        model = "some-model"
        nearest = 7
        ceiling = 0.5
        [limits]
        result_kib = 1
        describe_s = 2
        build_wait_s = 0
        workers = 3
        call_s = 4.5
        [retention]
        trail_days = 1
        results_days = 2
        [packages."Some_Package"]
        isolate = true
        disabled = true
        time_limit_s = 9
        """,
    )
    config = Config.load()
    assert config.channels["chat"].pins == ("find_tools", "chalie-ability-memory:memory")
    assert config.channels["chat"].background is True
    assert config.channels["nightly"].policy == "subconscious"
    assert config.channels["nightly"].pins is None
    assert config.gate.required == ("chalie-policy-budget",)
    assert (config.gate.deadline_ms, config.gate.ask_timeout_s) == (50, 0.0)
    assert (config.discovery.model, config.discovery.nearest, config.discovery.ceiling) == (
        "some-model",
        7,
        0.5,
    )
    assert (config.limits.workers, config.limits.call_s, config.limits.build_wait_s) == (3, 4.5, 0.0)
    assert config.package("some-package") == config.package("Some.Package")
    assert config.package("some-package") == PackageOptions(isolate=True, disabled=True, time_limit_s=9.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[gate]\ndeadline = 5", "[gate] has no option 'deadline'; did you mean deadline_ms?"),
        ("[gat]\n", "there is no table [gat]; did you mean gate?"),
        ("[zebra]\n", "there is no table [zebra]; it may be catalogue, channels, discovery"),
        ("gate = 1", "gate must be a table, written as [gate]"),
        ("[gate]\ndeadline_ms = true", "[gate] deadline_ms must be a whole number from 1 to 60000, not True"),
        ("[gate]\ndeadline_ms = 0", "[gate] deadline_ms must be a whole number from 1 to 60000, not 0"),
        ("[gate]\nrequired = 'x'", "[gate] required must be a list of non-empty texts, not 'x'"),
        ("[gate]\nrequired = ['a b']", "[gate] required must be a list of distribution names"),
        ("[limits]\nworkers = 1.5", "[limits] workers must be a whole number from 1 to 1024, not 1.5"),
        ("[limits]\ncall_s = nan", "[limits] call_s must be a number of seconds above 0"),
        ("[limits]\nbuild_wait_s = -1", "[limits] build_wait_s must be a number of seconds from 0"),
        ("[discovery]\nceiling = 3", "[discovery] ceiling must be a cosine distance from 0 to 2, not 3"),
        ("[discovery]\nmodel = ' '", "[discovery] model must be a non-empty text, not ' '"),
        ("[channels]\nchat = 1", "channels.chat must be a table, written as [channels.chat]"),
        ("[channels.chat]\nbackground = 'yes'", "[channels.chat] background must be true or false"),
        ("[packages.a_b]\n[packages.a-b]\n", "[packages.a-b] names a-b a second time"),
        ("[packages.'a b']\n", "'a b' is not a distribution's name"),
        ("[gate\n", "is not valid TOML"),
    ],
)
def test_what_cannot_be_used_is_named_with_file_and_key(home: Path, text: str, message: str) -> None:
    path = written(home, text)
    with pytest.raises(ConfigError, match=re.escape(message)) as caught:
        Config.load()
    assert str(path) in caught.value.message or "distribution's name" in message


def test_a_file_that_is_not_utf_8_is_refused(home: Path) -> None:
    written(home, "")
    (home / "config.toml").write_bytes(b"[gate]\nrequired = ['\xff']")
    with pytest.raises(ConfigError, match=r"config\.toml is not UTF-8 text \(byte 20\)"):
        Config.load()


def test_a_byte_order_mark_is_no_reason_to_refuse_a_file(home: Path) -> None:
    written(home, "")
    (home / "config.toml").write_bytes(b"\xef\xbb\xbf[limits]\nworkers = 2\n")
    assert Config.load().limits.workers == 2


def test_the_environments_model_goes_before_the_files(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home, "[discovery]\nmodel = './models/mine'")
    assert Config.load().discovery.model == str(home / "models/mine")
    monkeypatch.setenv("CHALIE_MODEL", "other")
    assert Config.load().discovery.model == "other"


# the approver token


def test_the_approver_token_is_taken_out_of_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", "chalie_secret")
    config = Config.load()
    assert config.approver_token == "chalie_secret"
    assert "CHALIE_APPROVER_TOKEN" not in os.environ
    seen = subprocess.run(
        [sys.executable, "-c", "import os; print(os.environ.get('CHALIE_APPROVER_TOKEN'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert seen.stdout.strip() == "None"


def test_the_approver_token_reaches_a_second_reading_of_the_same_home_only(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", "chalie_secret")
    Config.load()
    assert Config.load().approver_token == "chalie_secret"
    assert Config.load(tmp_path / "other").approver_token is None


def test_the_approver_token_is_never_printed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", "chalie_secret")
    assert "chalie_secret" not in repr(Config.load())


# packages.toml


def test_a_commands_option_is_read_back_and_taken_back(home: Path) -> None:
    Config.load()
    save_package_option(home, "Some_Package", "disabled", True)
    save_package_option(home, "some-package", "time_limit_s", 2.5)
    save_package_option(home, "other", "isolate", False)
    assert Config.load().package("some-package") == PackageOptions(disabled=True, time_limit_s=2.5)
    assert Config.load().package("other") == PackageOptions(isolate=False)
    save_package_option(home, "some.package", "disabled", None)
    assert Config.load().package("some-package") == PackageOptions(time_limit_s=2.5)
    assert (home / "packages.toml").stat().st_mode & 0o777 == 0o600


def test_a_command_that_a_persons_file_would_overrule_is_refused(home: Path) -> None:
    written(home, "# mine\n[packages.x]\ndisabled = false\n")
    with pytest.raises(ConfigError, match="sets disabled of x to false, and that file wins"):
        save_package_option(home, "x", "disabled", True)
    save_package_option(home, "x", "isolate", True)
    assert Config.load().package("x") == PackageOptions(isolate=True, disabled=False)
    assert (home / "config.toml").read_text().startswith("# mine\n")


def test_an_option_or_value_that_does_not_exist_is_not_written(home: Path) -> None:
    Config.load()
    with pytest.raises(ConfigError, match="has no option 'disable'; did you mean disabled"):
        save_package_option(home, "x", "disable", True)
    with pytest.raises(ConfigError, match="there is no package option 'disable'"):
        save_package_option(home, "x", "disable", None)
    with pytest.raises(ConfigError, match="must be true or false"):
        save_package_option(home, "x", "disabled", 3)
    assert not (home / "packages.toml").exists()


def test_options_set_by_several_processes_at_once_all_stay(home: Path) -> None:
    Config.load()
    code = (
        "import sys; from pathlib import Path; from chalie.config import save_package_option\n"
        "for n in range(10): save_package_option(Path(sys.argv[1]), f'p{sys.argv[2]}-{n}', 'disabled', True)"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(home), str(n)]) for n in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert len(Config.load().packages) == 40


# the environment

_KEY = "from chalie.config import environment_key; print(environment_key())"


def key_of(*command: str, cwd: Path, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def test_one_environment_has_one_key_however_and_wherever_it_is_started(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    (here / "asks.py").write_text(_KEY)
    keys = {
        key_of("-c", _KEY, cwd=here),
        key_of("-c", _KEY, cwd=there),
        key_of("-m", "asks", cwd=here),
        key_of("asks.py", cwd=here),
        key_of(str(here / "asks.py"), cwd=there),
        key_of("-P", "-c", _KEY, cwd=here),
    }
    assert len(keys) == 1
    assert re.fullmatch("[0-9a-f]{16}", keys.pop())


def test_a_folder_added_to_the_path_changes_the_key_also_where_one_stands_in_it(tmp_path: Path) -> None:
    plain = key_of("-c", _KEY, cwd=tmp_path)
    added = key_of("-c", _KEY, cwd=Path("/"), PYTHONPATH=str(tmp_path))
    assert added != plain
    assert key_of("-c", _KEY, cwd=tmp_path, PYTHONPATH=str(tmp_path)) == added


def test_only_existing_entries_count_once_and_as_real_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    monkeypatch.setattr(sys, "path", ["", ".", str(link), str(real), str(tmp_path / "gone")])
    assert import_paths() == (str(real),)


def test_the_key_depends_on_the_order_of_the_path() -> None:
    assert environment_key(("/a", "/b")) != environment_key(("/b", "/a"))
    assert environment_key(("/a", "/b")) == environment_key(["/a", "/b"])
