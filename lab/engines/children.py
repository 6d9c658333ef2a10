"""The processes of a round: started, killed with SIGKILL, stopped for a while with SIGSTOP, and
started again.

Rule 1: Every process ends when its parent does, however that ends: it listens on a pipe that only
the parent can write to.
Rule 2: Ctrl-C is the parent's alone; it ends the others.
Rule 3: Processes are forked from a server that has loaded everything, so that a restart costs
little.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Self

CONTEXT = multiprocessing.get_context("forkserver")
END_TIMEOUT_S = 10


def _child(lifeline: Connection, main: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()
    main(*arguments)
    os._exit(0)  # threads of a pool, or a silent proxy, do not hold it up


def _watch(lifeline: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        lifeline.recv()
    os._exit(1)


class Children:
    """Processes by name; all of them end with the `with` block."""

    def __init__(self, preload: str = "lab.engines.proxy") -> None:
        """`preload`: the module that the server loads before it forks."""
        CONTEXT.set_forkserver_preload([preload])
        self._lifeline, self._held = CONTEXT.Pipe(duplex=False)
        self._processes: dict[str, BaseProcess] = {}

    def start(self, name: str, main: Callable[..., None], *arguments: Any) -> None:
        """Starts a process, in the place of an earlier one of that name."""
        # The module of `main` is imported there by name, so the shipped code is what runs.
        process = CONTEXT.Process(target=_child, args=(self._lifeline, main, arguments), name=name)
        process.start()
        self._processes[name] = process

    def alive(self, name: str) -> bool:
        return self._processes[name].is_alive()

    def exit_code(self, name: str) -> int | None:
        return self._processes[name].exitcode

    def join(self, name: str, timeout_s: float) -> bool:
        """Whether the process has ended by itself within the time."""
        self._processes[name].join(timeout_s)
        return not self.alive(name)

    def kill(self, name: str) -> None:
        """SIGKILL: nothing is finished, nothing flushed."""
        self._processes[name].kill()
        self._processes[name].join(END_TIMEOUT_S)

    def signal(self, name: str, sent: signal.Signals) -> None:
        """SIGSTOP or SIGCONT, if it is alive."""
        pid = self._processes[name].pid
        if pid is not None and self.alive(name):
            os.kill(pid, sent)

    def stop(self) -> None:
        """Ends everything. May be called again."""
        for process in self._processes.values():
            process.kill()  # a stopped process too
        for process in self._processes.values():
            process.join(END_TIMEOUT_S)
        self._processes.clear()
        self._held.close()
        self._lifeline.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
