#!/usr/bin/env python3
"""Runs the commands of README.md's console blocks against a service and prints the README
with their real output in place.
Usage: make_readme.py http://127.0.0.1:7357 [--gpu http://127.0.0.1:7358] [--fleet] < README.md

A block is fenced as ```console; lines that start with "$ " are commands, the rest is what
they printed.  Long lines are cut with an ellipsis.  Blocks fenced as ```console gpu ask the
service that --gpu names, which serves a database of a machine with a GPU, and stay as they
are without it.  Those fenced as ```console fleet ask a service with the fleet of
tests/fleets, one device of which is wrong; it is started for them with --fleet.
"""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

WIDTH = 150
DEFAULT = "127.0.0.1:7357"


def blocks(text, fence="```console"):
    """(text before, [lines of the block]) of the blocks with that FENCE, in order, the last
    with an empty block."""
    before, inside, block = [], False, []
    for line in text.splitlines():
        if line == fence:
            inside = True
        elif inside and line == "```":
            yield before, block
            before, block, inside = [], [], False
        elif inside:
            block.append(line)
        else:
            before.append(line)
    yield before, block


def commands(block):
    """[(command, [printed lines])]"""
    found = []
    for line in block:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def run(command, address, environment):
    """Runs a command line; `name=$(…)` keeps its value for the following ones."""
    script = command.replace(DEFAULT, address)
    name = script.split("=", 1)[0]
    keeps = "=$(" in script and name.isidentifier()
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {script}" + (f"; echo ${name}" if keeps else "")],
                          capture_output=True, text=True, timeout=600,
                          env={**os.environ, **environment})
    if keeps:
        environment[name] = done.stdout.strip()
        return done.returncode, ""
    return done.returncode, done.stdout.replace(address, DEFAULT)


def rewritten(text, fence, address):
    """TEXT with the output of ADDRESS in its blocks with that FENCE."""
    environment, lines = {}, []
    for before, block in blocks(text, fence):
        lines += before
        if not block:
            continue
        lines.append(fence)
        for command, _ in commands(block):
            code, output = run(command, address, environment)
            if code != 0:
                raise SystemExit(f"{command}: exit status {code}\n{output}")
            lines.append(f"$ {command}")
            lines += [line if len(line) <= WIDTH else line[:WIDTH - 1] + "…"
                      for line in output.splitlines()]
        lines.append("```")
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def fleet():
    """The address of a service with eight devices, one of which is wrong by 1e-12."""
    for name in "system", "fleets":
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / name))
    from fleet_sim import Fleet
    from service import Service
    with tempfile.TemporaryDirectory() as folder:
        config = Fleet(folder, hosts=2, devices=4, wrong={"GPU-03": {}}).config()
        service = Service(folder, options=["--no-survey"], config=config).start()
        try:
            service.wait(lambda: sum(d["online"] for d in service.get("/v1/devices")["items"]) == 8, "its devices")
            yield f"127.0.0.1:{service.port}"
        finally:
            service.stop()


def bare(address):
    return address.split("//")[-1].rstrip("/")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--gpu", help="the service with the database of a GPU")
    parser.add_argument("--fleet", action="store_true", help="start the fleet, and ask it")
    options = parser.parse_args()
    text = rewritten(sys.stdin.read(), "```console", bare(options.address))
    if options.fleet:
        with fleet() as address:
            text = rewritten(text, "```console fleet", address)
    if options.gpu:
        text = rewritten(text, "```console gpu", bare(options.gpu))
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
