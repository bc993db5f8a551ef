"""How many threads work together on a pass: fewer than allowed while the machine has no core for them.

Threads that meet every few microseconds are only as fast as the slowest: when another program takes one of the
cores, a smaller team can be faster. Results do not depend on the number of threads, so it may change at any time.
"""

# Threads asleep for more than this share of their time: is a smaller team faster?
SUSPICIOUS = 0.15
# What is known of another team's speed is asked anew after so many pieces of work.
REMEMBERED_FOR = 12
# Share of a usual piece of work that is enough to find it out.
TRIAL = 0.2


class TeamSize:
    """Chooses the number of threads for the next piece of work from how fast the last ones went."""

    def __init__(self, most: int):
        self._most = most
        self.threads = most
        self.share = 1.0  # of a usual piece of work: less to find out how fast another team is
        self._pieces = 0
        self._speeds: dict[int, tuple[float, int]] = {}  # by number of threads: work a second, and when

    def learn(self, work: float, seconds: float, asleep: float) -> None:
        """Take note of a piece of work done by `threads` threads, which waited `asleep` seconds in sum."""
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
