"""Extract the model of an estimator or pipeline, including its preprocessing steps."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..data import Chain
from .linear import LinearModel


def model_of(trained: Any) -> LinearModel:
    """Return the model of a fitted estimator of this package, a pipeline that ends with one, or a search over these.

    The model of a pipeline accepts the same input as the pipeline. TypeError says why there is no model: `trained` is
    something else, or a step cannot be stored as data.
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
            f"a {type(trained).__name__} is not a manyclass model; pass a LinearModel, a manyclass estimator, "
            "or a pipeline that ends with one"
        )
    return found


def _steps(pipeline: Pipeline) -> Iterator[Any]:
    """Yield the steps of a pipeline and of nested pipelines, skipping those that do nothing."""
    for _, step in pipeline.steps:
        if isinstance(step, Pipeline):
            yield from _steps(step)
        elif step not in (None, "passthrough"):
            yield step
