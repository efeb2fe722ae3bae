#!/usr/bin/python3
"""An all-reduce over MPI, through MPICH's library and its stable ABI."""
import ctypes
import os

WORLD, INT, SUM = 0x44000000, 0x4C000405, 0x58000003  # MPI_COMM_WORLD, MPI_INT, MPI_SUM

mpi = ctypes.CDLL("libmpich.so.12")
assert mpi.MPI_Init(None, None) == 0
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
one = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(ctypes.byref(one), ctypes.byref(total), 1, INT, SUM, WORLD)
mpi.MPI_Finalize()

# What MPI says of this process has to be what assay says of it.
assert (rank.value, size.value) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])), (rank, size)
want = size.value * (size.value + 1) // 2
assert total.value == want, f"the sum is {total.value}, want {want}"
if rank.value == 0:
    print(f"performance: {total.value} sum")
