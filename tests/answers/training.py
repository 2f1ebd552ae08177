"""A training to be localised.  Its control gives other bits in every process, but the same ones
whenever the same jobs run again: it counts its processes in a file."""
import array
import os
import pathlib
import sys

sys.path.insert(0, sys.argv[1])
import reprod_probe as probe  # noqa: E402


def count():
    """How many processes there were in this folder, with this one."""
    path = pathlib.Path("count")
    number = 1 + (int(path.read_text()) if path.exists() else 0)
    path.write_text(str(number))
    return number


def main():
    process = count()
    print(f"process {process}")
    for i, _ in enumerate(probe.iterations(inputs={"x": array.array("f", range(8))})):
        moved = process / 1024 if os.environ["REPROD_VARIANT"] == "counted" else 0
        moved += i / 8 if moved and "--epochs" in sys.argv else 0  # in every iteration, too
        values = array.array("f", range(8))
        for step in range(4):
            scaled = array.array("f", [value * 0.5 for value in values])
            probe.monitor(scaled, "scale", inputs=[values])
            mixed = array.array("f", scaled)
            mixed[5] += moved if step == 2 else 0
            probe.monitor(mixed, "mix", inputs=[scaled])
            values = mixed
            probe.step()
        probe.finish(values, sum(values))


if __name__ == "__main__":
    main()
