"""How to train from a store."""

from dataclasses import dataclass

from ..data.sizes import parse_size
from ..problems import Problem

# How to train, and the losses that are trained so (None: all of them).
METHODS: dict[str, tuple[str, ...] | None] = {
    "dual": None,
    "pegasos": ("hinge", "squared_hinge", "logistic"),
    "streamsvm": ("squared_hinge",),
}
# A share of all blocks from which on rows that are visited together gain from a second round, without the others.
LARGE_SHARE = 1 / 10


@dataclass(frozen=True)
class DiskEngine:
    """How to train from a store.

    Parameters
    ----------
    memory : int or str
        What blocks, weights, dual variables and buffers may take together, such as "512MB". A fit that needs more
        is refused at its start.
    together : int, optional
        How many blocks are visited together, their rows mixed: others in every pass. Blocks that are always visited
        alone fit what they have in common each in their own way, and take many more passes. None for as many as
        there is room for, two at least.
    rounds : int, "tol" or "auto", optional
        How often the rows of a block are visited before the next one: so many times; until they gain little; or as
        often as there is time for while the next block is read (then the last bits of the model depend on the speed
        of the disk). None for 2 where what is visited together is a tenth of all blocks, else 1. The methods other
        than "dual" make one visit.
    method : "dual", "pegasos" or "streamsvm"
        Coordinate ascent on the dual, for all losses. The other two are there to compare with, for one-vs-rest:
        stochastic subgradients ("hinge", "squared_hinge", "logistic"), and a single pass that grows a ball around
        the rows ("squared_hinge"), after which the fit ends with whatever gap it has.
    update : "row" or "block"
        Of "pegasos": whether the weights change with each row, or once for all rows that are visited together.
    """

    memory: int | str = "1GB"
    rounds: int | str | None = None
    together: int | None = None
    method: str = "dual"
    update: str = "row"

    def __post_init__(self) -> None:
        parse_size(self.memory)
        if not (self.rounds in (None, "tol", "auto") or (isinstance(self.rounds, int) and self.rounds >= 1)):
            raise ValueError(f'rounds must be a positive number, "tol", "auto" or None; got {self.rounds!r}')
        if not (self.together is None or (isinstance(self.together, int) and self.together >= 1)):
            raise ValueError(f"together must be a positive number or None, got {self.together!r}")
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}, got {self.method!r}")
        if self.update not in ("row", "block"):
            raise ValueError(f"update must be 'row' or 'block', got {self.update!r}")
        if self.update != "row" and self.method != "pegasos":
            raise ValueError(f"update={self.update!r} is for method='pegasos', not for {self.method!r}; leave it out")
        if self.method != "dual" and self.rounds not in (None, 1):
            raise ValueError(f"method={self.method!r} visits a row once a pass; leave out rounds={self.rounds!r}")

    def first_rounds(self, share: float) -> int | str:
        """The rounds of the first pass, where so large a share of all blocks is visited together."""
        if self.rounds is None:
            return 2 if self.method == "dual" and share >= LARGE_SHARE else 1
        return 1 if self.rounds == "auto" else self.rounds

    def check_loss(self, problem: Problem) -> None:
        """Say no to a loss that the method does not train.

        Raises
        ------
        ValueError
            With what to do instead.
        """
        trained = METHODS[self.method]
        if trained is not None and problem.name not in trained:
            names = " or ".join(map(repr, trained))
            raise ValueError(
                f"method={self.method!r} trains the one-vs-rest losses {names} only, not {problem.name!r}; "
                "leave out method, or choose another loss"
            )
