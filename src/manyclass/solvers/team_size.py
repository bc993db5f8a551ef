"""How many threads work together on a pass: fewer than allowed while the machine has no core for them.

Threads that meet every few microseconds are only as fast as the slowest: when another program takes one of the
cores, a smaller team can be faster. Results do not depend on the number of threads, so it may change at any time.
"""

# Threads asleep for more than this share of their time: is a smaller team faster?
SUSPICIOUS = 0.15
# A smaller team lets the full one try again after so many pieces of work.
TRY_AGAIN_AFTER = 12


class TeamSize:
    """Chooses the number of threads for the next piece of work from how fast the last ones went."""

    def __init__(self, most: int):
        self._most = most
        self.threads = most
        self._speed: dict[int, float] = {}  # work a second, by number of threads
        self._pieces = 0

    def learn(self, work: float, seconds: float, asleep: float) -> None:
        """Take note of a piece of work done by `threads` threads, which waited `asleep` seconds in sum."""
        now = self.threads
        self._speed[now] = work / max(seconds, 1e-9)
        self._pieces += 1
        smaller = now // 2
        if now > 1 and asleep > SUSPICIOUS * now * seconds:
            # Trust what is known of the smaller team for a while, then ask anew.
            if self._speed.get(smaller, float("inf")) > self._speed[now]:
                self.threads, self._pieces = smaller, 0
                return
        larger = min(self._most, now * 2)
        if larger == now:
            return
        if self._speed.get(larger, 0.0) > self._speed[now] or self._pieces >= TRY_AGAIN_AFTER:
            self.threads, self._pieces = larger, 0
            self._speed.pop(now, None)
