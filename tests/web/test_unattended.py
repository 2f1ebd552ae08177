"""Schedules, background evidence and peers on the page."""
from page import all_of, console_errors, js, open_page, text, wait_for

NIGHTLY = {"id": "01M85BZ2PB9P4GGHC5X3N0KK4K", "name": "nightly <b>", "every": None, "calendar": "30 2 * * *",
           "paused": False, "next_at": "2026-11-25T02:30:00.000Z", "jobs": 12, "skipped": 1, "problem": None}
WEEKLY = {**NIGHTLY, "id": "01M85BZ2PB9P4GGHC5X3N0KK4L", "name": "weekly", "every": "1w", "calendar": None,
          "paused": True, "next_at": None, "jobs": 0, "skipped": 0, "problem": "no device is online"}


def test_schedules_and_background_evidence(browser, fixture):
    server = fixture("filled")
    server.state["schedules"] = [NIGHTLY, WEEKLY]
    server.state["background"] = {
        "budget_percent": 5, "target_percent": 1, "target_days": 30, "every_seconds": 300,
        "items": [{"device": "cpu:a", "share_percent": 3.21, "spent_seconds": 90, "saved_seconds": 1, "cells": 7,
                   "below_target": 5, "weakest_bound": 0.451, "oldest_run_at": "2026-11-20T10:00:00.000Z"},
                  {"device": "cpu:b", "share_percent": 4.96, "spent_seconds": 30, "saved_seconds": -2, "cells": 3,
                   "below_target": 1, "weakest_bound": 0.0213, "oldest_run_at": "2026-11-21T10:00:00.000Z"},
                  {"device": "cpu:c", "share_percent": 0, "spent_seconds": 0, "saved_seconds": 0, "cells": 0,
                   "below_target": 0, "weakest_bound": None, "oldest_run_at": None}]}
    open_page(browser, server.url)
    wait_for("the schedules", lambda: "nightly" in text(browser, "#schedules"))
    first, second = all_of(browser, "#schedules > li", "each.innerText")
    assert "nightly <b>" in first and "30 2 * * *" in first and "12 jobs, 1 skipped" in first and "next " in first
    assert "every 1w" in second and "paused" in second and "no device is online" in second
    note = text(browser, "#background")
    assert "at most 5 % of each device's time" in note and "none more than 5.0 %" in note
    assert "3 devices gave 2 min" in note, note
    assert "6 of 10 bounds are; the weakest is < 46 %" in note, note
    assert "oldest last run was at 2026-11-20" in note, note
    assert all_of(browser, "#schedules a", "each.getAttribute('href')")[0] == f"/v1/schedules/{NIGHTLY['id']}"
    assert console_errors(browser) == []


def test_where_there_are_none(browser, fixture):
    server = fixture("filled")
    open_page(browser, server.url)
    wait_for("the note", lambda: "is off" in text(browser, "#background"))
    assert js(browser, "return document.getElementById('schedules').hidden") is True
    assert js(browser, "return document.getElementById('schedules-heading').hidden") is True
    assert js(browser, "return document.getElementById('peers').hidden") is True


def test_peers(browser, fixture):
    server = fixture("filled")
    east = {"name": "east", "state": "pulling", "cause": None, "taken": 1200, "refused": 0, "folded": 0, "lag_seconds": 65}
    server.state["peers"] = [east, {**east, "name": "west", "state": "same_service", "cause": "it is <b>", "taken": 1,
                                    "refused": 2, "folded": 3, "lag_seconds": None}]
    open_page(browser, server.url)
    wait_for("the peers", lambda: "east" in text(browser, "#peers"))
    assert text(browser, "#peers") == (
        "Peers: east: 1,200 runs, read up to 65 s ago. west: 1 run, 2 refused, 3 missing, which it had folded, "
        "not yet read to the end, same service (it is <b>).")
    assert console_errors(browser) == []
