"""The registry of losses: one entry per loss, written above its formulas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from .problem import Problem


@dataclass(frozen=True)
class Loss:
    """What users see of a loss. What solvers need is in `problem`, with the formulas.

    Attributes
    ----------
    problem : Problem
        The formulas, with default parameters.
    title : str
        Name of the loss in reports.
    estimator : str
        The class in `manyclass.estimators` that trains it.
    takes_sets : bool
        Whether a row may have any number of labels.
    solvers : tuple of str
        Solvers besides "auto" and "dual".
    reducible : bool
        Whether feature reduction is available.
    from_store : tuple of str
        Methods that train from a store; none if the rows have to be in memory.
    """

    problem: Problem
    title: str
    estimator: str
    takes_sets: bool = False
    solvers: tuple[str, ...] = ()
    reducible: bool = False
    from_store: tuple[str, ...] = ("dual",)

    @property
    def parameter(self) -> str:
        """The value of the estimator's parameter `loss`."""
        return getattr(self.problem, "loss", self.problem.name)


ENTRIES: dict[str, Loss] = {}

P = TypeVar("P", bound=type[Problem])


def offered(
    title: str, estimator: str, *, parameters: dict[str, Any] | None = None, **facts: Any
) -> Callable[[P], P]:
    """Register a class of formulas under its name.

    `facts` are attributes of `Loss`; `parameters` are those of the class, if it has the formulas of several losses.
    """

    def enter(formulas: P) -> P:
        problem = formulas(**(parameters or {}))
        ENTRIES[problem.name] = Loss(problem, title, estimator, **facts)
        return formulas

    return enter
