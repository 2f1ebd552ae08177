"""The page while something happens, and while nothing can be heard."""

import time

import pytest

import fixture_data
from page import (all_of, cell, cell_count, connection, console_errors, js, open_page, text, value,
                  wait_for)


def test_live_update_without_reload_or_jump(browser, fixture):
    server = fixture("survey")
    open_page(browser, server.url)
    assert cell(browser, "ctc_loss", "tf-2.3")["kinds"] == ["unmeasured"]
    where = "return [...document.querySelectorAll('.cell')].map((cell) => [cell.offsetLeft, cell.offsetTop])"
    before = js(browser, "window.marker = 1;" + where)
    server.state["matrix"] = fixture_data.matrix()
    server.emit("cell", {"id": 7})
    wait_for("the new code", lambda: cell(browser, "ctc_loss", "tf-2.3")["word"] == "TDO")
    assert js(browser, "return window.marker") == 1
    assert js(browser, where) == before
    assert console_errors(browser) == []


def test_progress_follows_the_job(browser, fixture):
    server = fixture("survey")
    open_page(browser, server.url)
    wait_for("the job", lambda: "97 of 220 runs, 2 failed, 1 more job open" in text(browser, "#progress"))
    assert "about 31 s left" in text(browser, "#progress")
    running = server.state["jobs"][1]
    running["progress"].update(runs_done=150, eta_seconds=12)
    server.emit("job", dict(running["progress"], id=running["id"], state="running"))
    wait_for("progress", lambda: "150 of 220" in text(browser, "#progress"))
    wait_for("ETA", lambda: "about 12 s left" in text(browser, "#progress"))
    assert js(browser, "return document.getElementById('progress-bar').getAttribute('aria-valuenow')") == "68"
    running.update(state="finished", finished_at=fixture_data.NOW)
    server.state["jobs"] = [running]
    server.emit("job", {"id": running["id"], "state": "finished", "runs_done": 220, "runs_total": 220})
    wait_for("the end", lambda: "finished" in text(browser, "#progress-title").lower())


def test_a_burst_of_events_is_few_requests(browser, fixture):
    server = fixture()
    open_page(browser, server.url)
    before, started = server.requests["/v1/matrix"], time.monotonic()
    for number in range(300):
        server.emit("cell", {"id": number})
        time.sleep(0.005)
    fixture_data.set_cell(server.state["matrix"], "conv_wgrad", "tf-2.1", state="stale", code=None)
    server.emit("cell", {"id": 0})
    wait_for("the last one", lambda: cell(browser, "conv_wgrad", "tf-2.1")["kinds"] == ["stale"])
    assert server.requests["/v1/matrix"] - before <= time.monotonic() - started + 2
    assert server.not_modified > 0


@pytest.mark.long
def test_lost_stream_is_said_and_polled(browser, fixture):
    server = fixture("survey")
    open_page(browser, server.url)
    server.drop_streams()
    wait_for("the loss", lambda: connection(browser) == "polling")
    assert "reconnecting" in text(browser, "#connection")
    server.state["matrix"] = fixture_data.matrix()
    wait_for("a polled update", lambda: cell(browser, "ctc_loss", "tf-2.3")["word"] == "TDO")
    server.answering = False
    wait_for("offline", lambda: connection(browser) == "offline")
    assert "nothing newer" in text(browser, "#matrix-as-of")
    assert "grayscale" in js(browser, "return getComputedStyle(document.querySelector('.cell')).filter")
    server.answering = server.streams_allowed = True
    wait_for("the stream", lambda: connection(browser) == "live")
    wait_for("currency", lambda: "nothing newer" not in text(browser, "#matrix-as-of"))


@pytest.mark.long
def test_mute_stream_is_not_called_live(browser, fixture):
    server = fixture("survey")
    server.streams_mute = True
    open_page(browser, server.url, live=False)
    wait_for("polling", lambda: connection(browser) == "polling")
    server.state["matrix"] = fixture_data.matrix()
    wait_for("a polled update", lambda: cell(browser, "ctc_loss", "tf-2.3")["word"] == "TDO")
    server.streams_mute = False
    wait_for("the stream", lambda: connection(browser) == "live")


def test_stream_that_died_silently_is_found_out(browser, fixture):
    hurry = """const real = setTimeout;
               window.setTimeout = (call, delay, ...rest) => real(call, delay === 30000 ? 1000 : delay, ...rest)"""
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": hurry})
    server = fixture()
    open_page(browser, server.url)
    server.answering = False
    wait_for("offline", lambda: connection(browser) == "offline")
    server.answering = True
    wait_for("the stream", lambda: connection(browser) == "live")
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": script["identifier"]})


def test_hidden_page_holds_no_stream(browser, fixture):
    server = fixture()
    open_page(browser, server.url)
    hide = """Object.defineProperty(document, 'hidden', {value: arguments[0], configurable: true});
              document.dispatchEvent(new Event('visibilitychange'))"""
    js(browser, hide, True)
    wait_for("the end of the stream", lambda: server.streams_open == 0)
    server.state["matrix"] = fixture_data.matrix(measured=[])
    js(browser, hide, False)
    wait_for("a fresh table", lambda: cell(browser, "conv_wgrad", "tf-2.1")["kinds"] == ["unmeasured"])
    wait_for("the stream", lambda: connection(browser) == "live")


def test_new_database(browser, fixture):
    server = fixture("empty")
    open_page(browser, server.url)
    wait_for("an explanation", lambda: "survey is about to start" in text(browser, "#progress").lower())
    assert set(all_of(browser, ".cell", "each.dataset.kind")) == {"absent", "unmeasured"}
    assert js(browser, "return document.getElementById('environment-select').disabled") is True
    server.state.update(fixture_data.filled())
    server.emit("cell", {"id": 1})
    known = fixture_data.ENVIRONMENT["id"]
    wait_for("the environment", lambda: value(browser, "#environment-select") == known)


def test_problem_is_shown(browser, fixture):
    server = fixture()
    server.problem = ("/v1/matrix", 422, "there is no table 'x'")
    browser.get(server.url)
    wait_for("the problem", lambda: "there is no table 'x'" in text(browser, "#matrix-error"))
    server.problem = None
    wait_for("recovery", lambda: cell_count(browser) and not text(browser, "#matrix-error"))
