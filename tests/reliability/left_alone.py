#!/usr/bin/env python3
"""Leaves a service alone for some real minutes and keeps what background evidence did (results/alone.json): how
bounds fell, how old the oldest measurement was, what it took of its budget, and how jobs fared that came meanwhile.

    left_alone.py [--minutes 10] [--screenshots FOLDER]

A browser, where there is one, has the page open all the time, and what it shows has to follow.  It asserts what must hold however fast the machine is, and reports the figures.
"""
import argparse
import datetime
import importlib.util
import math
import pathlib
import sqlite3
import sys
import tempfile
import time

from results import FOLDER, ROOT, machine, write_result

sys.path.insert(0, str(ROOT / "tests" / "system"))
sys.path.insert(0, str(ROOT / "tests" / "web"))
import page  # noqa: E402
from service import Service  # noqa: E402

WORKLOADS = ["reduce_sum", "bias_add_bwd", "segment_sum", "cumsum"]
BUDGET = {"budget_percent": 20, "target_percent": 5, "target_days": 1, "every_seconds": 5}
CELLS = """SELECT c.completed, c.last_completed_ms, c.vouched_ms, c.verdict FROM cell c JOIN case_key k
           ON k.number = c.case_key WHERE NOT k.is_control AND NOT k.challenge
           AND c.verdict IN ('reproducible', 'inconclusive') AND c.distinct_digests = 1"""


def bound(runs):
    """Of the probability that a run differs, in percent (95 %), after RUNS that agreed."""
    return 100 * (1 - 0.05 ** (1 / (runs - 1))) if runs > 1 else 100.0


def instant(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def look(service, begun):
    with sqlite3.connect(f"file:{service.data}/reprod.db?mode=ro", uri=True) as db:
        cells = db.execute(CELLS).fetchall()
    device = (service.get("/v1/background")["items"] or [{"spent_seconds": 0, "saved_seconds": 0, "share_percent": 0}])[0]
    now = time.time()
    return {"minute": round((now - begun) / 60, 1), "cells": len(cells),
            "green": sum(verdict == "reproducible" for *_, verdict in cells),
            "weakest_bound_percent": math.ceil(100 * max(bound(runs) for runs, *_ in cells)) / 100,
            "below_target": sum(bound(runs) < BUDGET["target_percent"] for runs, *_ in cells),
            "oldest_seconds": round(max(now - last / 1000 for _, last, *_ in cells)),
            "spent_seconds": round(device["spent_seconds"], 1), "share_percent": round(device["share_percent"], 1)}


def interrupt(service):
    """A job that somebody requests: how many runs began between it and its first one, and how long that took."""
    job = service.post_job(workloads=WORKLOADS[:1], variants=["ordered"], runs=1, iterations=5)
    service.finish_job(job)
    created = service.get(f"/v1/jobs/{job}")["created_at"]
    runs = [run for run in reversed(service.items("/v1/runs")) if run["started_at"] and run["started_at"] > created]
    before = [run for run in runs if run["job"] != job][:[run["job"] for run in runs].index(job)]
    mine = next(run for run in runs if run["job"] == job)
    return {"runs_before": len(before), "waited_ms": round(1000 * (instant(mine["started_at"]) - instant(created)))}


def open_browser(service):
    """With the page of SERVICE, which is not read anew from now on; None: there is no browser."""
    spec = importlib.util.spec_from_file_location("web_conftest", ROOT / "tests" / "web" / "conftest.py")
    web = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(web)
    try:
        browser = web.start_browser()
    except BaseException as error:  # pytest's skip, which says what is missing
        print(f"no page is watched: {error}", flush=True)
        return None
    browser.set_window_size(1280, 3000)
    page.open_page(browser, f"http://127.0.0.1:{service.port}")
    return browser


def shown(browser):
    """What the page says by now: the weakest bound of its facts (percent), and its words on background evidence."""
    bounds = page.all_of(browser, "#facts td[data-name='A run differs']", "each.innerText")
    return {"weakest_bound_percent": max(float(text.strip("< %")) for text in bounds if text.startswith("<")),
            "background": page.text(browser, "#background")}


def follow(browser, service):
    """What the page shows once its weakest bound is that of the service at the time."""
    def agrees():
        [device] = service.get("/v1/background")["items"]
        facts = [fact["difference_probability_upper_bound"] for fact in service.get("/v1/matrix")["variants"]
                 if fact["verdict"] == "reproducible"]
        now = shown(browser)
        words = f"{device['below_target']} of {device['cells']} bounds are"
        return now if abs(now["weakest_bound_percent"] - 100 * max(facts)) < 1 and words in now["background"] else None
    return page.wait_for("the page to show the bounds", agrees)


def measure(minutes, folder, screenshots=None):
    service = Service(folder, config={"background": BUDGET, "survey": False}).start()
    service.finish_job(service.post_job(workloads=WORKLOADS, runs=3, iterations=5))
    browser = open_browser(service)
    begun = time.time()
    looks, jobs, failures, pages = [look(service, begun)], [], [], []
    while time.time() - begun < 60 * minutes:
        time.sleep(max(0, min(60, begun + 60 * minutes - time.time())))
        jobs.append(interrupt(service))
        looks.append(look(service, begun))
        if browser:
            pages.append(follow(browser, service))
            if screenshots:
                browser.save_screenshot(str(screenshots / f"minute-{len(pages):02}.png"))
        print(looks[-1], jobs[-1], pages[-1:], flush=True)
    device = service.get("/v1/background")["items"][0]
    passed = time.time() - instant(device["since"])
    allowed = BUDGET["budget_percent"] / 100 * passed
    if device["spent_seconds"] + device["saved_seconds"] > allowed + 0.1:
        failures.append(f"{device['spent_seconds']} s were spent where {allowed:.1f} s were allowed")
    if looks[-1]["weakest_bound_percent"] >= looks[0]["weakest_bound_percent"]:
        failures.append("the weakest bound did not fall")
    if pages and pages[-1]["weakest_bound_percent"] >= pages[0]["weakest_bound_percent"]:
        failures.append("the page did not show that the weakest bound fell")
    if browser:
        failures += [f"the page complained: {each}" for each in page.console_errors(browser)]
        browser.quit()
    failures += [f"{each['runs_before']} runs began before a job that was requested" for each in jobs
                 if each["runs_before"] > 1]
    if service.stop() != 0 or service.fsck()[0] != 0:
        failures.append("the service did not end well, or fsck found something")
    return {"minutes": minutes, **BUDGET, "workloads": WORKLOADS, "looks": looks, "jobs": jobs, "pages": pages,
            "failures": failures}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--result", type=pathlib.Path, default=FOLDER / "alone.json")
    parser.add_argument("--screenshots", type=pathlib.Path, help="a folder for what the page looked like each minute")
    options = parser.parse_args()
    begun = machine("make left-alone")
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.minutes, pathlib.Path(folder), options.screenshots)
    write_result(options.result, {**begun, **found})
    return bool(found["failures"])


if __name__ == "__main__":
    sys.exit(main())
