"""What people are offered under the name of a loss: one entry each, written above the formulas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from .problem import Problem


@dataclass(frozen=True)
class Loss:
    """What people see of a loss. What solvers need to know is with its formulas, in `problem`.

    Attributes
    ----------
    problem : Problem
        The formulas, with default parameters.
    title : str
        Its name in reports.
    estimator : str
        The class in `manyclass.estimators` that trains it.
    takes_sets : bool
        Whether a row may have any number of labels.
    solvers : tuple of str
        Solvers it has besides "auto" and "dual".
    reducible : bool
        Whether feature reduction works for it.
    """

    problem: Problem
    title: str
    estimator: str
    takes_sets: bool = False
    solvers: tuple[str, ...] = ()
    reducible: bool = False

    @property
    def parameter(self) -> str:
        """The value of the estimator's parameter `loss`."""
        return getattr(self.problem, "loss", self.problem.name)


ENTRIES: dict[str, Loss] = {}

P = TypeVar("P", bound=type[Problem])


def offered(
    title: str, estimator: str, *, parameters: dict[str, Any] | None = None, **facts: Any
) -> Callable[[P], P]:
    """Enter a class of formulas under its name.

    Parameters
    ----------
    title, estimator, **facts
        The attributes of `Loss`.
    parameters : dict, optional
        Arguments of the class, where one class has the formulas of several losses.
    """

    def enter(formulas: P) -> P:
        problem = formulas(**(parameters or {}))
        ENTRIES[problem.name] = Loss(problem, title, estimator, **facts)
        return formulas

    return enter
