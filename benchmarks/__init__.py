"""Measure the project's claims about speed and memory, side by side with other libraries.

Run ``python -m benchmarks --list`` from the root of the repository. Every measurement runs in a fresh process that
loads a stored problem, trains, and answers with JSON (`protocol`). The other libraries (`peers`) have their own
virtual environments (`environments`). One function computes the objective value of every solver's weights
(`objective`), and each claim is one named entry (`entries`).
"""
