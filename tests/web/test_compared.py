"""Environments and devices compared: which case has which bits where, what drifted, and who dissents."""

import pytest

from conftest import resize, set_scheme
from page import all_of, console_errors, js, open_page, overflow, text, wait_for

OLD, NEW = "a" * 32, "b" * 32


def case(variant, **members):
    return {"workload": "conv_wgrad", "version": 1, "variant": variant, "size": "small", "dtype": "float32",
            "seed": "1", "is_control": False, "subject": "model", "subject_name": None, **members}


def entry(mark, verdict, digest):
    return {"class": mark[0] if digest else None, "mark": mark, "verdict": verdict, "digest": digest,
            "runs": 5, "href": "/v1/cells/7"}


def classes():
    columns = [{"id": NEW, "title": "threads 2", "devices": 0, "drift": f"/v1/drift?from={OLD}&to={NEW}"},
               {"id": OLD, "title": "threads <b>1</b>", "devices": 0, "drift": None}]
    rows = [case("ordered", cells=[entry("A", "reproducible", "1" * 32), entry("B", "reproducible", "2" * 32)]),
            case("stored", cells=[entry("A~", "stale", "1" * 32), None]),
            case("unordered", cells=[entry("≈", "varies", None), entry("A?", "inconclusive", "3" * 32)])]
    return {"view": "environments", "headline": "3 cases in 2 environments", "columns": columns,
            "groups": [{"workload": "conv_wgrad", "cases": 3, "differing": 2, "rows": rows}], "next": None}


def drift():
    changed = case("ordered", kind="bits_changed", reason="digest 22222222 in 5 runs before")
    return {"title": "threads 1 → 2", "headline": "0 cases same bits; 1 changed", "href": f"/v1/drift?from={OLD}&to={NEW}",
            "groups": [{"kind": "bits_changed", "workload": "conv_wgrad", "cases": [changed]}]}


def opened(fixture, browser, path="/"):
    server = fixture()
    server.state["classes"], server.state["drift"] = classes(), drift()
    open_page(browser, server.url, path)
    return server


def test_nothing_is_asked_until_it_is_opened(browser, fixture):
    server = opened(fixture, browser)
    assert text(browser, ".classes") == ""
    js(browser, "document.getElementById('compare-environments').click()")
    wait_for("the letters", lambda: all_of(browser, ".classes .badge", "each.textContent"))
    assert all_of(browser, ".classes .badge", "each.textContent") == ["A", "B", "A~", "·", "≈", "A?"]
    green = all_of(browser, ".classes .badge.solved", "each.textContent")
    assert green == ["A", "B"], "only what is reproducible now"
    assert "threads <b>1</b>" in text(browser, ".classes thead")
    assert server.requests.get("/v1/drift") is None
    assert console_errors(browser) == []


def test_a_column_leads_to_what_changed(browser, fixture):
    opened(fixture, browser)
    js(browser, "document.getElementById('environments').open = true")
    wait_for("the column", lambda: all_of(browser, ".classes thead button", "each.textContent"))
    js(browser, "document.querySelector('.classes thead button').click()")
    wait_for("the drift", lambda: "threads 1 → 2" in text(browser, ".drift"))
    assert "1 changed bits" in text(browser, ".drift") and "digest 22222222" in text(browser, ".drift")
    assert f"drift={OLD}..{NEW}" in js(browser, "return decodeURIComponent(location.search)")
    assert console_errors(browser) == []


def test_an_address_with_drift_opens_it(browser, fixture):
    opened(fixture, browser, f"/?drift={OLD}..{NEW}")
    wait_for("the drift", lambda: "threads 1 → 2" in text(browser, ".drift"))
    assert all_of(browser, ".drift a", "each.getAttribute('href')") == [f"/v1/drift{end}?from={OLD}&to={NEW}" for end in (".txt", ".csv")]


def test_two_environments_are_chosen_and_a_change_leads_to_its_drift(browser, fixture):
    server = fixture()
    server.state.update(classes=classes(), drift=drift(), environments=[
        {"id": NEW, "title": "threads 2", "last_seen_at": None}, {"id": OLD, "title": "threads 1", "last_seen_at": None}])
    server.state["changes"] = [{"id": 1, "host": "gpu<1>", "at": "2026-01-05T10:11:12Z", "text": "driver 550 → 560", "state": "reported",
                                "headlines": ["131 cases same bits, 4 changed"], "reports": [
                                    {"href": f"/v1/drift?from={OLD}&to={NEW}"},
                                    {"href": "/v1/drift?host=gpu1&since=2026-01-05T10:11:12.000Z"}]}]
    open_page(browser, server.url)
    js(browser, "document.getElementById('environments').open = true")
    wait_for("the change", lambda: "driver 550 → 560 on gpu<1>" in text(browser, ".changes"))
    assert "131 cases same bits, 4 changed" in text(browser, ".changes")
    js(browser, """[...document.querySelectorAll('#environments select')].forEach((select, at) => {
        select.value = arguments[at];
        select.dispatchEvent(new Event('change')); })""", OLD, NEW)
    wait_for("the drift", lambda: "threads 1 → 2" in text(browser, ".drift"))
    assert server.queries[-1] == {"from": [OLD], "to": [NEW]}
    js(browser, "document.querySelectorAll('.changes button')[1].click()")
    wait_for("the host's", lambda: server.queries[-1] == {"host": ["gpu1"], "since": ["2026-01-05T10:11:12.000Z"]})
    assert "drift=gpu1%402026" in js(browser, "return location.search")
    since, until = "2026-01-05T10:11:12.000Z", "2026-01-06T00:00:00.000Z"
    open_page(browser, server.url, f"/?drift=gpu1@{since}..{until}")
    wait_for("up to the next change", lambda: server.queries[-1] == {"host": ["gpu1"], "since": [since], "until": [until]})
    assert console_errors(browser) == []


def test_a_long_drift_is_grouped_and_bounded(browser, fixture):
    server = fixture()
    many = [case("ordered", seed=str(n), kind="bits_changed", reason=f"reason {n}") for n in range(60)]
    same = [case("ordered", seed=str(n), kind="same_bits", reason="") for n in range(100)]
    report = {**drift(), "counts": {"same_bits": 100, "same_bits_proven": 90}, "to_run": [{"workloads": ["a"]}] * 9, "groups": [
        {"kind": "bits_changed", "workload": "conv_wgrad", "subject": "library", "subject_name": "cuDNN", "algorithm_before": "ALGO_1",
         "algorithm_after": "ALGO_3", "cases": many},
        {"kind": "same_bits", "workload": "conv_wgrad", "subject": "model", "cases": same}]}
    server.state.update(classes=classes(), drift=report)
    open_page(browser, server.url, f"/?drift={OLD}..{NEW}")
    wait_for("the drift", lambda: "60 changed bits" in text(browser, ".drift"))
    shown = text(browser, ".drift")
    assert "conv_wgrad (cuDNN), ALGO_1 → ALGO_3" in shown and "reason 39" in shown and "reason 40" not in shown
    assert "and 20 more" in shown and "100 same bits" in shown and "90 are proven on both sides" in shown
    assert "and 4 more jobs" in shown
    assert all_of(browser, ".drift .command code", "each.textContent")[0].startswith("curl -d ")


# --- devices ----------------------------------------------------------------------------------------------------------

def device_classes():
    columns = [{"id": "majority", "title": "3998 devices on 500 hosts that show what most show", "devices": 3998},
               {"id": "GPU-3", "title": "GPU-3 on <i>host</i>-0", "devices": 1}]
    rows = [case("ordered", cells=[{**entry("A", "reproducible", "1" * 32), "devices": 3998},
                                   {**entry("B≠", "devices_disagree", "2" * 32), "class": "B"}])]
    view = {"view": "devices", "headline": "200 cases on 4000 devices", "environment": {"title": "cuda"}, "column_count": 3,
            "columns": columns, "groups": [{"workload": "conv_wgrad", "cases": 1, "differing": 1, "rows": rows}], "next": "1"}
    rest = {**view, "columns": [{"id": "GPU-9", "title": "GPU-9 on host-1", "devices": 1}], "next": None, "groups": [
        {"workload": "conv_wgrad", "rows": [case("ordered", cells=[{**entry("C≠", "devices_disagree", "3" * 32), "class": "C"}])]}]}
    return [view, rest]


def cell_device(number, state, letter):
    return {"device": f"GPU-{number:08}-0000-0000-0000-000000000000", "host": f"host-{number // 8}", "serial": f"SN{number}", "slot": "00:03.0",
            "state": state, "class": letter, "runs": 8, "iterations": 16, "distinct_digests": 1 if letter else 3,
            "self_consistent": letter is not None, "difference_probability_upper_bound": 0.348163655,
            "first_run_at": "2026-01-05T10:11:12Z", "last_run_at": "2026-01-06T10:11:12Z"}


def camp(letter, size, **shares):
    return {"class": letter, "digest": letter and letter.lower() * 32, "devices": [f"GPU-{n}" for n in range(min(size, 16))],
            "size": size, "runs": 8 * size, "iterations": 16 * size, "shares": shares}


def big_cell(agreeing=4000):
    cell = case("ordered", href="/v1/cells/7", verdict="devices_disagree", reason="2 of 4000 devices dissent: <b>GPU-3</b>",
                agreement_words="2 of 4000 devices dissent", device_count=agreeing + 2, more_camps=0,
                camps=[camp("A", agreeing, driver="560"), camp("B", 1, host="host-0"), camp(None, 1)])
    devices = [cell_device(3, "dissents", "B"), cell_device(9, "departs", None)]
    return cell, devices + [cell_device(n, "agrees", "A") for n in range(10, 10 + agreeing)]


def with_devices(fixture, browser, path="/", agreeing=4000):
    server = fixture()
    server.state.update(classes=classes(), drift=drift(), device_classes=device_classes(), cell_devices=big_cell(agreeing), devices=[
        {"id": "GPU-3", "host": "host-0", "model": "imagined <GPU>", "online": True, "attributes": {"serial": "SN3", "pci_bus_id": "00:03.0"},
         "cells": 200, "dissents": 1}])
    server.state["devices/GPU-3"] = [{}]
    open_page(browser, server.url, path)
    return server


def test_devices_are_compared_where_they_differ(browser, fixture):
    server = with_devices(fixture, browser)
    assert server.queries == [] and text(browser, "#devices .classes") == ""
    js(browser, "document.getElementById('compare-devices').click()")
    wait_for("the letters", lambda: all_of(browser, "#devices .classes .badge", "each.textContent") == ["A", "B≠"])
    [query] = server.queries
    assert query["rows"] == ["differing"] and "columns" not in query
    assert all_of(browser, "#devices .classes .badge.solved", "each.textContent") == ["A"]
    labels = all_of(browser, "#devices .classes a.badge", "each.getAttribute('aria-label')")
    assert "B≠, devices_disagree" in labels[1], "read without colour and without sight"
    assert "3998 devices on 500 hosts" in text(browser, "#devices .classes .majority")
    assert "2 of 3 columns" in text(browser, "#devices .pager")
    dissenters = text(browser, ".dissenters")
    assert "GPU-3" in dissenters and "≠ in 1 of 200 cells" in dissenters and "slot 00:03.0" in dissenters
    js(browser, "[...document.querySelectorAll('#devices .pager button')].at(-1).click()")
    wait_for("the next page", lambda: all_of(browser, "#devices .classes .badge", "each.textContent") == ["C≠"])
    js(browser, "document.querySelector('#devices .pager button').click()")
    wait_for("the page before", lambda: all_of(browser, "#devices .classes .badge", "each.textContent") == ["A", "B≠"])
    js(browser, "document.querySelectorAll('#devices input')[1].click()")
    wait_for("each host", lambda: server.queries[-1].get("columns") == ["hosts"])
    assert "devices=shown" in js(browser, "return location.search")
    assert console_errors(browser) == []


def test_a_cell_names_who_dissents_and_folds_who_agrees(browser, fixture):
    with_devices(fixture, browser, "/?evidence=7")
    wait_for("the cell", lambda: "2 of 4000 devices dissent" in text(browser, "#cell"))
    shown = text(browser, "#cell")
    assert "<b>GPU-3</b>" in shown and "1 dissents: its bits are not" in shown and "1 departs: why cannot be told yet" in shown
    camps = all_of(browser, ".camps li", "[each.querySelector('.letter').textContent, each.innerText]")
    assert [letter for letter, _ in camps] == ["A", "B", "≈"]
    assert "4,000 devices" in camps[0][1] and "share driver 560" in camps[0][1] and "and 3,984 more" in camps[0][1]
    assert "host host-0" in camps[1][1] and "differ with themselves" in camps[2][1]
    lines = all_of(browser, "#cell .devices tbody tr", "[...each.children].map((cell) => cell.innerText)")
    assert lines[0][:4] == ["GPU-00000003-0000-0000-0000-000000000000", "host-0", "00:03.0", "B"]
    assert lines[0][6:8] == ["consistent", "< 35 %"] and lines[1][3] == "≈" and lines[1][6:8] == ["3 digests", "yes"]
    assert len(lines) == 2 and "4,000 agree" in shown
    js(browser, "document.querySelector('.devices-agrees button').click()")
    wait_for("the first", lambda: len(all_of(browser, ".devices-agrees tbody tr", "0")) == 50)
    js(browser, "document.querySelector('.devices-agrees button').click()")
    wait_for("and more", lambda: len(all_of(browser, ".devices-agrees tbody tr", "0")) == 100)
    assert console_errors(browser) == []


def spread():
    values = {"runs": 50, "not_finite": 0, "distinct": 9, "least": "5484772.4708251953125000", "least_bits": "4154ec391e220000",
              "greatest": "5484775.4887084960937500", "greatest_bits": "4154ec39df470000", "range": 3.0178833,
              "standard_deviation": 1.12224623, "float64_ulp": "9240427520240427520"}
    elements = {"place": "op23/<b>forward</b>", "output": 0, "name": "y", "dtype": "float32", "elements": 6400, "differ": 3,
                "element_ulp": "18446744073709551615", "a": "0" * 26, "b": "1" * 26, "localisation": "/v1/jobs/J/localisation"}
    return {"runs": 50, "runs_left_out": 2, "iterations": 5200, "weight_sum": values, "loss": {**values, "not_finite": 4, "range": None}, "elements": elements,
            "text": ""}


def test_a_cell_says_how_much_it_varies(browser, fixture):
    server = with_devices(fixture, browser, "/?evidence=7")
    wait_for("the cell", lambda: "2 of 4000 devices dissent" in text(browser, "#cell"))
    assert "How much it varies" not in text(browser, "#cell"), "it does not"
    server.state["spread"] = spread()
    open_page(browser, server.url, "/?evidence=7")
    wait_for("the spread", lambda: "How much it varies" in text(browser, "#cell"))
    shown = text(browser, "#cell")
    assert "in the last iteration of each of 50 runs; those of other iterations, of 5,200 in all, are not stored. 2 runs are left out." in shown
    assert "The loss of 4 runs is NaN or infinite" in shown
    lines = all_of(browser, "#cell .spread tbody tr", "[...each.children].map((cell) => cell.innerText)")
    assert lines[0] == ["sum", "5484772.4708251953125000", "5484775.4887084960937500", "3.018", "1.122", "9,240,427,520,240,427,520", "50"]
    assert lines[1][0] == "loss" and lines[1][3] == "–"
    # What is of elements says so, and of which dtype; no digit of a large number is lost.
    assert "Single elements, of two runs at op23/<b>forward</b>, output 0 (y): 3 of 6,400 differ, by at most " \
        "18,446,744,073,709,551,615 ulp of float32. the localisation" in shown
    server.state["spread"] = {**spread(), "elements": None, "loss": None}
    open_page(browser, server.url, "/?evidence=7")
    wait_for("the spread", lambda: "Of single elements nothing is known" in text(browser, "#cell"))
    assert len(all_of(browser, "#cell .spread tbody tr", "0")) == 1
    assert console_errors(browser) == []


def test_a_cell_names_its_witness(browser, fixture):
    server = with_devices(fixture, browser, "/?evidence=7")
    wait_for("the cell", lambda: "2 of 4000 devices dissent" in text(browser, "#cell"))
    assert "Witnessed" not in text(browser, "#cell"), "it has none"
    server.state["witness"] = {"text": "one digest in 200 runs: a run differs with less than 1.5 %; torch_<b> default varied beside it, 5"
                               " digests in 5 runs", "workload": "torch_<b>", "variant": "default", "runs": 5, "distinct_digests": 5,
                               "conditions": "", "href": "/v1/cells/8"}
    server.state["cell_devices"][0]["verdict"] = "inconclusive"
    open_page(browser, server.url, "/?evidence=7")
    wait_for("the witness", lambda: "The witness shows that differences can be seen here" in text(browser, "#cell"))
    assert all_of(browser, "#cell .badge.big", "[each.className, each.innerText]") == [["badge big witnessed", "inconclusive, witnessed"]]
    assert "Witnessed: one digest in 200 runs: a run differs with less than 1.5 %; torch_<b> default varied" in text(browser, "#cell .witness")
    assert console_errors(browser) == []


def test_a_cell_is_opened_by_its_link_and_closed(browser, fixture):
    server = with_devices(fixture, browser, "/?cell=conv_wgrad/model/tf-1.14", agreeing=6)
    assert server.requests.get("/v1/cells/7/devices") is None
    js(browser, "document.querySelector('.facts a').click()")
    wait_for("the cell", lambda: "6 agree" in text(browser, "#cell"))
    assert len(all_of(browser, "#cell .devices tbody tr", "0")) == 8, "a few are listed without being asked for"
    assert "evidence=7" in js(browser, "return location.search") and js(browser, "return location.pathname") == "/"
    js(browser, "document.querySelector('#cell .close').click()")
    wait_for("closed", lambda: not js(browser, "return document.getElementById('cell').open"))
    wait_for("the address", lambda: "evidence" not in js(browser, "return location.search"))
    assert "cell=conv_wgrad" in js(browser, "return decodeURIComponent(location.search)"), "the panel stays"
    server.problem = ("/v1/cells/", 404, "there is no cell 7")
    js(browser, "document.querySelector('.facts a').click()")
    wait_for("the reason", lambda: "there is no cell 7" in text(browser, "#cell .notice"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", ["/?devices=shown", "/?evidence=7", f"/?drift={OLD}..{NEW}"])
def test_what_is_compared_fits_every_width(browser, fixture, path, width, scheme):
    resize(browser, width, 844)
    set_scheme(browser, scheme)
    server = with_devices(fixture, browser)
    server.state["spread"] = spread()
    open_page(browser, server.url, path)
    wait_for("it", lambda: text(browser, {"d": "#devices .classes", "e": "#cell .camps"}.get(path[2], "")
                                or "#devices .classes") if "drift" not in path else text(browser, ".drift"))
    assert overflow(browser) <= 0
    assert js(browser, "const it = document.getElementById('cell'); return it.scrollWidth - it.clientWidth") <= 0
