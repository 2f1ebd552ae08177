"""The form that submits a job: what it offers, what it sends, and what it says."""

import json

import pytest

from conftest import resize, set_scheme
from page import all_of, console_errors, js, open_page, press, text, value, wait_for


def open_form(browser, url):
    open_page(browser, url)
    js(browser, "document.querySelector('#submit summary').click()")
    wait_for("the choices", lambda: not js(browser, "return document.querySelector('[name=stack]').disabled"))


def fill(browser, **fields):
    for name, wanted in fields.items():
        js(browser, """
            const field = document.querySelector('#submit form').elements[arguments[0]];
            if (field.type === 'checkbox') field.checked = arguments[1]; else field.value = arguments[1];
            for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, {bubbles: true}))""",
           name, wanted)


def options(browser, name):
    return all_of(browser, f"#submit [name={name}] option", "each.value")


def command(browser):
    """The body that the curl command would send."""
    shown = text(browser, "#submit .command code")
    return json.loads(shown.split("'")[1])


def test_choices(browser, fixture):
    server = fixture()
    open_page(browser, server.url)
    assert "/v1/stacks" not in server.requests
    open_form(browser, server.url)
    assert len(options(browser, "workload")) == len(set(options(browser, "workload"))) > 5
    assert options(browser, "stack") == ["", "all", "cpu", "cudnn-9.12"]
    fill(browser, workload="bias_add_bwd")
    assert options(browser, "variant") == ["*", "unordered", "ordered", "patched"]
    assert command(browser) == {"workloads": ["bias_add_bwd"], "runs": 5, "iterations": 10}
    assert console_errors(browser) == []


def test_submit(browser, fixture):
    server = fixture()
    open_form(browser, server.url)
    fill(browser, workload="conv_wgrad", variant="ordered", stack="cudnn-9.12", runs=7, iterations=3,
         contention=4, memory_poison=True, allocation_jitter=True)
    wanted = {"workloads": ["conv_wgrad"], "variants": ["ordered"], "stacks": ["cudnn-9.12"], "runs": 7,
              "iterations": 3, "contention": 4, "memory_poison": True, "allocation_jitter": True}
    assert command(browser) == wanted
    js(browser, "document.querySelector('[name=runs]').focus()")
    press(browser, "Enter")
    wait_for("the answer", lambda: "is queued" in text(browser, "#submit [role=status]"))
    assert server.posted == [("/v1/jobs", "application/json", wanted)]
    wait_for("the job in the list", lambda: "4 loads" in text(browser, "#jobs"))
    fill(browser, stack="all")
    assert command(browser)["stacks"] == "all"
    assert console_errors(browser) == []


def test_one_import_for_many_runs_is_offered_of_frameworks(browser, fixture):
    server = fixture()
    server.state["workloads"].append({"workload": "tiny_total", "backend": "cpu", "references": [], "variants": [
        {"name": "default", "subject": "framework"}]})
    open_form(browser, server.url)
    hidden = "return document.querySelector('[name=shared_import]').parentNode.hidden"
    fill(browser, workload="bias_add_bwd")
    assert js(browser, hidden) is True
    fill(browser, workload="tiny_total", shared_import=True)
    assert js(browser, hidden) is False and command(browser)["shared_import"] is True
    fill(browser, workload="bias_add_bwd")
    assert js(browser, hidden) is True and "shared_import" not in command(browser), "the service would refuse it"


def test_what_is_wrong_is_said(browser, fixture):
    server = fixture()
    open_form(browser, server.url)
    fill(browser, contention=65)
    assert js(browser, "return document.querySelector('[name=submit]').disabled") is True
    fill(browser, contention=0)
    server.problem = ("/v1/jobs", 422, "nothing is left to run")
    js(browser, "document.querySelector('[name=submit]').click()")
    wait_for("the problem", lambda: "nothing is left to run" in text(browser, "#submit [role=alert]"))
    assert js(browser, "return document.querySelector('[name=submit]').disabled") is False


def submit(browser, server):
    before = len(server.posted)
    js(browser, "document.querySelector('[name=submit]').click()")
    wait_for("an answer", lambda: len(server.posted) > before  # browsers try again by themselves, too
             and js(browser, "return document.querySelector('[name=submit]').disabled") is False)


def test_what_was_not_answered_is_submitted_once(browser, fixture):
    server = fixture()
    open_form(browser, server.url)
    server.answering = False
    submit(browser, server)
    wait_for("the problem", lambda: "does not answer" in text(browser, "#submit [role=alert]"))
    submit(browser, server)
    server.answering = True
    submit(browser, server)
    assert "is queued" in text(browser, "#submit [role=status]")
    first = set(server.keys)
    assert len(first) == 1 and None not in first
    submit(browser, server)  # on purpose
    assert server.keys[-1] not in first


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_form_fits(browser, fixture, width, scheme):
    set_scheme(browser, scheme)
    resize(browser, width, 900)
    open_form(browser, fixture().url)
    assert js(browser, "return document.documentElement.scrollWidth") <= width
    wide = all_of(browser, "#submit input, #submit select, #submit button",
                  "each.getBoundingClientRect().right > innerWidth")
    assert wide and not any(wide)
    assert value(browser, "#submit [name=runs]") == "5"
