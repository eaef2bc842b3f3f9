"""What a script calls."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Callable, Iterator, List, Optional, TypeVar

from ._flag import Flag, NoFlag
from ._refusal import Refusal, type_name
from ._session import Session
from ._state import State

Act = TypeVar("Act", bound=Callable[[], Any])

# Says which process is the job, so that one it starts, which inherits the environment, does not act as it.
OWNER = "PORTAL_SDK_OWNER"


class Job:
    """The job that this script is. Outside Portal everything works, and does nothing."""

    def __init__(self) -> None:
        self.name: str = os.environ.get("PORTAL_JOB", "")
        #: the number of this attempt; 1 outside Portal
        self.attempt: int = _attempt()
        self._flag: Flag = NoFlag()
        self._session: Optional[Session] = None
        self._state: Optional[State] = None
        self._turn = 0
        self._loops = 0
        self._asked = False
        self._looking = False
        self._on_start: List[Callable[[], Any]] = []
        self._on_suspend: List[Callable[[], Any]] = []
        self._on_resume: List[Callable[[], Any]] = []
        self._clock_from = time.monotonic()
        self._carried_s = 0.0
        if _is_job_process():
            self._flag = Flag(os.environ["PORTAL_FLAG"])
            self._session = Session(os.environ["PORTAL_SOCKET"], self.clock, self._set_clock)
            self._session.before_look = self._before_look
            self._session.after_look = self._after_look
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._in_child)

    def _in_child(self) -> None:
        self._flag.detach()
        if self._session is not None:
            self._session.forget()
            self._session = None

    @property
    def restored(self) -> bool:
        """Whether this attempt goes on from a checkpoint."""
        return self._session is not None and self._session.restored

    def state(self, **values: Any) -> State:
        """Says which values make up the job's state, and returns them as an object's attributes.

        Within Portal it blocks until this attempt may run, and restores the values from the checkpoint, in place, if
        there is one. The lines above it run again at every attempt. To be called once.
        """
        if self._state is not None:
            raise RuntimeError("job.state() was called already; set further values on the state that it returned")
        state = State(**values)
        self._state = state
        if self._session is not None:
            self._session.start(state)
            # The clock stands still until the attempt may run.
            self._clock_from = time.monotonic() - self._carried_s
        for act in self._on_start:
            act()
        self._on_start.clear()
        return state

    def steps(self, state: State, name: str, total: int) -> Iterator[int]:
        """The steps that are still to do, from `state.<name>` to `total` - 1, with a safe point before each and one after
        the last. Within the loop's body `state.<name>` is the step that runs, at a safe point the next to run."""
        fields = state.__dict__
        step = getattr(state, name)
        flag = self._flag
        self._loops += 1
        try:
            while True:
                flag.turns[0] = self._turn = self._turn + 1
                if flag.asked[0]:
                    self._look()
                if step >= total:
                    return
                yield step
                # Before the flag is looked at: saved there, the step that has run does not run again.
                fields[name] = step = step + 1
        finally:
            self._loops -= 1

    def safe_point(self) -> None:
        """A safe point for a loop that is not `job.steps`: the job may be saved, suspended or moved here."""
        self._flag.turns[0] = self._turn = self._turn + 1
        if self._flag.asked[0]:
            self._look()

    def checkpoint(self) -> None:
        """Asks for a checkpoint: here, or, within `job.steps`, at the end of the step that runs."""
        if self._session is None:
            return
        self._asked = True
        self._flag.ask()
        if not self._loops:
            self.safe_point()

    def progress(self, done: float, total: Optional[float] = None) -> None:
        """Says how far the job is, in units of its own."""
        self._flag.progress[0] = float(done)
        self._flag.progress[1] = float("nan") if total is None else float(total)

    def on_start(self, act: Act) -> Act:
        """Runs `act` once this attempt may run, for effects that must not happen in an attempt that never does."""
        if self._state is not None:
            act()
        else:
            self._on_start.append(act)
        return act

    def on_suspend(self, act: Act) -> Act:
        """Runs `act` at a safe point where the state is about to be looked at, to close what cannot be carried."""
        self._on_suspend.append(act)
        return act

    def on_resume(self, act: Act) -> Act:
        """Runs `act` when the job goes on in this process after `on_suspend` has run, to open again what that closed."""
        self._on_resume.append(act)
        return act

    def clock(self) -> float:
        """Seconds that this job has run, over all its attempts; monotonic, and carried, unlike time.monotonic()."""
        return time.monotonic() - self._clock_from

    def _set_clock(self, seconds: float) -> None:
        self._carried_s = seconds

    def _look(self) -> None:
        # A safe point within a callback of a safe point is none; nor is one in another thread while the first talks.
        if self._session is None or self._state is None or self._looking:
            return
        self._looking = True
        try:
            if self._session.safe_point(self._turn, "checkpoint" if self._asked else None):
                self._asked = False
                self._flag.answered()
        finally:
            self._looking = False

    def _before_look(self) -> List[Refusal]:
        found = []
        for act in self._on_suspend:
            try:
                act()
            except Exception as error:
                reason = f"it raised {type_name(type(error))}: {error}"
                name = getattr(act, "__qualname__", type_name(type(act)))
                found.append(Refusal(f"job.on_suspend({name})", "function", reason, "see that it closes what it should"))
        return found

    def _after_look(self) -> None:
        for act in self._on_resume:
            act()


def _attempt() -> int:
    try:
        return int(os.environ.get("PORTAL_ATTEMPT", "1"))
    except ValueError:
        return 1


def _is_job_process() -> bool:
    path = os.environ.get("PORTAL_SOCKET")
    if not path or "PORTAL_FLAG" not in os.environ:
        return False
    owner = f"{os.getpid()}:{path}"
    known = os.environ.get(OWNER, "")
    if known and known != owner and known.partition(":")[2] == path:
        return False
    parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", None)
    if parent is not None and parent() is not None:
        return False
    os.environ[OWNER] = owner
    return True


_job: Optional[Job] = None


def job() -> Job:
    """The job that this script is; the same one at every call."""
    global _job
    if _job is None:
        _job = Job()
    return _job
