"""The model of an estimator or a pipeline, with all that happens to raw input before its weights."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..data import Chain
from .linear import LinearModel


def model_of(trained: Any) -> LinearModel:
    """Give the model of something that was trained.

    Parameters
    ----------
    trained : LinearModel, estimator, Pipeline, or search
        A fitted estimator of this package; a pipeline that ends with one; or a search such as `GridSearchCV` over
        these, of which the best estimator is taken.

    Returns
    -------
    LinearModel
        That of a pipeline takes what the pipeline takes.

    Raises
    ------
    TypeError
        For anything else, and for a step of a pipeline that cannot be stored as data, with the reason.
    sklearn.exceptions.NotFittedError
        If it is not trained yet.
    """
    if isinstance(trained, LinearModel):
        return trained
    if hasattr(trained, "best_estimator_"):
        return model_of(trained.best_estimator_)
    if isinstance(trained, Pipeline):
        *steps, last = _steps(trained)
        model = model_of(last)
        return replace(model, chain=Chain(steps) + model.chain) if steps else model
    if hasattr(trained, "fit"):
        check_is_fitted(trained)
    found = getattr(trained, "model_", None)
    if not isinstance(found, LinearModel):
        raise TypeError(
            f"a {type(trained).__name__} has no model of manyclass; pass a LinearModel, an estimator of manyclass, "
            "or a pipeline that ends with one"
        )
    return found


def _steps(pipeline: Pipeline) -> Iterator[Any]:
    """The steps of a pipeline, and of pipelines in it, without those that do nothing."""
    for _, step in pipeline.steps:
        if isinstance(step, Pipeline):
            yield from _steps(step)
        elif step not in (None, "passthrough"):
            yield step
