"""A real browser, and the sites that the page is tested on: the fixture server, and the
daemon at REPROD_URL where that is set."""

import os
import shutil

import pytest

from fixture_server import Fixture

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None

BROWSERS = ["chromium", "chromium-browser", "google-chrome"]
FLAGS = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
         "--window-size=1280,900"]


def start_browser():
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    missing = [name for name, found in [("python3-selenium", webdriver), ("chromium", browser),
                                        ("chromium-driver", driver)] if not found]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in FLAGS + (["--no-sandbox"] if os.geteuid() == 0 else []):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(driver), options=options)


@pytest.fixture(scope="session")
def shared_browser():
    browser = start_browser()
    yield browser
    browser.quit()


@pytest.fixture
def browser(shared_browser, fixture):
    """It leaves its page before the page's server is closed: a page alone complains."""
    del fixture
    shared_browser.get_log("browser")
    resize(shared_browser, 1280, 900)
    set_scheme(shared_browser, "light")
    yield shared_browser
    shared_browser.get("about:blank")


@pytest.fixture
def fixture():
    """Call with a scenario; closed after the test."""
    started = []

    def start(scenario="filled"):
        started.append(Fixture(scenario))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(params=["fixture"] + (["daemon"] if os.environ.get("REPROD_URL") else []))
def site(request, fixture):
    """The address of a page with a table that is filled or being filled."""
    return os.environ["REPROD_URL"] if request.param == "daemon" else fixture("filled").url


def set_scheme(browser, scheme):
    """"light" or "dark"."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def resize(browser, width, height):
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
