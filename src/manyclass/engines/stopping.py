"""Stopping fits: by Ctrl-C, or several at once."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

# Signals that ask a process to stop, outside and under mpirun. mpirun turns Ctrl-C into SIGTERM and kills its
# processes a quarter of a second later; it forwards SIGUSR1 without killing anything.
ALONE = (signal.SIGINT,)
UNDER_MPIRUN = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopAll:
    """Stop fits that run in several threads."""

    def __init__(self) -> None:
        self.requested = False
        self._interrupts: list[Any] = []

    def add(self, interrupt: Any) -> None:
        """Register the interrupt of a fit."""
        self._interrupts.append(interrupt)
        if self.requested:
            interrupt.request()

    def request(self) -> None:
        """Stop all fits, including those added later."""
        self.requested = True
        for interrupt in self._interrupts:
            interrupt.request()


@contextmanager
def listening(interrupt: Any, signals: Sequence[signal.Signals] = ALONE) -> Iterator[None]:
    """Turn Ctrl-C, or other signals, into a request to stop. Only the main thread receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with ExitStack() as restored:
        for number in signals:
            previous = signal.getsignal(number)
            if previous is None or previous is signal.SIG_IGN:  # leave the caller's choice alone
                continue

            def handler(number: int, frame: Any, previous: Any = previous) -> None:
                if interrupt.requested and callable(previous):
                    previous(number, frame)  # a second Ctrl-C does not wait for the certificate
                interrupt.request()

            signal.signal(number, handler)
            restored.callback(signal.signal, number, previous)
        yield


@contextmanager
def raising() -> Iterator[None]:
    """Also raise KeyboardInterrupt on Ctrl-C, for a main thread that waits for other threads."""
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield
        return

    def handler(number: int, frame: Any) -> None:
        previous(number, frame)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
