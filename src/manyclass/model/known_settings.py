"""The model settings that predictions depend on. All others are informational and may have any value."""

import math
from dataclasses import dataclass, fields
from typing import Any

from ..data.json_content import Count, as_declared
from .probability import METHODS


@dataclass(frozen=True)
class ProbabilityRule:
    """The rule used by `probabilities`."""

    method: str
    slope: float
    offset: float = 0.0
    alone: bool = False


@dataclass(frozen=True)
class KnownSettings:
    """The known settings and their types."""

    pairs: bool = False
    multilabel: bool = False
    probability: ProbabilityRule | None = None
    index_base: Count = 0
    n_rows: Count = 0
    text_column: str | None = None
    label_column: str | None = None


NAMES = {about.name for about in fields(KnownSettings)}


def check_settings(settings: dict[str, Any]) -> None:
    """Reject settings from a file that would fail when used; the error names the setting and the value found."""
    known = {name: value for name, value in settings.items() if name in NAMES}
    rule = as_declared(KnownSettings, known, "settings").probability
    if known.get("index_base", 0) not in (0, 1):
        raise ValueError(f"settings.index_base is {known['index_base']}")
    if rule is None:
        return
    if rule.method not in METHODS or not (math.isfinite(rule.slope) and math.isfinite(rule.offset)):
        raise ValueError(f"settings.probability is {known['probability']}")
    if rule.method == "sigmoid" and "offset" not in known["probability"]:
        raise ValueError("settings.probability has no offset")
