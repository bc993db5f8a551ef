"""The methods, splits, numbers of blocks and compressions compared in the experiments of Yu et al. (KDD 2010).

All train one-vs-rest with the hinge, except StreamSVM. The paper's methods visit one block at a time.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.solvers import Solver, by_passes, ours

NAME = "block-minimisation"
BLOCKS = 40
# Relative differences to the optimum: those that are timed, and the one at which a curve ends.
WITHIN = (1e-2, 1e-3)
NEAR = 1e-4

ALONE = {"blocks_per_batch": 1}
UNTIL_SETTLED = {"rounds": "tol", **ALONE}
DEFAULT = by_passes("manyclass")
BLOCK_L_D = by_passes("BLOCK-L-D", **UNTIL_SETTLED)
IN_MEMORY = replace(ours("hinge"), name="in memory")
# Figure 2.
METHODS = (
    by_passes("BLOCK-L-1", rounds=1, **ALONE),
    by_passes("BLOCK-L-10", rounds=10, **ALONE),
    BLOCK_L_D,
    by_passes("BLOCK-P-B", method="pegasos", update="block", **ALONE),
    by_passes("BLOCK-P-I", method="pegasos", update="row", **ALONE),
    by_passes("StreamSVM", "squared_hinge", method="streamsvm", **ALONE),
    DEFAULT,
    IN_MEMORY,
)
# Figure 3: blocks of consecutive rows sorted by class, and the same order of blocks in every pass.
RAW = by_passes("BLOCK-L-D, raw", **UNTIL_SETTLED)
SAME_ORDER = by_passes("BLOCK-L-D, same order", same_order=True, **UNTIL_SETTLED)
RAW_SAME_ORDER = by_passes("BLOCK-L-D, raw, same order", same_order=True, **UNTIL_SETTLED)
SPLITS = (BLOCK_L_D, SAME_ORDER, RAW, RAW_SAME_ORDER)
# Figure 4.
NUMBERS = (10, BLOCKS, 400, 1000)


def with_blocks(solver: Solver, number: int) -> Solver:
    """Return the solver, named by its number of blocks if that is not the default."""
    return solver if number == BLOCKS else replace(solver, name=f"{solver.name}, {number} blocks")


# Section 7.6.
COMPRESSIONS = {name: by_passes(f"BLOCK-L-D, {name}", **UNTIL_SETTLED) for name in ("zstd", "zlib", "none")}
