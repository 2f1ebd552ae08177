"""The page under keyboard, mouse and finger."""

import fixture_data
from conftest import resize
from page import all_of, centre, console_errors, focused, js, open_page, press, text, value, wait_for


def test_keyboard(browser, site):
    open_page(browser, site)
    assert js(browser, "return document.querySelectorAll('.cell[tabindex=\"0\"]').length") == 1
    for _ in range(20):
        if focused(browser):
            break
        press(browser, "Tab")
    first = focused(browser)
    assert first == js(browser, "return document.querySelector('.cell').dataset.key")
    press(browser, "ArrowRight", "ArrowDown")
    expected = all_of(browser, ".matrix tbody tr:nth-child(2) .cell", "each.dataset.key")[1]
    assert focused(browser) == expected
    assert js(browser, "return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert expected.split("/")[0] in text(browser, "#detail")
    press(browser, "Home", "ArrowUp", "ArrowUp", "ArrowLeft")
    assert focused(browser) == first
    press(browser, "End", "Home", "Enter")
    assert "cell=" in browser.current_url
    assert all_of(browser, "[aria-pressed=true]", "each.dataset.key") == [first]
    press(browser, "Tab")
    assert focused(browser) == "close"
    press(browser, "Escape")
    assert focused(browser) == first and "cell=" not in browser.current_url
    assert console_errors(browser) == []


def test_pointer_shows_and_click_keeps(browser, fixture):
    server = fixture("troubled")
    crash = "ordered: 3 of 5 runs crashed" + " again" * 500
    fixture_data.set_cell(server.state["matrix"], "conv_wgrad", "tf-2.3", reason=crash)
    open_page(browser, server.url)
    assert js(browser, "return document.getElementById('detail').hidden") is True
    height = js(browser, "return document.documentElement.scrollHeight")
    at = centre(browser, "[data-key='conv_wgrad/model/tf-2.3']")
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **at})
    wait_for("the panel", lambda: "3 of 5 runs crashed" in text(browser, "#detail"))
    assert js(browser, "return document.documentElement.scrollHeight") == height
    assert "Documents say" in text(browser, "#detail") and "cell=" not in browser.current_url
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 5, "y": 5})
    wait_for("no panel", lambda: not text(browser, "#detail"))
    for kind in ("mousePressed", "mouseReleased"):
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "button": "left", "clickCount": 1, **at})
    browser.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": 5, "y": 5})
    wait_for("the panel to stay", lambda: "cell=" in browser.current_url and text(browser, "#detail"))
    clipboard = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": clipboard})
    js(browser, """
        const button = document.querySelector('#detail .copy');
        window.said = [];  // it says so for two seconds, which may pass between two looks
        new MutationObserver(() => said.push(button.innerText)).observe(button, {childList: true});
        button.click()""")
    wait_for("the copy", lambda: "copied" in js(browser, "return window.said"))
    copied = browser.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    assert copied == f"curl {browser.current_url.split('/?')[0]}/v1/cells/7"


def test_tap_opens_the_sheet(browser, fixture):
    resize(browser, 360, 740)
    open_page(browser, fixture("troubled").url)
    js(browser, "document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", "[data-key='ctc_loss/model/tf-1.14']")
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    at = centre(browser, "[data-key='ctc_loss/model/tf-1.14']")
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [at]})
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    wait_for("the sheet", lambda: "cuDNN CTC loss" in text(browser, "#detail"))
    assert js(browser, "return getComputedStyle(document.getElementById('detail')).position") == "fixed"


def test_an_open_cell_shows_the_references(browser, fixture):
    server = fixture()
    open_page(browser, server.url)
    js(browser, "document.querySelector(arguments[0]).click()", "[data-key='maxpool_bwd/model/tf-2.1']")
    wait_for("the references", lambda: all_of(browser, "#detail .references li", "each.innerText") == [
        "tensorflow PR 25269 (pull request, merged 2020-06, solved: TF 1.14) deterministic <max-pooling>",
        "GTC S9911 slides 41-42 (slides) root cause and solution"])
    assert all_of(browser, "#detail .references a", "each.href") == [
        "https://github.com/tensorflow/tensorflow/pull/25269"]  # and no script
    js(browser, "document.querySelector(arguments[0]).click()", "[data-key='conv_wgrad/model/tf-2.1']")
    wait_for("another cell", lambda: "weight gradients" in text(browser, "#detail"))
    assert js(browser, "return document.querySelector('#detail .references').checkVisibility()") is False
    assert server.requests["/v1/workloads/maxpool_bwd"] == 1
    assert console_errors(browser) == []


def test_choice_is_in_the_url(browser, fixture):
    open_page(browser, fixture().url)
    wait_for("the list", lambda: len(all_of(browser, "#environment-select option", "each.value")) == 2)
    assert all_of(browser, "#table-select option", "each.innerText") == [
        "documents-2020: Documents of 2020", "documents-2023: Documents of 2023"]
    js(browser, "const select = document.getElementById('environment-select'); select.value = arguments[0];"
       "select.dispatchEvent(new Event('change'))", fixture_data.OTHER["id"])
    assert fixture_data.OTHER["id"] in browser.current_url
    browser.refresh()
    wait_for("the same choice", lambda: value(browser, "#environment-select") == fixture_data.OTHER["id"])
    browser.back()
    wait_for("the choice before", lambda: value(browser, "#environment-select") == fixture_data.ENVIRONMENT["id"])


def test_every_environment_can_be_chosen(browser, fixture):
    server = fixture()
    crowd = [dict(fixture_data.OTHER, id=f"{number:032x}") for number in range(1500)]
    server.state["environments"] = [*crowd, fixture_data.ENVIRONMENT]
    open_page(browser, server.url)
    wait_for("the list", lambda: len(all_of(browser, "#environment-select option", "each.value")) == 1501)
    assert value(browser, "#environment-select") == fixture_data.ENVIRONMENT["id"]
    assert console_errors(browser) == []
