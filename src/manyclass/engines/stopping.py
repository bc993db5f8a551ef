"""How fits are asked to stop: Ctrl-C, and many of them at once."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

# What asks a process to stop: one by itself, and one of those that mpirun has started. mpirun turns Ctrl-C into
# SIGTERM, and kills a quarter of a second later; SIGUSR1 it passes on and leaves it at that.
ALONE = (signal.SIGINT,)
UNDER_MPIRUN = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopAll:
    """Asks fits in several threads to stop."""

    def __init__(self) -> None:
        self.requested = False
        self._interrupts: list[Any] = []

    def add(self, interrupt: Any) -> None:
        """Take in the interrupt of one more fit."""
        self._interrupts.append(interrupt)
        if self.requested:
            interrupt.request()

    def request(self) -> None:
        """Stop them all, also those that begin later."""
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
            if previous is None or previous is signal.SIG_IGN:  # not ours to change
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
    """Let Ctrl-C raise KeyboardInterrupt besides, where the main thread waits for others."""
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
