#!/usr/bin/env python3
"""Shows whether two builds behave in the same way: a change of the code changed nothing else.

    tests/answers/compare.py OLD_BUILD NEW_BUILD [--texts] [--folder FOLDER] [--selftest FILE]

First, the old build records a folder of data with jobs of every kind.  Both serve copies of it and
are asked everything that their description names, right and wrong, in every format.
Second, both run the same jobs with workers that always say the same.  What is stored is compared,
and what the programs print, find and refuse.  The new build goes on with the old build's data.

Both use the old build's workers, so that environments and catalogues are equal.  Everything that
differs is a defect, except what masks.py lists: that must differ.  Three kinds are distinguished.
A sentence that says the same facts (numbers, names in quotes, ids, paths) in other words does not
count, nor does a file of the page: --texts prints them.  A schema that differs does count.

Exit status: 0 equal, 1 not, 2 wrong arguments.  It takes a minute or two.
"""
import argparse
import datetime
import http.client
import pathlib
import signal
import sqlite3
import sys
import tempfile
import time

sys.dont_write_bytecode = True

import answers  # noqa: E402
import programs  # noqa: E402
import record  # noqa: E402
import rows  # noqa: E402
import starts  # noqa: E402
from daemons import running  # noqa: E402
from differences import DEFECT, PAGE, SCHEMA, SENTENCE, Differences  # noqa: E402

SELFTEST = "tests/reprod-worker-selftest"


def now():
    """As an answer spells it, and before everything that begins now."""
    time.sleep(0.01)
    text = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text[:-3] + "Z"


def compare_answers(builds, folder, selftest, differences):
    recorded = record.record(folder / "recorded", builds[0], selftest)
    start = now()
    old, new = (recorded.copy_to(build, folder / f"served-{name}").start()
                for build, name in zip(builds, ("old", "new")))
    answers.compare(old, new, start, differences)
    old.stop()
    new.stop()
    programs.compare_databases("what was asked for changed the data", old.data, new.data,
                               differences)
    starts.compare_unready(builds, folder, start, differences)
    starts.compare_hosts(builds, folder, differences)
    starts.compare_surveys(builds, folder, differences)


def compare_rows(builds, folder, selftest, differences):
    workers = builds[0], selftest
    daemons = rows.compare(builds, folder, workers, differences)
    programs.compare_lines(builds, folder, differences)
    programs.compare_workers(builds, differences)
    programs.compare_checks(builds, folder, daemons, differences)
    programs.compare_continued(builds, folder, daemons[0], workers, differences)


def report(differences, texts, seconds):
    """Prints it; the exit status."""
    for line in differences.lines(DEFECT, SCHEMA, *((SENTENCE, PAGE) if texts else ())):
        print(line)
    compared = ", ".join(f"{number} {what}" for what, number in differences.compared.items())
    defects, schema = differences.count(DEFECT), differences.count(SCHEMA)
    different = f"{defects} defects, {schema} differences of the schema"
    print(f"{compared}: {different if defects + schema else 'equal'} ({seconds:.0f} s)")
    if differences.count(SENTENCE, PAGE):
        print(f"{differences.count(SENTENCE)} sentences and {differences.count(PAGE)} answers with "
              f"files of the page differ{'' if texts else ' (--texts prints them)'}")
    return 1 if defects + schema else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds", nargs=2, type=pathlib.Path, metavar="BUILD",
                        help="the old one, then the new one")
    parser.add_argument("--texts", action="store_true", help="print sentences that differ, too")
    parser.add_argument("--folder", type=pathlib.Path, help="leave the data in this new folder")
    parser.add_argument("--selftest", type=pathlib.Path,
                        help=f"the self-test worker of both, if OLD_BUILD has no {SELFTEST}")
    options = parser.parse_args()
    builds = [build.resolve() for build in options.builds]
    selftest = (options.selftest or builds[0] / SELFTEST).resolve()
    for path in (*(build / "reprod" for build in builds), selftest):
        if not path.exists():
            parser.error(f"there is no {path}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # and no daemon is left
    began, differences = time.monotonic(), Differences()
    with tempfile.TemporaryDirectory(prefix="answers-") as folder:
        folder = options.folder.resolve() if options.folder else pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for part in compare_answers, compare_rows:
            try:
                part(builds, folder, selftest, differences)
            except (RuntimeError, OSError, http.client.HTTPException, sqlite3.Error) as error:
                differences.add(DEFECT, part.__name__, f"it cannot go on: {error!r}")
            finally:
                for daemon in list(running):
                    daemon.kill()
    return report(differences, options.texts, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
