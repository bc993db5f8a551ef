"""Rewrite errors of the library for the command line: options instead of parameters."""

import re

from ..data import ParseError

SEVERAL_LABELS = (
    "several labels per row are trained one-vs-rest (--loss squared_hinge, hinge, logistic, ppd_squared_hinge or "
    "ppd_hinge) or by --loss max_margin"
)
# The counterparts of `data.remedies`, which are for Python.
REMEDIES = {
    "several_labels": f"{SEVERAL_LABELS}, or give every row one label",
    "index_zero": "the model was trained on features numbered from 1; number those of this file the same way",
    "too_large": "scale the feature, or train with --dtype float64",
    "too_large_for_float64": "scale the feature",
    "nonfinite": "remove the feature, or write a finite value",
    "unknown_feature": "omit --strict to ignore features that the model was not trained on",
    "columns": "pass the columns to read with --text-column and --label-column, or the format with --format",
    "delimiter": "pass the field separator with --delimiter",
    "unlabelled": "fill them in, or skip these rows with --skip-unlabelled",
}
# Options with other names than the parameters.
RENAMED = {
    "C": "-C",
    "Cs": "--C",
    "cv": "--folds",
    "lam": "--lambda",
    "fit_intercept": "--intercept",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "threshold": "--drop",
    "shards": "--shards",
}
SAME = (
    *("checkpoint", "class_weight", "dtype", "engine", "every", "feature_reduction", "gamma", "intercept_scaling"),
    *("leagues", "loss", "max_iter", "memory", "method", "min_df", "min_members", "resume", "rounds", "solver"),
    *("stop", "tau", "time_limit", "tol", "blocks_per_batch", "update"),
)
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in SAME} | RENAMED
GIVEN = re.compile(rf"(?<![\w-])({'|'.join(OPTIONS)})=('[^']*'|\"[^\"]*\"|[^\s,;:()]+)")
# Without a value, replace only names that are not English words.
ALONE = re.compile(rf"(?<![\w-])({'|'.join(name for name in OPTIONS if '_' in name)})(?![\w=])")


def told(error: ValueError | ImportError) -> str:
    """Return the message of an error for users of the command line."""
    return error.told(REMEDIES) if isinstance(error, ParseError) else with_options(str(error))


def with_options(message: str) -> str:
    """Replace parameters by options: `solver='newton'` becomes --solver newton."""

    def option(found: re.Match[str]) -> str:
        name, value = OPTIONS[found[1]], found[2].strip("'\"")
        return name if value == "True" else f"{name} {value}"

    return ALONE.sub(lambda found: OPTIONS[found[1]], GIVEN.sub(option, message))
