"""Saves a forest in memory as a file, from which a later clustering goes on.

The file is a ZIP archive whose members are not compressed:

- ``state.json``: the format, the rules of the profile, the retention, and the forest's `State`;
- ``nodes-1``, ``nodes-2`` …: nodes and content hashes, in the format of a forest's log;
- ``boilerplate-1`` …: what was learned in succession, as `esdedup.boilerplate.changes` stores it.

It contains signatures and hashes, but neither texts nor the articles' ids. Expired nodes are left out.
"""

import contextlib
import dataclasses
import json
import os
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import pydantic

from esdedup.boilerplate.changes import Changes, bytes_of, read_changes
from esdedup.elastic.forest.meta import Meta
from esdedup.errors import StateUnusable
from esdedup.fingerprint.profile import Profile
from esdedup.forest import Aging, Plan, State
from esdedup.forest.model import DEFAULT_RETENTION, NO_TIME
from esdedup.forest.store import MemoryStore
from esdedup.neighbours.relation import relation_of

FORMAT = 1
"""The format of the file; files of another format are refused."""

_HEAD, _NODES, _BOILERPLATE = "state.json", "nodes", "boilerplate"
# A member of the archive is complete once it has this many bytes.
_ENOUGH_BYTES, _ENOUGH_PAGES = 4_000_000, 5_000
_DAMAGES: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
)

_Number = Annotated[int, pydantic.Field(ge=-(2**63), lt=2**63)]


class _Head(pydantic.BaseModel, frozen=True, strict=True):
    """The description of a file; before its format is known, only that may be read."""

    format: int
    rules: dict[str, Any]
    retention_ms: Annotated[int, pydantic.Field(ge=1, lt=2**53)]
    state: Annotated[list[_Number], pydantic.Field(min_length=3, max_length=3)]
    # The numbers of members, by the beginning of their names.
    members: dict[str, int]


class SavedStore(MemoryStore):
    """A forest in memory that begins with the contents of a file, and can be saved to the file.

    A file that does not exist is a forest without articles. Without `retention`, the forest has the file's
    retention, or 30 days. Once an article had a time, times must be used, with the same retention. Raises
    `StateUnusable`.
    """

    def __init__(self, path: Path, *, profile: Profile, retention: timedelta | None, use_time: bool) -> None:
        self._path = path.resolve()
        self._rules = dataclasses.asdict(Meta.of(profile))
        self._found = self._version()
        head = self._read_head() if self._found else None
        aging = Aging.of(retention=DEFAULT_RETENTION if retention is None else retention)
        if head is not None:
            is_timed = State(*head.state).time_ms != NO_TIME
            if is_timed and not use_time:
                raise self._unusable("has times: use --time-field (in Python: retention), or another file")
            saved = dataclasses.replace(aging, retention_ms=head.retention_ms)
            if is_timed and retention is not None and saved != aging:
                raise self._unusable("has another retention: leave the retention out, or use another file")
            aging = saved if is_timed or retention is None else aging
        super().__init__(aging=aging, relation=relation_of(profile))
        if head is not None:
            self._load(State(*head.state), head.members)
        # New entries are collected in a file, since they may need more memory than the forest.
        closing = contextlib.ExitStack()
        weakref.finalize(self, closing.close)
        try:
            scratch = closing.enter_context(tempfile.TemporaryFile(dir=self._path.parent))  # noqa: SIM115
        except OSError as error:
            raise self._unusable(f"cannot be written: {error.strerror}") from error
        self._new = closing.enter_context(zipfile.ZipFile(scratch, "w"))

    def commit(self, plan: Plan) -> Future[None]:
        """Keep the batch's plan and what was learned, and note both for `save`."""
        self._new.writestr(f"{_NODES}-{len(self._new.filelist)}", plan.log)
        self._note_learned()
        return super().commit(plan)

    def learn(self) -> None:
        """Keep what was learned, and note it for `save`."""
        self._note_learned()
        super().learn()

    def _note_learned(self) -> None:
        changes = self.boilerplate.changes()
        if not changes.are_empty:
            self._new.writestr(f"{_BOILERPLATE}-{len(self._new.filelist)}", bytes_of(changes.columns()))

    def save(self) -> None:
        """Replace the file with the forest's contents, completely or not at all; no call may follow.

        Raises `StateUnusable` if another process has changed the file, or if it cannot be written.
        """
        self._refuse_changed()
        scratch = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        lock = self._path.with_name(f".{self._path.name}.lock")
        try:
            with scratch.open("wb") as file:
                self._write(zipfile.ZipFile(file, "w"))
                file.flush()
                os.fsync(file.fileno())
            # Held only for a moment, so that two processes cannot both find the file unchanged.
            lock.touch(exist_ok=False)
            try:
                self._refuse_changed()
                scratch.replace(self._path)
            finally:
                lock.unlink()
        except FileExistsError as error:
            reason = f"is being replaced by another process; if none is running, delete {str(lock)!r}"
            raise self._unusable(reason) from error
        except OSError as error:
            raise self._unusable(f"cannot be written: {error.strerror}") from error
        finally:
            scratch.unlink(missing_ok=True)

    def _write(self, archive: zipfile.ZipFile) -> None:
        members = {_NODES: 0, _BOILERPLATE: 0}
        with archive:
            for name, parts in ((_NODES, self._nodes_parts()), (_BOILERPLATE, self._learned_parts())):
                for number, part in enumerate(parts, 1):
                    archive.writestr(f"{name}-{number}", part)
                    members[name] = number
            head = _Head(
                format=FORMAT,
                rules=self._rules,
                retention_ms=self.aging.retention_ms,
                state=list(self.state),
                members=members,
            )
            archive.writestr(_HEAD, head.model_dump_json())

    def _nodes_parts(self) -> Iterator[bytes]:
        """Yield the live nodes and content hashes as logs."""
        since_ms, part = self.state.live_since_ms(self.aging), b""
        for log in self._parts(_NODES):
            part += self.relation.core.log(self._nodes.living(log, live_since_ms=since_ms))[0]
            if len(part) >= _ENOUGH_BYTES:
                yield part
                part = b""
        if part:
            yield part

    def _learned_parts(self) -> Iterator[bytes]:
        """Yield what was learned from pages of the present and the former period."""
        joined: Changes | None = None
        since = self.boilerplate.former_from
        for changes in map(read_changes, self._parts(_BOILERPLATE)):
            if changes.last_page >= since:
                joined = joined.then(changes) if joined else changes
                if joined.page_count >= _ENOUGH_PAGES:
                    yield bytes_of(joined.columns())
                    joined = None
        if joined:
            yield bytes_of(joined.columns())

    def _parts(self, name: str) -> Iterator[bytes]:
        """Yield the parts in the file, then the new ones."""
        if self._found:
            with self._reading() as archive:
                yield from map(archive.read, _members(archive, name))
        yield from map(self._new.read, _members(self._new, name))

    def _read_head(self) -> _Head:
        with self._reading() as archive:
            if any(each.compress_type != zipfile.ZIP_STORED for each in archive.infolist()):
                raise ValueError("it is compressed")
            values = json.loads(archive.read(_HEAD))
            if values["format"] != FORMAT or values["rules"]["format"] != self._rules["format"]:
                raise self._unusable("was made by another version of esdedup: cluster all articles again")
            head = _Head.model_validate(values)
        if head.rules != self._rules:
            made, asked = head.rules.get("profile"), self._rules["profile"]
            reason = f"was made with the profile {made!r}, not {asked!r}"
            raise self._unusable(f"{reason}: use that profile, or another file")
        return head

    def _load(self, state: State, members: dict[str, int]) -> None:
        with self._reading() as archive:
            if {name: len(_members(archive, name)) for name in members} != members:
                raise ValueError("members are missing")
            for name in _members(archive, _NODES):
                self._nodes.load_logs([archive.read(name)])
            self._nodes.settle(live_since_ms=state.live_since_ms(self.aging))
            for name in _members(archive, _BOILERPLATE):
                self.boilerplate.begin()
                self.boilerplate.apply(read_changes(archive.read(name)))
                self.boilerplate.keep()
        self.state = state

    @contextlib.contextmanager
    def _reading(self) -> Iterator[zipfile.ZipFile]:
        """Open the archive; raise `StateUnusable` if it is damaged."""
        try:
            with zipfile.ZipFile(self._path) as archive:
                yield archive
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from error
        except _DAMAGES as error:
            self._refuse_changed()
            what = f"is not a state of esdedup, or is damaged ({type(error).__name__})"
            raise self._unusable(f"{what}: use another file, or cluster all articles again") from error

    def _refuse_changed(self) -> None:
        if self._version() != self._found:
            raise self._unusable("was changed by another process: cluster these articles again")

    def _version(self) -> tuple[int, ...] | None:
        """Identify the file's present contents; None if there is no file."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror}") from error
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _unusable(self, reason: str) -> StateUnusable:
        return StateUnusable(f"the state {str(self._path)!r} {reason}", path=str(self._path))


def _members(archive: zipfile.ZipFile, name: str) -> list[str]:
    return [each for each in archive.namelist() if each.startswith(f"{name}-")]
