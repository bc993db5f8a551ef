"""The number of threads that work on a pass together: fewer than allowed while cores are busy.

Threads that meet every few microseconds are only as fast as the slowest one, so when another program takes a core, a
smaller team can be faster. Results do not depend on the number of threads, so it may change at any time.
"""

# Try a smaller team when threads sleep for more than this share of their time.
SUSPICIOUS = 0.15
# Measure the speed of another team again after this many pieces of work.
REMEMBERED_FOR = 12
# Share of a usual piece of work that is enough to measure it.
TRIAL = 0.2


class TeamSize:
    """Chooses the number of threads for the next piece of work by the speed of the last ones."""

    def __init__(self, most: int):
        self._most = most
        self.threads = most
        self.share = 1.0  # of a usual piece of work: less while measuring the speed of another team
        self._pieces = 0
        self._speeds: dict[int, tuple[float, int]] = {}  # by number of threads: work per second, and when

    def learn(self, work: float, seconds: float, asleep: float) -> None:
        """Learn from a piece of work, during which all `threads` threads together slept `asleep` seconds."""
        now, speed = self.threads, work / max(seconds, 1e-9)
        self._pieces += 1
        self._speeds[now] = (speed, self._pieces)
        if now > 1 and asleep > SUSPICIOUS * now * seconds and self._may_be_faster(now // 2, speed):
            self.threads = now // 2
        elif now < self._most and self._may_be_faster(min(self._most, 2 * now), speed):
            self.threads = min(self._most, 2 * now)
        self.share = 1.0 if self._known(self.threads) else TRIAL

    def _known(self, threads: int) -> bool:
        return threads in self._speeds and self._pieces - self._speeds[threads][1] < REMEMBERED_FOR

    def _may_be_faster(self, threads: int, than: float) -> bool:
        return not self._known(threads) or self._speeds[threads][0] > than
