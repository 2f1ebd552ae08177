"""Environments compared: which case has which bits where, and what drifted."""

from page import all_of, console_errors, js, open_page, text, wait_for

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
    assert all_of(browser, ".drift a", "each.getAttribute('href')") == [f"/v1/drift.txt?from={OLD}&to={NEW}"]
