import io
import re

import pytest
from rich.console import Console

from manyclass.engines.progress import ProgressDisplay
from manyclass.solvers import Certificate, Progress, StopRule


@pytest.fixture(params=[120])
def terminal(monkeypatch, request):
    """The output of the bar on a terminal of this width."""
    stream = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **_: Console(file=stream, force_terminal=True, width=request.param, color_system=None),
    )
    return stream


@pytest.mark.parametrize("terminal", [80, 120], indirect=True)
def test_the_bar_says_which_time_is_which(terminal):
    with ProgressDisplay(StopRule("gap", 1e-7), True) as display:
        seen = Progress(123.0, primal=2.0, dual=1.0, violation=1.0, active=1.0, ready=False, pass_ended=True)
        display.show(seen, Certificate(1.23456, 1.23455, 1.0))
        display._bar.refresh()
    text = terminal.getvalue()
    assert re.search(
        r"pass 123, gap 8.1e-06 \(certificate.* elapsed 0:00:\d\d remaining (-:--:--|\d:\d\d:\d\d)", text
    )


@pytest.mark.parametrize(("found", "kind"), [(None, "estimate"), (Certificate(4.0, 3.0, 1.0), "certificate")])
def test_the_bar_tells_estimates_from_certificates(terminal, found, kind):
    with ProgressDisplay(StopRule("gap", 0.01), True) as display:
        seen = Progress(1.0, primal=2.0, dual=1.0, violation=1.0, active=1.0, ready=True, pass_ended=True)
        display.show(seen, found)
        display._bar.refresh()
    gap = {"estimate": "0.5", "certificate": "0.25"}[kind]
    assert f"gap {gap} ({kind}; target 0.01)" in terminal.getvalue()
