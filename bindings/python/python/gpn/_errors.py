"""Exceptions by kind of failure. The text is that of the library, which the command line prints as well."""

from __future__ import annotations

__all__ = [
    "BugError",
    "ClassNotFoundError",
    "ConflictError",
    "DamagedFileError",
    "GpnError",
    "InputError",
    "NoRoomError",
    "NotFoundError",
    "Stopped",
]


class GpnError(Exception):
    """Any failure that gpn reports. `kind` is its name in JSON."""

    kind: str = "bug"


class InputError(GpnError, ValueError):
    """What was given cannot be used: a wrong setting, an array of the wrong shape, a cycle in the graph."""

    kind = "bad_input"


class NotFoundError(GpnError, FileNotFoundError):
    """A file, folder or benchmark that was named does not exist."""

    kind = "not_found"


class ClassNotFoundError(GpnError, KeyError):
    """A class that was named does not exist."""

    kind = "not_found"

    def __str__(self) -> str:
        # KeyError shows its argument quoted; this is a sentence.
        return str(self.args[0]) if self.args else ""


class ConflictError(GpnError, FileExistsError):
    """The target exists already, another process holds it, or a class is taught already."""

    kind = "conflict"


class DamagedFileError(GpnError):
    """A file is not what it was when it was written, or ends too early."""

    kind = "damaged"


class NoRoomError(GpnError, OSError):
    """Disk or memory does not suffice."""

    kind = "no_room"


class BugError(GpnError, RuntimeError):
    """A fault of gpn itself."""

    kind = "bug"


class Stopped(KeyboardInterrupt):
    """A callback has stopped work that leaves nothing behind when it is stopped."""
