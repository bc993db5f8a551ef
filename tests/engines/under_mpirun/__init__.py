"""What the tests of the engine "mpi" let every rank do.

The fits are functions of the engine, so that the tests can also run them without mpirun.
"""
