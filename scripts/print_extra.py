"""Print the requirements of an extra of the installed package, one per line.

`make` installs these directly, because `pip install -e ".[test]"` would compile the core again.
"""

import re
import sys
from importlib.metadata import requires

for line in requires("manyclass") or []:
    requirement, _, marker = line.partition(";")
    if re.search(rf"""extra\s*==\s*["']{re.escape(sys.argv[1])}["']""", marker) and "manyclass" not in requirement:
        print(requirement.strip().replace(" ", ""))
