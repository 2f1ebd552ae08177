"""A data-parallel training in PyTorch on the CPU: two processes, gloo, one trace with both ranks.

Each rank takes half of every batch; DistributedDataParallel averages the gradients.  Variants:

    seeded            each rank draws its dropout from a seed of its own
    forgotten_seed    from the second epoch on, rank 1 draws from entropy: a worker that was started anew, and
                      seeded by nobody

The two replicas stay equal in both, so that no check of them finds the second one.  By hand:

    for i in 1 2; do REPROD_VARIANT=forgotten_seed REPROD_TRACE=run$i python3 train_ddp.py; done
    python3 ../reprod_compare.py run1 run2

names rank1/dropout/forward of the first step of the second epoch.  The process that is started is rank 0, and
starts the other one; they meet at a file."""
import os
import subprocess
import sys
import tempfile

import torch
from torch import distributed, nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import reprod_probe as probe  # noqa: E402
import reprod_ranks  # noqa: E402

RANKS, EPOCHS, STEPS, BATCH, WORDS, WIDTH = 2, 2, 3, 32, 50, 16
MEETING = "TRAIN_DDP_MEETING"  # FILE:RANK, of the other ranks
VARIANTS = ("seeded", "forgotten_seed")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.hidden, self.dropout, self.head = nn.Linear(WIDTH, WIDTH), nn.Dropout(0.25), nn.Linear(WIDTH, 2)

    def forward(self, words):
        return self.head(self.dropout(torch.tanh(self.hidden(self.words(words).mean(1)))))


def make_data(seed):
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(WORDS, (STEPS * BATCH, 8), generator=generator)
    return {"words": words, "labels": (words[:, 0] > words[:, 1]).long()}


def train(data, ranks, variant):
    probe.seed()  # the same model in all ranks
    model = probe.monitor_model(Model())
    probe.summarize_variables(model)
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    ranks.exchange()
    torch.manual_seed(probe.request().seed + ranks.number)  # another dropout in each
    for epoch in range(EPOCHS):
        if variant == "forgotten_seed" and epoch == 1 and ranks.number == 1:
            torch.seed()
        for step in range(STEPS):
            own = slice(step * BATCH + ranks.number, (step + 1) * BATCH, ranks.count)
            batch = probe.monitor({name: values[own] for name, values in data.items()}, "data")
            loss = probe.monitor(nn.functional.cross_entropy(parallel(batch["words"]), batch["labels"]), "loss")
            optimizer.zero_grad()
            loss.backward()
            ranks.exchange()
            ranks.monitor_gradients(model)
            optimizer.step()
            probe.summarize_variables(model, "after")
            ranks.step()
    return model, loss.detach()


def run(number, meeting):
    distributed.init_process_group("gloo", init_method="file://" + meeting, rank=number, world_size=RANKS)
    ranks = reprod_ranks.join()
    request = probe.request()
    torch.set_num_threads(request.threads or 1)
    if request.variant not in VARIANTS + ("default",):
        probe.unsupported("there is no variant '%s'" % request.variant)
    data = make_data(request.seed)
    for _ in probe.iterations(inputs=data, facts={"ranks": RANKS}, algorithm="DistributedDataParallel, gloo"):
        model, loss = train(data, ranks, request.variant)
        ranks.finish(model, loss)


def end(status):
    """Without destructors: that of a gloo group waits for its thread, which may wait for Python's lock, which
    the destructor holds (seen in PyTorch 2.4.1, in one of ten runs)."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


def run_all():
    """As rank 0; the other ranks stay until this one closes their standard input, in whatever way it ends."""
    with tempfile.TemporaryDirectory(prefix="train-ddp-") as folder:
        meeting = os.path.join(folder, "meeting")
        others = [subprocess.Popen([sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
                                   env={**os.environ, MEETING: "%s:%d" % (meeting, number)})
                  for number in range(1, RANKS)]
        try:
            run(0, meeting)
        except BaseException:
            for other in others:
                other.kill()
            raise
        finally:
            for other in others:
                other.stdin.close()
            statuses = [other.wait() for other in others]
        return 1 if any(statuses) else 0


def main():
    try:
        if MEETING not in os.environ:
            end(run_all())
        meeting, _, number = os.environ[MEETING].rpartition(":")
        run(int(number), meeting)
        sys.stdin.read()
    except SystemExit as stop:  # of probe.unsupported
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        end(stop.code if isinstance(stop.code, int) else 1 if stop.code else 0)
    end(0)


if __name__ == "__main__":
    main()
