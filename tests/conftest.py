import os
import pathlib
import signal
import sys

import hypothesis
import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # read when scipy is imported: scikit-learn's checks need it
sys.path.insert(0, str(pathlib.Path(__file__).parent / "common"))

# Jobs started in the background of a script ignore Ctrl-C, and so would every process that the tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is not a defect.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def shared_data():
    """The folder with the real data sets, if there is one."""
    folder = os.environ.get("MANYCLASS_DATA")
    if not folder or not pathlib.Path(folder).is_dir():
        pytest.skip("MANYCLASS_DATA does not name a folder of data sets")
    return pathlib.Path(folder)
