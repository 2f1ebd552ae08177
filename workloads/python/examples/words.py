"""Sums over sets of texts, in the order of their hashes: Python's own non-determinism.

PYTHONHASHSEED decides the order; where it is not set, each process has another one."""
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import reprod_probe as probe  # noqa: E402

WORDS, BATCH, STEPS = 2000, 300, 10


def total_of(words, worth):
    total = 0.0
    for word in set(words):
        total += worth[word]
    return total


def main():
    generator = random.Random(probe.seed())
    worth = {"w%d" % i: generator.gauss(0, 1) * 10 ** generator.uniform(-6, 6)
             for i in range(WORDS)}
    for _ in probe.iterations(inputs=worth, algorithm="iteration over a set"):
        generator.seed(probe.request().seed)
        weight = 0.0
        for _ in range(STEPS):
            batch = probe.monitor(generator.sample(sorted(worth), BATCH), "data/batch")
            total = probe.monitor(total_of(batch, worth), "total", inputs=batch)
            gradient = probe.monitor(total / BATCH, "gradient/weight", inputs=total)
            weight -= 1e-3 * gradient
            probe.monitor(weight, "variable/weight/after")
            probe.step()
        probe.finish(weight, loss=total)


if __name__ == "__main__":
    main()
