"""The only reader of the environment and of the home's configuration files.

`config.toml` is written by a person and never by the host; `packages.toml` beside it is written by
commands (`chalie disable NAME`) and holds package options only. Where both set the same option the
person's file wins, and the command that would be without effect is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from attrs import field, frozen

from .errors import ConfigError

__all__ = [
    "SETTINGS",
    "ChannelOptions",
    "Config",
    "DiscoveryOptions",
    "GateOptions",
    "Limits",
    "PackageOptions",
    "Retention",
    "environment_key",
    "home_path",
    "import_paths",
    "model_of_environment",
    "normal_dist",
    "save_package_option",
]

#: the files of a home that hold options: a person's, and what commands wrote.
SETTINGS: Final = ("config.toml", "packages.toml")
#: where the interpreter was started, as far as can be told: a later chdir must not change the key.
_STARTED_IN: Final = os.path.realpath(Path.cwd()) if Path().exists() else ""

#: home -> the approver token this process was started with. Read once and taken out of the environment,
#: it must still reach a second `Config.load` of the same home.
_TOKENS: Final[dict[Path, str]] = {}

_DIST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


@frozen
class ChannelOptions:
    """`[channels.X]`.

    Attributes:
        policy: the policy channel a channel of one's own follows; None for the host's own channels.
        pins: the pinned tools; None keeps the channel's default.
        background: whether calls may run in the background; None keeps the default.
    """

    policy: str | None = None
    pins: tuple[str, ...] | None = None
    background: bool | None = None


@frozen
class GateOptions:
    """`[gate]`: required policies' distributions, milliseconds for all policies of a call, seconds that a
    caller waits for a person's answer, and days that a call can be answered in.
    """

    required: tuple[str, ...] = ()
    deadline_ms: int = 1000
    ask_timeout_s: float = 300.0
    hold_days: float = 7.0


@frozen
class DiscoveryOptions:
    """`[discovery]`: model package or folder, how many nearest, and the distance nothing may exceed."""

    model: str | None = None
    nearest: int = 5
    ceiling: float | None = None


@frozen
class Limits:
    """`[limits]`: KiB of a result shown, seconds to describe, to wait for a build and for a call; workers.

    Of an MCP server: seconds to reach it, and for a call of its tools where nothing else is said.
    """

    result_kib: int = 64
    describe_s: float = 20.0
    build_wait_s: float = 2.0
    workers: int = 8
    call_s: float | None = None
    server_connect_s: float = 60.0
    server_call_s: float = 60.0


@frozen
class Retention:
    """`[retention]`: days that trail rows and kept results live."""

    trail_days: int = 90
    results_days: int = 7


@frozen
class PackageOptions:
    """`[packages.X]`: run isolated (None: as the ability says), not loaded at all, seconds for a call."""

    isolate: bool | None = None
    disabled: bool = False
    time_limit_s: float | None = None


class _Unexpected(Exception):
    """Raised by a check with the words for what was expected."""


_Check = Callable[[Any], Any]
_Checks = Mapping[str, _Check]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Unexpected("a non-empty text")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise _Unexpected("a list of non-empty texts")
    return tuple(value)


def _dists(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    if not all(_DIST.fullmatch(name) for name in names):
        raise _Unexpected("a list of distribution names")
    return tuple(normal_dist(name) for name in names)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Unexpected("true or false")
    return value


def _number(words: str, least: float, most: float, *, whole: bool = False, above: bool = False) -> _Check:
    def check(value: Any) -> Any:
        fits = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
        if not fits or not least <= value <= most or (above and value == least):
            raise _Unexpected(f"{words} {'above' if above else 'from'} {least:g} to {most:.12g}")
        return value if whole else float(value)

    return check


_SECONDS: Final = _number("a number of seconds", 0, 86_400, above=True)
_DAYS: Final = _number("a whole number of days", 1, 36_500, whole=True)
_CHANNEL: Final[_Checks] = {"policy": _text, "pins": _texts, "background": _flag}
_PACKAGE: Final[_Checks] = {"isolate": _flag, "disabled": _flag, "time_limit_s": _SECONDS}
_GATE: Final[_Checks] = {
    "required": _dists,
    "deadline_ms": _number("a whole number", 1, 60_000, whole=True),
    "ask_timeout_s": _number("a number of seconds", 0, 30 * 86_400),
    "hold_days": _number("a number of days", 0, 365, above=True),
}
_DISCOVERY: Final[_Checks] = {
    "model": _text,
    "nearest": _number("a whole number", 1, 1000, whole=True),
    "ceiling": _number("a cosine distance", 0, 2),
}
_LIMITS: Final[_Checks] = {
    "result_kib": _number("a whole number", 1, 1_048_576, whole=True),
    "describe_s": _SECONDS,
    "build_wait_s": _number("a number of seconds", 0, 86_400),
    "workers": _number("a whole number", 1, 1024, whole=True),
    "call_s": _SECONDS,
    "server_connect_s": _SECONDS,
    "server_call_s": _SECONDS,
}
_RETENTION: Final[_Checks] = {"trail_days": _DAYS, "results_days": _DAYS}
_CATALOGUE: Final[_Checks] = {"file": _text}
_TABLES: Final = ("catalogue", "channels", "discovery", "gate", "limits", "packages", "retention")


@frozen
class Config:
    """What a person configured, read once.

    Attributes:
        home: the folder everything is kept in.
        channels: name -> options, only those that `config.toml` mentions.
        packages: normalised distribution name -> options, only those that a file mentions.
        catalogue: the file of the catalogue that the host's is expected to be, or None.
        approver_token: the token this process was started with, or None; never shown by `repr`.
    """

    home: Path
    channels: Mapping[str, ChannelOptions] = MappingProxyType({})
    gate: GateOptions = GateOptions()
    discovery: DiscoveryOptions = DiscoveryOptions()
    limits: Limits = Limits()
    retention: Retention = Retention()
    packages: Mapping[str, PackageOptions] = MappingProxyType({})
    catalogue: Path | None = None
    approver_token: str | None = field(default=None, repr=False)

    @classmethod
    def load(cls, home: Path | None = None) -> Config:
        """Read the home's files, creating the home (mode 0700) where it does not exist.

        Args:
            home: the home's folder; `home_path()` when left out.

        Raises:
            ConfigError: naming the file, the key and what is expected there.
        """
        home = home_path() if home is None else Path(os.path.abspath(home.expanduser()))  # noqa: PTH100
        _make_home(home)
        written = home / "config.toml"
        tables = _read(written, _TABLES)
        packages = _commanded(home)
        for name, options in _named(tables, "packages", written).items():
            packages[name] = {**packages.get(name, {}), **options}
        channels = _named(tables, "channels", written)
        discovery = _options(tables.get("discovery", {}), _DISCOVERY, written, "discovery")
        discovery["model"] = _model(home, discovery.get("model"))
        catalogue = _options(tables.get("catalogue", {}), _CATALOGUE, written, "catalogue").get("file")
        return cls(
            home=home,
            channels=MappingProxyType({name: ChannelOptions(**given) for name, given in channels.items()}),
            gate=GateOptions(**_options(tables.get("gate", {}), _GATE, written, "gate")),
            discovery=DiscoveryOptions(**discovery),
            limits=Limits(**_options(tables.get("limits", {}), _LIMITS, written, "limits")),
            retention=Retention(**_options(tables.get("retention", {}), _RETENTION, written, "retention")),
            packages=MappingProxyType({name: PackageOptions(**given) for name, given in packages.items()}),
            catalogue=home / Path(catalogue).expanduser() if catalogue else None,
            approver_token=_take_token(home),
        )

    def package(self, dist: str) -> PackageOptions:
        """Return the options of a distribution, the defaults where nothing is set."""
        return self.packages.get(dist) or self.packages.get(normal_dist(dist)) or PackageOptions()

    @property
    def ledger_path(self) -> Path:
        """The ledger's file."""
        return self.home / "ledger.sqlite"

    @property
    def generations_path(self) -> Path:
        """The folder of this Python environment's generations."""
        return self.home / "generations" / environment_key()


def home_path() -> Path:
    """Return the home's folder: `CHALIE_HOME`, else the platform's user data folder + `chalie`."""
    given = os.environ.get("CHALIE_HOME", "").strip()
    if given:
        return Path(os.path.abspath(Path(given).expanduser()))  # noqa: PTH100  (links are kept as given)
    import platformdirs

    return Path(platformdirs.user_data_dir("chalie", appauthor=False))


def import_paths() -> tuple[str, ...]:
    """Return the `sys.path` entries that count, in order, as real paths.

    An entry counts when it exists and the interpreter did not add it only because of how it was started:
    the working folder (`-c`, `-m`, a prompt) or the script's folder. So a program, a prompt and a console
    script of one environment see the same packages wherever they are started.
    """
    own = _start_folder()
    found: dict[str, None] = {}
    for entry in sys.path:
        if not isinstance(entry, str):
            continue
        # the interpreter adds its own entry once; the same folder named again was meant
        if entry in ("", "."):
            own = None if own == _STARTED_IN else own
            continue
        real = os.path.realpath(entry)
        if real == own:
            own = None
        elif Path(real).exists():
            found[real] = None
    return tuple(found)


def environment_key(paths: Sequence[str] | None = None) -> str:
    """Return the 16 hex digits that name a Python environment.

    Args:
        paths: the import paths it consists of; `import_paths()` when left out.
    """
    tag = sys.implementation.cache_tag or sys.version
    text = "\0".join((tag, *(import_paths() if paths is None else paths)))
    return hashlib.sha256(os.fsencode(text)).hexdigest()[:16]


def save_package_option(home: Path, dist: str, key: str, value: bool | float | None) -> None:
    """Set one option of a package in `packages.toml`, in one atomic step; None removes it.

    Args:
        home: the home's folder.
        dist: the distribution's name, in any spelling.
        key: an option of `[packages.X]`.
        value: what `config.toml` would accept there.

    Raises:
        ConfigError: for an unknown option or value, a file that cannot be written, and where `config.toml`
            sets the same option and would win.
    """
    from filelock import FileLock, Timeout

    path, written = home / "packages.toml", home / "config.toml"
    name = _dist_key(dist)
    _options({key: value} if value is not None else {}, _PACKAGE, path, f"packages.{name}")
    if key not in _PACKAGE:
        raise ConfigError(f"there is no package option {key!r}; the options are {', '.join(_PACKAGE)}")
    by_hand = _named(_read(written, _TABLES), "packages", written).get(name, {})
    if key in by_hand:
        raise ConfigError(
            f"{written} sets {key} of {name} to {_literal(by_hand[key])}, and that file wins",
            hint=f"edit [packages.{name}] in {written}",
        )
    try:
        with FileLock(home / "packages.toml.lock", timeout=10):
            packages = _commanded(home)
            options = {**packages.get(name, {}), key: value}
            packages[name] = {option: given for option, given in options.items() if given is not None}
            _write(path, packages)
    except Timeout as error:
        raise ConfigError(f"{path} is being written by another process; try again") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def _start_folder() -> str | None:
    """Return the real path of the entry the interpreter put on `sys.path` because of how it was started."""
    if sys.flags.safe_path:
        return None
    main = sys.modules.get("__main__")
    script, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if script and (spec is None or spec.name == "__main__"):
        return os.path.realpath(Path(os.path.realpath(script)).parent)
    return _STARTED_IN or None


def _make_home(home: Path) -> None:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = home.stat()
        mine = hasattr(os, "geteuid") and found.st_uid == os.geteuid()
        ours = (home / "ledger.sqlite").exists() or not any(home.iterdir())
        if mine and ours and found.st_mode & 0o077:
            home.chmod(0o700)  # nobody else has business here
        elif found.st_mode & 0o002 and not found.st_mode & 0o1000:
            raise ConfigError(
                f"the home {home} may be written by anybody, so its settings could be anybody's",
                hint=f"chmod 700 {home}",
            )
    except OSError as error:
        raise ConfigError(
            f"the home {home} cannot be used: {error.strerror or error}",
            hint="set CHALIE_HOME to a folder that you own",
        ) from error


def _read(path: Path, tables: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the file's tables; an absent file has none."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    import tomllib

    try:
        # utf-8-sig: an editor's byte order mark is no reason to refuse the file
        found = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    for name, table in found.items():
        if name not in tables:
            raise ConfigError(f"{path}: there is no table [{name}]{_nearest(name, tables)}")
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name} must be a table, written as [{name}]")
    return found


def _options(given: Mapping[str, Any], checks: _Checks, path: Path, where: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for key, value in given.items():
        check = checks.get(key)
        if check is None:
            raise ConfigError(f"{path}: [{where}] has no option {key!r}{_nearest(key, checks)}")
        try:
            options[key] = check(value)
        except _Unexpected as expected:
            raise ConfigError(f"{path}: [{where}] {key} must be {expected}, not {value!r}") from None
    return options


def _named(tables: Mapping[str, dict[str, Any]], table: str, path: Path) -> dict[str, dict[str, Any]]:
    """Return the checked options of every `[table.NAME]`, by the name's normal form."""
    checks = _PACKAGE if table == "packages" else _CHANNEL
    found: dict[str, dict[str, Any]] = {}
    for name, given in tables.get(table, {}).items():
        if not isinstance(given, dict):
            raise ConfigError(f"{path}: {table}.{name} must be a table, written as [{table}.{name}]")
        key = _dist_key(name) if table == "packages" else name
        if key in found:
            raise ConfigError(f"{path}: [{table}.{name}] names {key} a second time")
        found[key] = _options(given, checks, path, f"{table}.{name}")
    return found


def _commanded(home: Path) -> dict[str, dict[str, Any]]:
    """Return the package options that commands wrote."""
    path = home / "packages.toml"
    return _named(_read(path, ("packages",)), "packages", path)


def _nearest(word: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else f"; it may be {', '.join(sorted(known))}"


def _dist_key(name: str) -> str:
    if not _DIST.fullmatch(name):
        raise ConfigError(f"{name!r} is not a distribution's name")
    return normal_dist(name)


def normal_dist(name: str) -> str:
    """Return the normalised form of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _model(home: Path, configured: str | None) -> str | None:
    """Return the model option; a relative path in the file is taken from the home."""
    return model_of_environment() or (_model_from(home, configured) if configured else None)


def model_of_environment() -> str | None:
    """Return what CHALIE_MODEL says, a folder by its whole path, since a child may run somewhere else."""
    given = os.environ.get("CHALIE_MODEL", "").strip()
    return _model_from(Path(_STARTED_IN), given) if given else None


def _model_from(base: Path, option: str) -> str:
    folder = base / Path(option).expanduser()
    # the name of an installed model is no path
    return str(folder) if os.sep in option or (folder / "config.json").is_file() else option


def _take_token(home: Path) -> str | None:
    if token := os.environ.pop("CHALIE_APPROVER_TOKEN", "").strip():
        _TOKENS[home] = token
    return _TOKENS.get(home)


def _literal(value: bool | float) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _write(path: Path, packages: Mapping[str, Mapping[str, Any]]) -> None:
    """Replace the file in one step, so that a reader sees the old text or the new one."""
    lines = ["# Written by chalie's commands. Options of your own belong into config.toml."]
    for name, options in sorted(packages.items()):
        if options:
            lines += ["", f"[packages.{name}]"]
            lines += [f"{key} = {_literal(value)}" for key, value in sorted(options.items())]
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, ""]))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
