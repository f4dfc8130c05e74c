"""compute_ddp.py MODEL train BATCH IMAGE [--tuned]: as compute_torch.py, by --threads processes of one
thread each that share the batch (DistributedDataParallel over gloo). Memory is the processes' sum.
"""
import os
import socket

from measure import arguments, peak_mib, rates, report

OPTIONS = arguments(__doc__, ("--nhwc", {"action": "store_true", "help": "torch.channels_last"}))

import torch  # noqa: E402: after the program was started again
import torch.distributed  # noqa: E402

import networks  # noqa: E402


def free_port():
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return chosen.getsockname()[1]


def work(rank, world, port, answers):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = networks.build(OPTIONS.model, OPTIONS.classes)
    images = OPTIONS.batch // world
    x = torch.randn(images, networks.input_channels(OPTIONS.model), OPTIONS.image, OPTIONS.image)
    if OPTIONS.nhwc:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    labels = torch.randint(OPTIONS.classes, (images,))
    model = torch.nn.parallel.DistributedDataParallel(model.train())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    going = torch.ones(1)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    def common_step():
        """The first process decides when to stop; all take the same number of steps."""
        torch.distributed.broadcast(going, 0)
        step()

    if rank == 0:
        found = rates(common_step, OPTIONS.batch, OPTIONS.seconds)
        going.zero_()
        torch.distributed.broadcast(going, 0)
        answers.put((peak_mib(), found))
    else:
        while True:
            torch.distributed.broadcast(going, 0)
            if not going:
                break
            step()
        answers.put((peak_mib(), None))
    torch.distributed.destroy_process_group()


def main():
    world = OPTIONS.threads
    if OPTIONS.mode != "train" or OPTIONS.batch % world:
        raise SystemExit("compute_ddp.py trains, and its batch is a multiple of its processes")
    context = torch.multiprocessing.get_context("spawn")
    answers, port = context.SimpleQueue(), free_port()
    processes = [context.Process(target=work, args=(rank, world, port, answers)) for rank in range(world)]
    for process in processes:
        process.start()
    got = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    found, for_processor = next(measured for _, measured in got if measured)
    found = found, for_processor / world  # the others took as much
    report(f"PyTorch {torch.__version__} DDP, {world} processes", OPTIONS, found, sum(mib for mib, _ in got))


if __name__ == "__main__":
    main()
