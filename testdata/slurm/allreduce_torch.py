#!/usr/bin/python3
"""An all-reduce of torch.distributed over gloo, which finds its peers by the environment alone."""
import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo", init_method="env://")
rank, size = dist.get_rank(), dist.get_world_size()
value = torch.full((1 << 16,), float(rank + 1))
dist.all_reduce(value)
want = size * (size + 1) / 2
assert bool((value == want).all()), f"rank {rank}: the sum is {value[0].item()}, want {want}"

# Ranks that share a node must have different local ranks.
places = [None] * size
dist.all_gather_object(places, (os.environ["NODE_RANK"], os.environ["LOCAL_RANK"]))
assert len(set(places)) == size, places
if rank == 0:
    print(f"performance: {want:.0f} sum")
dist.destroy_process_group()
