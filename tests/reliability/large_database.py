#!/usr/bin/env python3
"""How long a large database takes to check (results/large.json): made by the store's own functions
(bench-ingest), then checked in full, again, again after some cells changed, and by the service itself.

    large_database.py [--runs 2000000] [--cells 2000] [--folder FOLDER]

FOLDER is a data folder whose database was made so before; it is changed.  Figures are of this machine; what
must hold however fast it is, is asserted: each check finds nothing, and compares what it should.
"""
import argparse
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

from results import FOLDER, ROOT, machine, write_result

sys.path.insert(0, str(ROOT / "tests" / "system"))
from service import BUILD, Service  # noqa: E402

NOBODY = {"hosts": [{"name": "nobody", "launch": ["/bin/false"]}], "survey": False}
LOOKED = re.compile(r"fsck: .* recomputed, ")
RECOMPUTED = re.compile(r"^(\d+) cells recomputed from their runs, 0 differ", re.M)


def timed(command):
    """(seconds, of the processor, MB at most, what it printed)"""
    with tempfile.TemporaryFile("w+") as out:
        begun = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        printed = out.read()
    if process.returncode != 0:
        raise SystemExit(f"{command}: exit status {process.returncode}: {printed}")
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, printed


def fsck(what, data, *options):
    seconds, processor, megabytes, printed = timed([BUILD / "reprod", "fsck", *options, "--data", data])
    found = {"check": what, "seconds": round(seconds, 1), "processor_seconds": round(processor, 1),
             "megabytes": round(megabytes), "cells_recomputed": int(RECOMPUTED.search(printed).group(1)), "load": round(os.getloadavg()[0], 1)}
    print(found, flush=True)
    return found


def change_cells(data, part):
    """As if each PARTth cell had a further run: fsck has to sum it up again."""
    with sqlite3.connect(data / "reprod.db") as db:
        changed = db.execute("UPDATE cell_changes SET changes = changes + 1 WHERE cell % ? = 0", (part,)).rowcount
    db.close()
    return changed


def look(folder):
    """The service's own, at its start: of a copy of the database, which becomes a backup."""
    service = Service(folder, config=NOBODY, options=["--no-survey"])
    before = len(service.log.read_text()) if service.log.exists() else 0
    begun = time.monotonic()
    service.start(ready=False)
    try:
        while not LOOKED.search(said := service.log.read_text()[before:]):
            time.sleep(0.2)
            if service.process.poll() is not None:
                raise SystemExit(said)
        seconds = time.monotonic() - begun
    finally:
        service.stop()
    found = {"check": "the service's own look, at its start", "seconds": round(seconds, 1),
             "load": round(os.getloadavg()[0], 1)}
    print(found, [line for line in said.splitlines() if "fsck: " in line], flush=True)
    return found


def measure(data, cells):
    with sqlite3.connect(data / "reprod.db") as db:
        runs = db.execute("SELECT count(*) FROM run WHERE outcome = 'completed'").fetchone()[0]
    db.close()
    checks = [fsck("everything (--full)", data, "--full"), fsck("again, nothing changed", data)]
    changed = change_cells(data, 100)
    checks += [fsck("again, one cell of a hundred changed", data), look(data.parent)]
    expected = [cells, 0, changed]
    failures = [f"{check['check']}: {check['cells_recomputed']} cells were recomputed, not {count}"
                for check, count in zip(checks, expected) if check["cells_recomputed"] != count]
    return {"runs": runs, "cells": cells, "megabytes": round((data / "reprod.db").stat().st_size / 1e6),
            "checks": checks, "failures": failures}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000000)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--result", type=pathlib.Path, default=FOLDER / "large.json")
    options = parser.parse_args()
    begun = machine("make large-database")
    with tempfile.TemporaryDirectory() as folder:
        data = options.folder or pathlib.Path(folder) / "data"
        if not options.folder:
            data.mkdir()
            timed([BUILD / "tests/bench-ingest", "whole", data, str(options.runs), str(options.cells)])
        found = measure(data, options.cells)
        shutil.rmtree(data / "backups", ignore_errors=True)
    write_result(options.result, {**begun, **found})
    return bool(found["failures"])


if __name__ == "__main__":
    sys.exit(main())
