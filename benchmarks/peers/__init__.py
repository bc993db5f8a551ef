"""One file per peer, run in its own environment as ``python -m benchmarks.peers.<name> request.json``."""
