"""Looking at the page and handling it, for tests."""

import time

import pytest

PATIENCE_S = 300


def wait_for(what, condition):
    """The first truthy value of CONDITION(); the only limit is that of patience."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    pytest.fail(f"waited {PATIENCE_S} s for: {what}")


def js(browser, script, *arguments):
    return browser.execute_script(script, *arguments)


def open_page(browser, url, path="/", live=True):
    """Until every part of the page was read, so that nothing moves any more by itself."""
    browser.get(url.rstrip("/") + path)
    wait_for("the table", lambda: js(browser, "return document.querySelectorAll('.cell').length"))
    wait_for("the rest", lambda: js(browser, "return !document.querySelector('[aria-busy]')"))
    if live:
        wait_for("the stream", lambda: connection(browser) == "live")


def all_of(browser, selector, expression):
    """EXPRESSION of `each` element that matches."""
    return js(browser, f"return [...document.querySelectorAll(arguments[0])].map((each) => {expression})", selector)


def value(browser, selector):
    return js(browser, "return document.querySelector(arguments[0]).value", selector)


def connection(browser):
    return js(browser, "return document.getElementById('connection').dataset.state")


def text(browser, selector):
    return js(browser, "return document.querySelector(arguments[0])?.innerText ?? ''", selector)


def cell(browser, workload, column):
    """class list, words and label of a cell."""
    return js(browser, """
        const cell = document.querySelector(`[data-key="${arguments[0]}"]`);
        return {kinds: [...cell.classList].filter((name) => !/^(cell|changed|of-.*)$/.test(name)),
                word: cell.querySelector('.word').innerText, mark: cell.querySelector('.mark').innerText,
                label: cell.getAttribute('aria-label'), shape: cell.querySelector('use').getAttribute('href'),
                colour: getComputedStyle(cell).backgroundColor}""", f"{workload}/model/{column}")


def press(browser, *names):
    """Keys, as a keyboard sends them to whatever has the focus."""
    codes = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
             "ArrowRight": 39, "ArrowDown": 40}
    for name in names:
        key = {"key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
        if name == "Enter":
            key["text"] = "\r"
        browser.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", **key})
        browser.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", **key})


def focused(browser):
    return js(browser, "return document.activeElement.dataset.key ?? document.activeElement.dataset.hold ?? ''")


def console_errors(browser):
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def overflow(browser):
    return js(browser, "return document.documentElement.scrollWidth - document.documentElement.clientWidth")


def centre(browser, selector):
    return js(browser, "const {left, top, width, height} = document.querySelector(arguments[0]).getBoundingClientRect();"
              "return {x: left + width / 2, y: top + height / 2}", selector)


def cell_count(browser):
    return js(browser, "return document.querySelectorAll('.cell').length")

