"""Where `chalie` begins. `--version` is answered before anything else is imported."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(words: list[str] | None = None) -> int:
    """Run the command line and return its exit code (see `exits`).

    Args:
        words: the arguments after the program's name; those of the process when left out.
    """
    words = sys.argv[1:] if words is None else words
    if words == ["--version"] or words == ["-V"]:
        from chalie import __version__

        try:
            print(f"chalie {__version__}", flush=True)
        except OSError as error:
            from .program import unwritten

            return unwritten(error)
        return 0
    from .program import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
