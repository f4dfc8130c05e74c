"""allreduce_gloo.py BYTES SECONDS: torch.distributed.all_reduce over gloo by two processes, timed as `tandem bench
allreduce` times its sums: both begin together, the slower one's time counts, the median is printed.
"""
import os
import socket
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

ROUNDS, WARM_UPS = 2000, 3


def work(rank, port, size, limit):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    values = torch.arange(size // 4) * 1e-30
    going, slowest, seconds = torch.ones(1), torch.zeros(1, dtype=torch.float64), []
    began = time.monotonic()
    for i in range(ROUNDS + WARM_UPS):
        dist.barrier()
        start = time.monotonic()
        dist.all_reduce(values)
        slowest[0] = time.monotonic() - start
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        if i >= WARM_UPS:
            seconds.append(slowest.item())
        going[0] = not seconds or time.monotonic() - began < limit
        dist.broadcast(going, 0)
        if not going:
            break
    if rank == 0:
        print(f'{{"rounds": {len(seconds)}, "milliseconds": {1e3 * statistics.median(seconds):.6f}}}')
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        free = chosen.getsockname()[1]
    torch.multiprocessing.spawn(work, (free, int(sys.argv[1]), float(sys.argv[2])), nprocs=2)
