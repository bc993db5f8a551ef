"""Parse and format sizes in bytes."""

import re

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def parse_size(size: int | str) -> int:
    """Convert a positive size such as "512MB", "1.5 GiB" or "2G" to bytes. A number is already in bytes."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", size.upper()) if isinstance(size, str) else None
    if found is None or found[2] not in UNITS or float(found[1]) == 0:
        raise ValueError(f'a size is a number of bytes or a string such as "512MB" or "1.5GiB"; got {size!r}')
    return int(float(found[1]) * UNITS[found[2]])


def show_size(size: int) -> str:
    """Format a size in the largest unit that gives a number of at least one."""
    for unit in ("T", "G", "M", "K"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.3g} {unit.replace('K', 'k')}B"
    return f"{size} bytes"
