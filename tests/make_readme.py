#!/usr/bin/env python3
"""Runs the commands of README.md's console blocks against a service and prints the README
with their real output in place.  Usage: make_readme.py http://127.0.0.1:7357 < README.md

A block is fenced as ```console; lines that start with "$ " are commands, the rest is what
they printed.  Long lines are cut with an ellipsis.
"""
import os
import subprocess
import sys

WIDTH = 150
DEFAULT = "127.0.0.1:7357"


def blocks(text):
    """(text before, [lines of the block]) in order, the last with an empty block."""
    before, inside, block = [], False, []
    for line in text.splitlines():
        if line == "```console":
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
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    if keeps:
        environment[name] = done.stdout.strip()
        return done.returncode, ""
    return done.returncode, done.stdout.replace(address, DEFAULT)


def main():
    address = sys.argv[1].split("//")[-1].rstrip("/")
    environment = {}
    for before, block in blocks(sys.stdin.read()):
        for line in before:
            print(line)
        if not block:
            continue
        print("```console")
        for command, _ in commands(block):
            code, output = run(command, address, environment)
            if code != 0:
                raise SystemExit(f"{command}: exit status {code}\n{output}")
            print(f"$ {command}")
            for line in output.splitlines():
                print(line if len(line) <= WIDTH else line[:WIDTH - 1] + "…")
        print("```")


if __name__ == "__main__":
    main()
