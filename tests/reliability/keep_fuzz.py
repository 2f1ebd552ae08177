#!/usr/bin/env python3
"""Keeps what `make fuzz` printed (tests/fuzz/run.sh: TARGET CODE RUNS EDGES SECONDS, tab-separated lines):
keep_fuzz.py FILE."""
import sys

from results import FOLDER, machine, write_result

with open(sys.argv[1], encoding="utf-8") as lines:
    rows = [line.rstrip("\n").split("\t") for line in lines]
write_result(FOLDER / "fuzz.json", {
    **machine("make fuzz"),
    "targets": [{"target": target, "passed": code == "0", "runs": int(runs or 0), "edges": int(edges or 0),
                 "seconds": int(seconds)} for target, code, runs, edges, seconds in rows]})
