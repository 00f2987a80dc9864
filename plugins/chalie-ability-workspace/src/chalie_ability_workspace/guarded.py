"""Places that no standing permission covers: what other programs run, and what others must not know."""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from typing import Final

from chalie.config import home_path

__all__ = ["chalie_home", "folded", "mentions_protected", "moved", "protected", "secret"]

#: names whose content is run by a shell, git, an editor or the system without anybody asking for it again.
_PROTECTED: Final = frozenset(
    {
        # version control: hooks and configuration name programs that are run
        ".git", ".hg", ".svn", ".jj", ".bzr", ".gitconfig", ".hgrc", ".gitmodules", ".husky", ".githooks",
        # shells
        ".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".shrc",
        ".bash_history", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".zsh_history", ".ashrc",
        ".oh-my-zsh", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".envrc",
        ".direnv",
        # sessions and keys
        ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", ".ssh", ".gnupg", ".crontab",
        "launchagents", "launchdaemons",
        # tools that run what they find in the folder they are started in
        ".vscode", ".idea", ".mcp.json", ".claude", ".cursor", ".pythonstartup", ".pdbrc", ".gdbinit",
        ".vimrc", ".exrc", ".curlrc", ".wgetrc", ".pre-commit-config.yaml", "sitecustomize.py",
        "usercustomize.py",
    }
)  # fmt: skip
#: the same below `.config`.
_PROTECTED_CONFIG: Final = frozenset(
    {"autostart", "bash", "environment.d", "fish", "git", "nushell", "systemd", "zsh"}
)
#: folders of the system: what lies there is run or obeyed by others.
_SYSTEM: Final = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr",
    "/Library", "/System", "/private/etc",
)  # fmt: skip

#: names of files and folders that hold secrets by convention.
_SECRET: Final = frozenset(
    {
        ".netrc", "_netrc", ".git-credentials", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc.yml", ".pypirc",
        ".htpasswd", ".vault_pass", ".vault-token", ".s3cfg", ".boto", ".dockercfg", ".terraformrc",
        ".aws", ".azure", ".gnupg", ".kube", ".ssh", ".password-store", ".docker", ".gcloud", ".mozilla",
        "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk",
        "credentials", "credentials.json", "client_secret.json", "service-account.json", "secrets",
        "token.json", "auth.json", "shadow", "gshadow", "master.key", "terraform.tfstate", "keyrings",
        ".bash_history", ".zsh_history", ".sh_history", ".python_history", ".psql_history", ".mysql_history",
        ".node_repl_history", ".lesshst", ".claude.json",
    }
)  # fmt: skip
_SECRET_CONFIG: Final = frozenset({"gh", "gcloud", "rclone", "op", "hub"})
_SECRET_NAME: Final = re.compile(
    r"\.env(?:rc)?|\.env\..+|.+\.env|env\.local|secrets?\.(?:json|ya?ml|toml|ini|txt|cfg|conf|properties|enc|xml|csv)"
    r"|.+\.(?:pem|key|p12|pfx|pkcs12|p8|ppk|asc|gpg|kdbx?|keystore|jks|tfvars|tfstate|ovpn|age)"
    r"|.+\.tfstate\.backup|.*history\.sqlite|.*private[_-]?key.*|htpasswd"
)
#: files that only look like secrets: templates that are committed on purpose.
_TEMPLATE: Final = re.compile(r".+\.(?:example|sample|template|dist|defaults?)|.+\.pub")
_GIT_SECRET: Final = frozenset({"config", "credentials", "config.worktree"})

_NAMES = "|".join(sorted(map(re.escape, _PROTECTED), key=len, reverse=True))
#: a protected name standing as a whole part of a path, anywhere in a text.
_MENTION: Final = re.compile(rf"(?<![\w.-])(?:{_NAMES})(?![\w.-])", re.IGNORECASE)


def folded(name: str) -> str:
    """Return a name as the most forgiving file system compares it: without case and invisible characters.

    Some file systems take `.GIT`, `.git` with a zero-width character, and full-width spellings for `.git`.
    """
    if name.isascii():
        return name.lower()
    plain = unicodedata.normalize("NFKC", name)
    return "".join(char for char in plain if unicodedata.category(char) != "Cf").casefold()


def protected(path: str) -> str | None:
    """Return why writing to a resolved path is always asked about, or None.

    Args:
        path: absolute, without links.
    """
    home = chalie_home()
    if _below(path, home):
        return f"{path} belongs to Chalie's own home"
    for folder in _SYSTEM:
        if _below(path, folder):
            return f"{path} belongs to the system"
    parts = [folded(part) for part in path.split("/")]
    for before, part in zip(["", *parts], parts, strict=False):
        if part in _PROTECTED or (before == ".config" and part in _PROTECTED_CONFIG):
            return f"{path} is run or obeyed by a shell, by git or by another program ({part})"
    return None


def secret(path: str) -> str | None:
    """Return why the content of a resolved path is read only when a person says so, or None.

    Args:
        path: absolute, without links.
    """
    if _below(path, chalie_home()):
        return f"{path} belongs to Chalie's own home"
    for folder in ("/proc", "/sys", "/dev"):
        if _below(path, folder):
            return f"{path} belongs to the system"
    parts = [folded(part) for part in path.split("/")]
    for before, part in zip(["", *parts], parts, strict=False):
        if part in _SECRET or (before == ".config" and part in _SECRET_CONFIG):
            return f"{path} holds secrets by its name ({part})"
        if before == ".git" and part in _GIT_SECRET:
            return f"{path} may hold credentials of a remote"
    last = parts[-1]
    if _SECRET_NAME.fullmatch(last) and not _TEMPLATE.fullmatch(last):
        return f"{path} holds secrets by its name"
    return None


def moved(path: str) -> str | None:
    """Return why a path is always asked about where it is moved, or moved over, or None.

    What is protected or secret by its place is not so elsewhere, and what a folder brings along becomes so.

    Args:
        path: absolute, without links.
    """
    if _below(chalie_home(), path):
        return f"{path} holds Chalie's own home"
    if folded(path.rpartition("/")[2]) == ".config":
        return f"{path} holds what other programs obey"
    return protected(path)


def mentions_protected(text: str) -> bool:
    """Tell whether a command speaks of a protected place, in whatever words of it."""
    return _MENTION.search(text) is not None or chalie_home() in text


def chalie_home() -> str:
    """Return the real path of Chalie's home, whether or not it is there."""
    return _home(os.environ.get("CHALIE_HOME", ""), os.environ.get("HOME", ""))


@functools.lru_cache(maxsize=8)
def _home(_given: str, _account: str) -> str:
    # asked before every call: the platform's folder is worked out once per setting of the environment
    return os.path.realpath(home_path())


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/") or folded(path).startswith(folded(folder) + "/")
