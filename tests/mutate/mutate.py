#!/usr/bin/env python3
"""Tries the tests of what judges: plants one small change at a time into the sources of
verdicts, solutions, cells, schedules, digests and sums, and asks whether a unit test fails.

    make mutate                      a sample of each file, and what an audit planted
    make mutate MUTANTS=all          every mutant; MUTANTS=N: N of each file; 0: only the planted
    make mutate FILES="db/cells.c"   these files only

planted.json has changes that an audit made by hand and no test noticed then: {"file", "was",
"becomes", "note", "noticed_by"}, with "tests" where those of the file do not watch it; the test
in "noticed_by" is tried first.  survivors.json has those that no test notices today, each with
the reason why none has to, or why none can; "was" and "becomes" are whole lines there.  Exit status 1: less than 95 % were noticed, a survivor is not
listed, or a planted change was not noticed.
"""
import argparse
import collections
import concurrent.futures
import glob
import itertools
import json
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from campaign import Campaign  # noqa: E402
from mutants import Mutant, mutants_of  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ENOUGH = 0.95
PROGRESS_S = 20
# What judges, and the tests that must notice, as patterns below tests/unit/.
STORE = "db/test_cells* db/test_runs* db/test_matrix db/test_jobs db/test_store"
JUDGES = {
    "daemon/evidence/verdict.c": "evidence/test_verdict evidence/test_verdict_bound db/test_cells "
                                 "db/test_cells_checks",
    "daemon/evidence/solution.c": "evidence/test_solution evidence/test_matrix",
    "daemon/evidence/profile.c": "evidence/test_*",
    "daemon/evidence/profile_rows.c": "evidence/test_*",
    "daemon/evidence/profile_set.c": "evidence/test_*",
    "daemon/evidence/recipe.c": "evidence/test_* config/test_*",
    "daemon/evidence/relation.c": "evidence/test_* render/test_*",
    "daemon/evidence/matrix.c": "evidence/test_* render/test_matrix_shown",
    "daemon/evidence/matrix_count.c": "evidence/test_matrix* render/test_matrix_shown",
    "daemon/evidence/subject.c": "evidence/test_* db/test_migrate render/test_*",
    "daemon/evidence/changes.c": "evidence/test_changes",
    "daemon/evidence/classes.c": "evidence/test_classes",
    "daemon/evidence/drift.c": "evidence/test_drift evidence/test_drift_compare",
    "daemon/evidence/drift_compare.c": "evidence/test_drift_compare",
    "daemon/evidence/drift_list.c": "evidence/test_drift evidence/test_drift_compare",
    "daemon/evidence/facts.c": "evidence/test_facts",
    "daemon/evidence/times.c": "evidence/test_times db/test_cells_sums",
    "daemon/evidence/executed.c": "evidence/test_executed",
    "daemon/evidence/verified.c": "evidence/test_verified",
    "daemon/jobs/case.c": "jobs/test_case jobs/test_scheduler jobs/test_scheduler_eta "
                          "jobs/test_scheduler_challenges evidence/test_matrix",
    "daemon/jobs/check.c": "db/test_cells_checks run/test_run_judge*",
    "daemon/jobs/options.c": "jobs/test_options jobs/test_expand* jobs/test_request_refused",
    "daemon/jobs/scheduler.c": "jobs/test_scheduler jobs/test_scheduler_eta "
                               "jobs/test_scheduler_challenges",
    "daemon/jobs/scheduler_open.c": "jobs/test_scheduler_eta jobs/test_scheduler "
                                    "jobs/test_scheduler_challenges",
    "daemon/run/run_judge.c": "run/test_run_judge*",
    "daemon/run/run_judge_finish.c": "run/test_run_judge*",
    "db/case_keys.c": STORE,
    "db/cells.c": STORE,
    "db/cells_count.c": STORE,
    "db/cells_fold.c": STORE,
    "db/cells_judge.c": STORE,
    "db/dissent/settle.c": "db/test_settle db/test_more_runs",
    "db/upkeep/recompute.c": "db/test_cells*",
    "db/upkeep/recompute_sums.c": "db/test_cells*",
    "db/cells_rows.c": STORE,
    "db/matrix.c": "db/test_matrix db/test_cells*",
    "db/migrations/0015-varied.sql": "db/test_migrat*",
    "db/migrations/0016-checks.sql": "db/test_migrat*",
    "db/migrations/0017-departures.sql": "db/test_migrat*",
    "db/migrations/0018-checked-digests.sql": "db/test_migrat*",
    "db/migrations/0019-two-digests.sql": "db/test_migrat*",
    "db/runs_finish.c": STORE,
    "workloads/instruments/digest.c": "instruments/test_digest",
    "workloads/instruments/digest_parallel.c": "instruments/test_digest",
    "workloads/instruments/exact_sum.c": "instruments/test_exact_sum",
    "workloads/instruments/exact_sum_bins.c": "instruments/test_exact_sum_bins",
}


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def listed(name):
    return json.loads(read(os.path.join(HERE, name)))


def tests_of(patterns):
    """The tests that PATTERNS name, in that order, each once."""
    found = [name for pattern in patterns.split()
             for name in sorted(glob.glob("tests/unit/%s.c" % pattern))]
    return [name[len("tests/unit/"):-len(".c")] for name in dict.fromkeys(found)]


def lines_of(text, mutant):
    """The lines that MUTANT changes, before and after, without their indentation."""
    first = text.rfind("\n", 0, mutant.start) + 1
    last = text.find("\n", mutant.end)
    last = len(text) if last < 0 else last
    after = text[first:mutant.start] + mutant.replacement + text[mutant.end:last]
    return tuple(" ".join(part.split()) for part in (text[first:last], after))


def planted(files, texts, tests, first):
    """The mutants of planted.json, whose files join TEXTS and TESTS; of FILES only, if any.
    FIRST gets the test that noticed each, which is tried first."""
    for entry in listed("planted.json"):
        path, was = entry["file"], entry["was"]
        if files and path not in files:
            continue
        text = texts.setdefault(path, read(path))
        tests[path] = tests_of(entry.get("tests") or JUDGES[path])
        if text.count(was) != 1:
            sys.exit("planted.json: %s has %d times: %s" % (path, text.count(was), was))
        start = text.index(was)
        mutant = Mutant(path, start, start + len(was), entry["becomes"])
        first[mutant] = entry["noticed_by"]
        yield mutant


def chosen(files, number, texts, tests):
    """The mutants of FILES, or NUMBER of each."""
    for path in files:
        text = read(path)
        all_of = mutants_of(path, text)
        # The same sample every time, and a smaller one is a part of a larger one.
        sample = random.Random(path).sample(all_of, len(all_of))
        mutants = all_of if number == "all" else sorted(sample[:int(number)])
        if mutants:
            texts[path], tests[path] = text, tests_of(JUDGES.get(path, STORE))
        yield from mutants


class Report:
    """Says at once what survived, and at the end how many."""

    def __init__(self, texts, by_hand, mutants):
        self.texts, self.by_hand, self.mutants = texts, by_hand, mutants
        self.reasons = {(e["file"], e["was"], e["becomes"]): e["reason"]
                        for e in listed("survivors.json")}
        self.counts = collections.defaultdict(collections.Counter)
        self.unlisted = self.missed = self.done = 0
        self.told = time.monotonic()

    def add(self, result):
        mutant = result.mutant
        self.done += 1
        self.counts[mutant.path][result.outcome] += 1
        if mutant in self.by_hand and result.outcome != "noticed":
            self.missed += 1
        if result.outcome == "survived" or mutant in self.by_hand and result.outcome == "none":
            self.tell(mutant)
        if time.monotonic() - self.told > PROGRESS_S:
            self.told = time.monotonic()
            print("%d of %d" % (self.done, self.mutants), file=sys.stderr, flush=True)

    def tell(self, mutant):
        text = self.texts[mutant.path]
        was, becomes = lines_of(text, mutant)
        reason = self.reasons.get((mutant.path, was, becomes))
        self.unlisted += reason is None and mutant not in self.by_hand
        print("survived: %s:%d%s\n  - %s\n  + %s\n  %s" % (
            mutant.path, text.count("\n", 0, mutant.start) + 1,
            " (planted)" if mutant in self.by_hand else "", was, becomes,
            reason or "not in survivors.json"), flush=True)

    def end(self):
        """Prints the counts; whether all is well."""
        total = collections.Counter()
        print("%-42s %8s %8s %8s" % ("", "mutants", "noticed", "survived"))
        for path, counts in sorted(self.counts.items()):
            total.update(counts)
            print("%-42s %8d %8d %8d" % (path, counts["noticed"] + counts["survived"],
                                         counts["noticed"], counts["survived"]))
        tried = total["noticed"] + total["survived"]
        share = total["noticed"] / tried if tried else 1
        print("%d of %d mutants noticed: %.1f %%; %d survivors without a reason; "
              "%d of %d planted by hand missed" % (total["noticed"], tried, 100 * share,
                                                   self.unlisted, self.missed, len(self.by_hand)))
        return share >= ENOUGH and not self.unlisted and not self.missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--mutants", default="25")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as Ctrl-C does: what lies in memory goes
    texts, tests, first = {}, {}, {}
    mutants = list(chosen(arguments.files or JUDGES, arguments.mutants, texts, tests))
    by_hand = list(planted(arguments.files, texts, tests, first))
    tried = by_hand + [m for m in mutants if m not in by_hand]
    report = Report(texts, by_hand, len(tried))
    campaign = Campaign(arguments.build, texts, tests, first)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        def each(work, things):
            return pool.map(lambda thing: campaign.in_folder(work, thing), things)
        try:
            for wrong in itertools.chain(
                    each(campaign.compile_unchanged, texts),
                    each(campaign.check_unchanged, sorted(set(itertools.chain(*tests.values()))))):
                if wrong:
                    sys.exit(wrong)
            for result in each(campaign.try_one, tried):
                report.add(result)
        finally:
            pool.shutdown(cancel_futures=True)
            campaign.close()
    sys.exit(0 if report.end() else 1)


if __name__ == "__main__":
    main()
