"""The cache of derivations on disk: one file each, which may be deleted at any time.

They lie under XDG_CACHE_HOME, `~/.cache/combdiff` as a rule. A file is named after all that the derivation depends on:
the program, the options, and the sources of combdiff. It holds a pickle, and is as trusted as the user's own files.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from combdiff.derivation import Derivation

_PACKAGE = Path(__file__).parents[1]


def folder() -> Path:
    """Where derivations are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "combdiff"


def remembered(key: object, derive: Callable[[], Derivation]) -> Derivation:
    """The derivation of this key, or what `derive` finds, which is kept for the next time.

    A derivation whose budget was spent is not kept: another time more may be found.
    """
    name = sha256(repr((_version(), key)).encode()).hexdigest()
    file = folder() / f"{name}.pickle"
    with suppress(Exception):  # whatever is wrong with a file, the derivation can be found again
        found: Derivation = pickle.loads(file.read_bytes())
        return found
    d = derive()
    if not any(step.spent for step in d.steps):
        with suppress(OSError):
            _write(file, pickle.dumps(d))
    return d


def _write(file: Path, content: bytes) -> None:
    """Another process may read or write the same file meanwhile."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(file)


@cache
def _version() -> tuple[object, ...]:
    """What changes when combdiff does: its version, and for one that is being worked on, its files."""
    from combdiff import __version__

    places = [_PACKAGE, _PACKAGE.parent / "rules", _PACKAGE.parent / "grammar"]
    files = [path for place in places for path in place.rglob("*") if path.suffix in (".py", ".egg", ".lark")]
    return __version__, tuple(sorted((str(f), f.stat().st_mtime_ns) for f in files))
