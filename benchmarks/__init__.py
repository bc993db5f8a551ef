"""Measure the project's claims about speed and memory, side by side with its peers.

Run ``python -m benchmarks --list`` from the root of the repository. A measurement always happens in a
fresh process that loads a stored problem, trains, and answers with JSON (`protocol`); the peers live in
environments of their own (`environments`); one function computes the objective value of every solver's
weights (`objective`); each claim is one named entry (`entries`).
"""
