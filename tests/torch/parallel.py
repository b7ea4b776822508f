"""Two processes: DistributedDataParallel and fully_shard with gloo have the gradients of one process with both halves of the batch."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from oracle import ghc, text
from package import check, distance, emitted, finish, randomised
from torch import nn

D = 48
block, shape, _, _, E = ghc(D, 2, 3)


def net():
    import parallel_net as package

    torch.manual_seed(0)
    layers = package.Connections([nn.Linear(D, D) for _ in package.paths()])
    return nn.Sequential(randomised(layers), nn.Linear(D, 3))


def batch():
    return torch.randn(4, 6, E, generator=torch.Generator().manual_seed(1))


def work(rank, port, kind, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    n = net()
    if kind == "ddp":
        n = nn.parallel.DistributedDataParallel(n)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        n = fully_shard(n, mesh=init_device_mesh("cpu", (2,)))
    loss = n(batch()[2 * rank : 2 * rank + 2]).square().mean()
    loss.backward()
    grads = [p.grad.full_tensor() if kind == "fsdp" else p.grad for p in n.parameters()]
    if rank == 0:
        torch.save([g.clone() for g in grads], out)
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    emitted("parallel_net", text(block, D, E), "--node", "*")
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ.get("PYTHONPATH", ""), os.path.abspath("parallel_net.torch")])
    one = net()
    one(batch()).square().mean().backward()
    right = [p.grad for p in one.parameters()]
    for kind in ("ddp", "fsdp"):
        mp.spawn(work, args=(free_port(), kind, f"{kind}.pt"), nprocs=2)
        for (name, _), a, b in zip(one.named_parameters(), torch.load(f"{kind}.pt"), right):
            check(f"{kind}: {name}", distance(a, b) < 2e-6, f"({distance(a, b):.1e})")
    finish()
