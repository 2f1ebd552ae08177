"""A training whose non-determinism is PyTorch's own, on the CPU, with probes.

Points are sorted into the cells of a grid.  Two of its operations add up what has the same
index, with as many threads as there are, in whatever order these come:

    index_put        grid.index_put_((cells,), points, accumulate=True): the forward pass
    indexing         table[kinds]: its gradient adds up the rows that were looked up often

Each is a variant, with the other one done in another way; `deterministic` has both, under
torch.use_deterministic_algorithms(True).  By hand:

    REPROD_VARIANT=index_put REPROD_TRACE=a python3 voxels_pytorch.py
"""
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import reprod_probe as probe  # noqa: E402

POINTS, CELLS, KINDS, WIDTH, STEPS = 50_000, 48, 64, 8, 12


class Lookup(torch.nn.Module):
    def __init__(self, variant):
        super().__init__()
        self.by_indexing = variant != "index_put"
        self.table = torch.nn.Parameter(torch.randn(KINDS, WIDTH))

    def forward(self, kinds):
        if self.by_indexing:
            return self.table[kinds]
        return torch.nn.functional.embedding(kinds, self.table)


class Voxels(torch.nn.Module):
    def __init__(self, variant):
        super().__init__()
        self.by_index_put = variant != "indexing"

    def forward(self, points, cells):
        grid = torch.zeros(CELLS, WIDTH)
        if self.by_index_put:
            return grid.index_put_((cells,), points, accumulate=True)
        return grid.index_add(0, cells, points)


class Model(torch.nn.Module):
    def __init__(self, variant):
        super().__init__()
        self.kinds = Lookup(variant)
        self.scale = torch.nn.Linear(4, WIDTH)
        self.voxels = Voxels(variant)
        self.head = torch.nn.Sequential(torch.nn.Linear(WIDTH, 16), torch.nn.ReLU(),
                                        torch.nn.Linear(16, 1))

    def forward(self, positions, kinds, cells):
        points = self.kinds(kinds) * self.scale(positions)
        return self.head(self.voxels(points, cells) / POINTS)


def make_data(seed):
    generator = torch.Generator().manual_seed(seed)
    spread = torch.exp(4 * torch.randn(POINTS, 1, generator=generator))
    return {"positions": spread * torch.randn(POINTS, 4, generator=generator),
            "kinds": torch.randint(KINDS, (POINTS,), generator=generator),
            "cells": torch.randint(CELLS, (POINTS,), generator=generator),
            "target": torch.randn(CELLS, 1, generator=generator)}


def train(data, variant):
    probe.seed()
    model = probe.monitor_model(Model(variant))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    probe.summarize_variables(model)
    for _ in range(STEPS):
        probe.monitor(data, "data")
        output = model(data["positions"], data["kinds"], data["cells"])
        loss = torch.nn.functional.mse_loss(output, data["target"])
        probe.monitor(loss, "loss", inputs=(output, data["target"]))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        probe.summarize_variables(model, "after")
        probe.step()
    return model, loss


def main():
    variant = probe.request().variant
    if variant not in ("index_put", "indexing", "deterministic"):
        probe.unsupported("there is no variant '%s'" % variant)
    torch.use_deterministic_algorithms(variant == "deterministic")
    torch.set_num_threads(probe.request().threads or 2)
    data = make_data(probe.request().seed)
    for _ in probe.iterations(inputs=data, algorithm="PyTorch %s" % torch.__version__,
                              claim="deterministic" if variant == "deterministic" else None):
        model, loss = train(data, variant)
        probe.finish(model, loss)


if __name__ == "__main__":
    main()
