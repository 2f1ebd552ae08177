"""Operations of frameworks: codes of installed versions, what documents say beside, and no green of other devices."""

import pytest

from conftest import resize, set_scheme
from page import all_of, console_errors, js, open_page, overflow, text, wait_for

OLD, NEW, GPU = "a" * 32, "b" * 32, "c" * 32
RAISES = "index_copy has no deterministic implementation <b>here</b>, and what it says of that is longer than a line"


def variant(name, verdict, number=1, **members):
    return {"variant": name, "is_control": name == "default", "claim": None, "verdict": verdict, "reason": "", "runs": 3,
            "iterations": 6, "distinct_digests": 2, "digest": None, "witness": None, "href": f"/v1/cells/{number}", **members}


def documented(code, applies=False, backend="cuda", era="PyTorch 2.2-2.7", row="index_put"):
    return {"table": "pytorch", "row": row, "title": f"torch.{row}", "column": era and "c", "column_title": era, "code": code,
            "note": None, "backend": backend, "applies": applies}


def line(operation, version, environment, code=None, state="measured", **members):
    return {"framework": "PyTorch", "version": version, "operation": operation, "operation_version": 1, "code": code, "state": state,
            "reason": None if code else "the control did not vary", "seen": "default varies 2/3, deterministic reproducible 1/3",
            "bits": None, "before": None, "documented": [], "documents": None, "backend": "cpu", "model": "AMD <i>EPYC</i>", "threads": 2,
            "environment": environment, "environment_title": f"PyTorch {version}",
            "variants": [variant("default", "varies"), variant("deterministic", "reproducible")], **members}


def still(operation, version, environment, **members):
    return line(operation, version, environment, state="inconclusive",
                variants=[variant("default", "inconclusive"), variant("deterministic", "inconclusive")], **members)


def all_lines():
    say = documented("UDA")
    return [
        still("pytorch_bmm", "2.4.1", OLD), still("pytorch_bmm", "2.15.0", NEW, bits="same", before=OLD),
        line("pytorch_index_copy", "2.4.1", OLD, state="unsupported",
             variants=[variant("default", "varies"), variant("deterministic", "unsupported", reason=RAISES)]),
        line("pytorch_index_put", "2.4.1", OLD, "deterministic", documented=[say, say]),
        line("pytorch_index_put", "2.15.0", NEW, "NS", bits="other", before=OLD, documented=[documented(None, era=None)]),
        line("pytorch_index_put", "2.4.1", GPU, "deterministic", documented=[documented("UDA", True)], backend="cuda",
             model="NVIDIA H100"),
        {**still("jax_dot", "0.4.30", "d" * 32), "framework": "JAX"}]


def opened(fixture, browser, path="/?operations=PyTorch", lines=None):
    server = fixture()
    own = all_lines() if lines is None else lines
    server.state["profiles"][0].update(id="pytorch", columns=[{"id": "c", "title": "C", "images": [], "versions": {
        "framework": "PyTorch", "from": "2.2", "to": "2.7"}}])
    server.state["operations"] = {"": own, "pytorch": [each for each in own if each["documented"]]}
    open_page(browser, server.url, path)
    return server


def cells(browser):
    """{operation: its cells as text}"""
    rows = all_of(browser, "#frameworks tbody tr:has(td)",
                  "[each.querySelector('th').innerText, [...each.querySelectorAll('td')].map((cell) => cell.innerText)]")
    return dict(rows)


def test_nothing_is_asked_until_it_is_opened(browser, fixture):
    server = opened(fixture, browser, "/")
    assert server.requests.get("/v1/operations") is None
    js(browser, "document.getElementById('compare-frameworks').click()")
    wait_for("the table", lambda: cells(browser))
    assert "framework" not in server.queries[0], "which there are"
    assert server.queries[-1] == {"framework": ["PyTorch"]}, "the first"
    assert console_errors(browser) == []


def test_versions_side_by_side(browser, fixture):
    opened(fixture, browser)
    wait_for("the table", lambda: cells(browser))
    heads = all_of(browser, "#frameworks thead th", "each.innerText")
    assert [head.split()[0] for head in heads] == ["2.4.1", "2.4.1", "2.15.0"], "2.15 comes after 2.4"
    assert "on the CPU, AMD <i>EPYC</i>" in heads[0] and "on the GPU, NVIDIA H100" in heads[1]
    shown = cells(browser)
    first, gpu, second = shown["pytorch_index_put"]
    assert first.startswith("deterministic") and first.count("documents: UDA (PyTorch 2.2-2.7, of GPUs)") == 1
    assert "documents: UDA (PyTorch 2.2-2.7)" in gpu
    assert second.startswith("NS") and "other bits than 2.4.1" in second and "documents: nothing of this version" in second
    assert "default varies 2/3" in first
    assert shown["pytorch_index_copy"][2] == "not there"
    assert "index_copy has no deterministic implementation <b>here</b>" in shown["pytorch_index_copy"][0]
    assert text(browser, "#frameworks .summary").startswith("PyTorch 2.4.1 on the CPU: 3 operations, 2 vary, 1 earned a code, 1 cannot")
    assert all_of(browser, "#frameworks a.badge", "each.dataset.evidence")[0] == "/v1/cells/1"
    js(browser, "document.querySelector('#frameworks .words summary').click()")
    assert RAISES in text(browser, "#frameworks .words"), "in its own words, whole"
    assert console_errors(browser) == []


def test_what_a_cpu_did_is_never_green_where_documents_speak_of_gpus(browser, fixture):
    server = opened(fixture, browser, "/?operations=pytorch&sources=pytorch")
    wait_for("the table", lambda: cells(browser))
    assert server.queries[-1] == {"framework": ["PyTorch"], "table": ["pytorch"]}
    badges = all_of(browser, "#frameworks a.badge", "[each.innerText, each.className]")
    assert badges == [["CPU only: deterministic", "badge elsewhere"], ["deterministic", "badge solved"], ["CPU only: NS", "badge elsewhere"]]
    assert text(browser, "#frameworks .workload") == "torch.index_put"
    assert "neither confirms nor refutes them" in text(browser, "#frameworks .about")
    assert "solved" not in badges[0][1] and all_of(browser, "#frameworks a.badge", "!!each.querySelector('.icon')") == [False, True, False]
    label = all_of(browser, "#frameworks a.badge", "each.getAttribute('aria-label')")[0]
    assert "Measured on the CPU, of which the documents do not speak here" in label, "read without colour and without sight"


def test_what_was_witnessed_has_its_own_look_and_no_code(browser, fixture):
    witness = {"text": "one digest in 3 runs: torch_<b> default varied beside it", "workload": "pytorch_index_put", "variant": "default",
               "runs": 3, "distinct_digests": 2, "conditions": "", "href": "/v1/cells/3"}
    own = still("pytorch_bmm", "2.4.1", OLD)
    own["variants"][0]["witness"] = witness
    switched = still("pytorch_mm", "2.4.1", OLD)
    switched["variants"][1]["witness"] = witness  # the control has none
    backwards = still("pytorch_sum", "2.4.1", OLD)
    backwards["variants"][0]["witness"] = witness
    backwards["variants"][1]["verdict"] = "varies"  # so it cannot be said that it did not vary
    opened(fixture, browser, lines=[own, switched, backwards])
    wait_for("the table", lambda: cells(browser))
    badges = all_of(browser, "#frameworks a.badge", "[each.innerText, each.className]")
    assert badges == [["witnessed", "badge witnessed"], ["inconclusive", "badge inconclusive"],
                      ["inconclusive", "badge inconclusive"]]
    label = all_of(browser, "#frameworks a.badge", "each.getAttribute('aria-label')")[0]
    assert "torch_<b> default varied beside it: differences can be seen here, which does not show that this operation has none" in label
    assert "which is not a code" in text(browser, "#frameworks .about") and "0 earned a code" in text(browser, "#frameworks .summary")
    looks = [js(browser, "return getComputedStyle(document.querySelector(arguments[0])).backgroundColor", f"#frameworks a.badge.{kind}")
             for kind in ("witnessed", "inconclusive")]
    assert looks[0] != looks[1] and console_errors(browser) == []


def test_columns_of_one_version_are_told_apart(browser, fixture):
    opened(fixture, browser, lines=[still("pytorch_bmm", "2.4.1", OLD), {**still("pytorch_bmm", "2.4.1", NEW), "threads": 4}])
    wait_for("the table", lambda: cells(browser))
    heads = all_of(browser, "#frameworks thead th", "each.innerText")
    assert ["2 threads, environment aaaaaaaa" in heads[0], "4 threads, environment bbbbbbbb" in heads[1]] == [True, True], heads


def test_filter_and_order(browser, fixture):
    opened(fixture, browser)
    wait_for("the table", lambda: cells(browser))
    assert list(cells(browser)) == ["pytorch_bmm", "pytorch_index_copy", "pytorch_index_put"]
    js(browser, """const order = document.querySelectorAll('#frameworks select')[2];
        order.value = 'varies'; order.dispatchEvent(new Event('change'));""")
    wait_for("the order", lambda: list(cells(browser)) == ["pytorch_index_copy", "pytorch_index_put", "pytorch_bmm"])
    js(browser, "document.querySelector('#frameworks input').click()")
    wait_for("the filter", lambda: list(cells(browser)) == ["pytorch_index_copy", "pytorch_index_put"])


def test_another_framework_is_chosen_and_stays_in_the_address(browser, fixture):
    server = opened(fixture, browser)
    wait_for("the table", lambda: cells(browser))
    js(browser, """const select = document.querySelector('#frameworks select');
        select.value = 'JAX'; select.dispatchEvent(new Event('change'));""")
    wait_for("it", lambda: list(cells(browser)) == ["jax_dot"])
    assert server.queries[-1] == {"framework": ["JAX"]}
    assert "operations=JAX" in js(browser, "return location.search")


def test_empty_unknown_and_out_of_reach(browser, fixture):
    server = opened(fixture, browser, lines=[])
    wait_for("nothing", lambda: "Nothing is installed and measured yet" in text(browser, "#frameworks"))
    assert "No operation of PyTorch was measured here." in text(browser, "#frameworks .summary")
    server.state["operations"] = {"": all_lines()}
    server.problem = ("/v1/operations", 503, "it is busy")
    js(browser, "document.querySelector('#frameworks input').click()")
    wait_for("the reason", lambda: "it is busy" in text(browser, "#frameworks .notice"))


def test_a_row_of_the_documents_leads_there(browser, fixture):
    server = opened(fixture, browser, "/?cell=conv_wgrad/model/tf-1.14")
    for row in server.state["matrix"]["rows"]:
        row["operations"] = ["pytorch_conv2d_bwd"]
    open_page(browser, server.url, "/?cell=conv_wgrad/model/tf-1.14")
    wait_for("the link", lambda: text(browser, "#detail [data-operations]"))
    js(browser, "document.querySelector('#detail [data-operations]').click()")
    wait_for("the table", lambda: cells(browser))
    assert "operations=pytorch" in js(browser, "return location.search")
    assert console_errors(browser) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", ["/?operations=PyTorch", "/?operations=PyTorch&sources=pytorch"])
def test_it_fits_every_width(browser, fixture, path, width, scheme):
    resize(browser, width, 844)
    set_scheme(browser, scheme)
    opened(fixture, browser, path)
    wait_for("the table", lambda: cells(browser))
    assert overflow(browser) <= 0
