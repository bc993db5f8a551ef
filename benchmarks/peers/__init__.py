"""One file per library, run in its own environment as ``python -m benchmarks.peers.<name> request.json``."""
