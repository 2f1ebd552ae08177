"""The training of the example: points are added up in the cells of a grid, and a model learns from these.

index_put_ adds up what has the same index in the order in which its threads come, unless PyTorch was told to be
deterministic.  TRAIN_DETERMINISTIC=0 has the training without that: the control, which has to vary."""
import os

import torch

import reprod_probe as probe

POINTS, CELLS, WIDTH, STEPS = 50_000, 48, 8, 6


class Grid(torch.nn.Module):
    def forward(self, points, cells):
        return torch.zeros(CELLS, WIDTH).index_put_((cells,), points, accumulate=True)


def use_settings():
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(os.environ.get("TRAIN_DETERMINISTIC") != "0")


def train(probe):
    """(the model, its last loss); PROBE records what is computed."""
    use_settings()
    probe.seed()
    spread = torch.exp(4 * torch.randn(POINTS, 1))
    data = {"positions": spread * torch.randn(POINTS, 4), "cells": torch.randint(CELLS, (POINTS,)),
            "target": torch.randn(CELLS, 1)}
    model = probe.monitor_model(torch.nn.ModuleDict({
        "scale": torch.nn.Linear(4, WIDTH), "grid": Grid(), "head": torch.nn.Linear(WIDTH, 1)}))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    probe.summarize_variables(model)
    for _ in range(STEPS):
        probe.monitor(data, "data")
        output = model["head"](model["grid"](model["scale"](data["positions"]), data["cells"]) / POINTS)
        loss = probe.monitor(torch.nn.functional.mse_loss(output, data["target"]), "loss", inputs=(output, data["target"]))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        probe.summarize_variables(model, "after")
        probe.step()
    return model, loss


if __name__ == "__main__":
    for _ in probe.iterations(algorithm="PyTorch " + torch.__version__):
        probe.finish(*train(probe))
