"""What the page shows, in a real browser."""

import json

import pytest

import fixture_data
from conftest import resize, set_scheme
from page import all_of, cell, centre, console_errors, js, open_page, overflow, text, wait_for

KINDS = {"solved", "unsolved", "inconclusive", "unmeasured", "stale", "failing", "unsupported", "declared", "absent", "no_model"}


def test_table_is_filled(browser, site):
    open_page(browser, site)
    kinds = all_of(browser, ".cell", "each.dataset.kind")
    heads = js(browser, "return document.querySelectorAll('.matrix tbody th[scope=row]').length")
    columns = js(browser, "return document.querySelectorAll('.matrix thead th[scope=col]').length")
    assert set(kinds) <= KINDS
    assert len(kinds) == heads * (columns - 1) > 0
    assert console_errors(browser) == []


def test_cells_say_what_the_api_says(browser, fixture):
    open_page(browser, fixture().url)
    assert cell(browser, "conv_wgrad", "tf-1.14")["word"] == "TCD or TDP"
    assert cell(browser, "conv_wgrad", "tf-1.14")["mark"] == "model agrees"
    assert cell(browser, "ctc_loss", "tf-2.2")["kinds"] == ["unsolved"]
    assert cell(browser, "softmax_xent", "tf-2.2")["word"] == "unmeasured"
    assert cell(browser, "conv_wgrad", "ngc-20.03")["kinds"] == ["absent"]
    costs = all_of(browser, ".facts td:last-child", "each.innerText")
    assert "1.06 ×" in costs and "–" in costs
    swatches = all_of(browser, ".facts .digest", "[each.querySelector('code').innerText, each.firstChild.innerHTML]")
    same = [swatch for code, swatch in swatches if code == fixture_data.digest("bias_add_bwd")[:8]]
    assert len(same) == 2 and same[0] == same[1] and "rgb" in same[0]
    assert len({swatch for _, swatch in swatches}) == len({code for code, _ in swatches}) > 2


def test_bits_that_must_equal_or_differ(browser, fixture):
    server = fixture()
    relations = [("equal", "equal", "equals other, as it must"),
                 ("different", "different", "differs from other, as it must"),
                 ("equal", "different", "differs from other (tiny, float32, seed 7), but must equal it"),
                 ("different", "equal", "equals other (tiny, float32, seed 7), but must differ from it"),
                 ("different", None, "must differ from other: not known yet")]
    for shown, (expected, seen, _) in zip(server.state["matrix"]["variants"], relations):
        shown["relation"] = {"variant": "other", "expected": expected, "seen": seen,
                             "case": seen and {"size": "tiny", "dtype": "float32", "seed": "7"}}
    open_page(browser, server.url)
    notes = all_of(browser, ".facts td[data-name=Bits]", "[each.innerText, !!each.querySelector('.failing')]")
    assert len(notes) > len(relations)
    for (note, alarm), (_, _, words) in zip(notes, relations):
        assert words in note and alarm == ("but" in words), note
    assert not any(alarm or "must" in note for note, alarm in notes[len(relations):])


def test_the_page_says_whose_computation_it_shows(browser, fixture):
    """In a line, and at every row: what a model earned is nobody else's."""
    open_page(browser, fixture().url)
    assert text(browser, "#matrix-headline") == (
        "15 codes of reprod's own models; neither TensorFlow nor cuDNN took part.")
    assert "cuDNN: none of 16 codes measured." in text(browser, "#matrix-summary")
    rows = all_of(browser, ".matrix tbody tr", """[each.className, each.querySelector('.subject').innerText,
        [...each.querySelectorAll('.cell')].map((cell) => cell.dataset.kind)]""")
    assert {kind for name, who, kinds in rows if who != "our models" for kind in kinds} == {"unmeasured", "absent"}
    assert {who for name, who, _ in rows if name == "source"} == {"cuDNN", "TensorFlow"}
    assert {who for name, who, _ in rows if name == "beside"} == {"our models"}
    whose = all_of(browser, ".facts tbody td[data-name=Measured]", "each.innerText")
    assert whose and set(whose) == {"our models"}
    filled = js(browser, "return getComputedStyle(document.querySelector('.badge.solved')).backgroundColor")
    assert cell(browser, "conv_wgrad", "tf-1.14")["colour"] != filled


def test_a_models_agreement_is_the_models(browser, fixture):
    """Right below a row of cuDNN, nothing reads as cuDNN's."""
    open_page(browser, fixture("troubled").url)
    marks = all_of(browser, ".matrix .of-model .mark", "each.innerText")
    assert {mark for mark in marks if mark} == {"model agrees", "model differs"}
    assert all(all_of(browser, ".matrix .mark", "each.scrollWidth <= each.clientWidth"))
    assert cell(browser, "conv_wgrad", "tf-1.14")["label"].endswith("our model agrees with the documents")
    assert "our model does not agree with the documents" in cell(browser, "maxpool_bwd", "tf-2.2")["label"]
    said = js(browser, """return import("/matrix.js").then(({agreement, agreementMark}) => {
        const row = {subject: "library", subject_name: "cuDNN", is_source: true};
        return [agreementMark(row, {agrees: true}, "solved"), agreement(row, {agrees: false}, "unsolved"),
                agreement(row, {agrees: true}, "unmeasured"), agreementMark(row, {agrees: null}, "solved")]})""")
    assert said == ["cuDNN agrees", "cuDNN does not agree with the documents", "", ""]


def test_no_figure_is_told_of_no_cells(browser, fixture):
    open_page(browser, fixture().url)
    said = js(browser, """return import("/matrix.js").then(({matrixSummary}) => matrixSummary({counts: [
        {subject: "framework", subject_name: "F", cells: 0, measured: 0},
        {subject: "library", subject_name: "L", cells: 1, measured: 0},
        {subject: "model", subject_name: null, cells: 1, measured: 1, variants: 1, as_documented: 1}]}))""")
    assert said == ["F: no code that could be measured.", "L: none of 1 code measured.",
                    "our models: 1 of 1 code measured, from 1 variant; 1 as the documents say."]


def test_how_often_a_varying_variant_departs(browser, fixture):
    server = fixture()
    words = "another digest than the most frequent one in 12 of 50 runs (13-39 %) and in 7 of 950 iterations"
    for each in server.state["matrix"]["variants"]:
        if each["verdict"] == "varies":
            each["departures"] = {"runs": {"departed": 12, "of": 50}, "text": words}
    open_page(browser, server.url)
    shown = set(map(tuple, all_of(browser, ".facts tbody tr", """[each.querySelector('[data-name=Verdict]').innerText,
        each.querySelector('[data-name="A run differs"]').innerText,
        each.querySelector('[data-name="A run differs"]').title]""")))
    assert shown == {("varies", "12 of 50", words), ("reproducible", "< 5.9 %", "")}
    js(browser, "document.querySelector(arguments[0]).click()", "[data-key='ctc_loss/model/tf-2.1']")
    wait_for("the panel", lambda: text(browser, "#detail").count(words) == 1)


UNEARNED = [
    {"state": "stale"}, {"state": "failing"}, {"state": "unmeasured"}, {"state": "inconclusive"},
    {"state": "unsupported"}, {"state": "solved"}, {"state": "fabulous"}, {"state": None},
    {"code": None}, {"code": ""}, {"evidence": None},
    {"evidence": {"runs": 0, "iterations": 0, "devices": 0, "difference_probability_upper_bound": 1}},
]


def test_only_a_measured_code_looks_solved(browser, fixture):
    server = fixture()
    open_page(browser, server.url)
    solved = cell(browser, "conv_wgrad", "tf-2.1")
    assert solved["kinds"] == ["solved"]
    for changes in UNEARNED:
        server.state["matrix"] = fixture_data.matrix()
        fixture_data.set_cell(server.state["matrix"], "conv_wgrad", "tf-2.1", **changes)
        open_page(browser, server.url, live=False)
        shown = cell(browser, "conv_wgrad", "tf-2.1")
        assert "solved" not in shown["kinds"] and "TDO" not in shown["word"], changes
        assert shown["shape"] != solved["shape"] and shown["colour"] != solved["colour"], changes
        assert "solution found" not in shown["label"], changes


@pytest.mark.parametrize("scenario", fixture_data.SCENARIOS)
def test_narrow_screen_has_no_sideways_scroll(browser, fixture, scenario):
    resize(browser, 360, 740)
    open_page(browser, fixture(scenario).url, "/?cell=conv_wgrad/model/tf-2.3")
    assert overflow(browser) == 0
    box = js(browser, "const {left, right, top, bottom} = document.querySelector('#detail').getBoundingClientRect();"
             "return [left, right, top, bottom]")
    assert box[0] >= 0 and box[1] <= 360 and box[2] > 0 and box[3] <= 740
    pinned = centre(browser, "[aria-pressed=true]")
    assert 160 < pinned["x"] < 360 and 0 < pinned["y"] < box[2]


def test_narrow_site(browser, site):
    resize(browser, 360, 740)
    open_page(browser, site)
    assert overflow(browser) == 0


CONTRAST = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                       return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = (node) => { for (; node; node = node.parentElement) {
    const c = parse(getComputedStyle(node).backgroundColor); if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } };
const poor = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  if (!own || !node.checkVisibility() || node.closest('.skip, :disabled, option, noscript')) continue;
  const a = light(parse(getComputedStyle(node).color).slice(0, 3)), b = light(ground(node));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push([node.className, node.textContent.slice(0, 40), ratio]);
}
return poor;"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser, fixture, scheme):
    set_scheme(browser, scheme)
    open_page(browser, fixture("troubled").url, "/?cell=conv_wgrad/model/tf-2.3")
    assert js(browser, CONTRAST) == []


HOSTILE = "</script><img src=x onerror=\"window.pwned=1\"><b>bold</b>'\"&amp;"


def poison(value, key=""):
    """VALUE with every text that is not an id, a number's name or a state made hostile."""
    if isinstance(value, dict):
        return {name: poison(each, name) for name, each in value.items()}
    if isinstance(value, list):
        return [poison(each, key) for each in value]
    if key in ("href",):
        return "javascript:window.pwned=1"
    if isinstance(value, str) and key not in ("id", "column", "state", "as_of", "table", "subject"):
        return value + HOSTILE
    return value


def test_hostile_text_is_text(browser, fixture):
    server = fixture("troubled")
    server.state = poison(json.loads(json.dumps(server.state)))
    server.state["jobs"][0]["request"] = {"workloads": [HOSTILE, {"a": 1}], "variants": [HOSTILE]}
    server.state["jobs"][0]["state"] = HOSTILE
    for each in server.state["workloads"]:
        each["references"] = [{"kind": HOSTILE, "id": HOSTILE, "title": HOSTILE, "url": "javascript:window.pwned=1",
                               "state": HOSTILE, "solved": HOSTILE}]
    open_page(browser, server.url, f"/?cell=%3Cimg%20src%3Dx%20onerror%3Dpwned%3D1%3E&environment=%3Cb%3E")
    js(browser, "document.querySelector('.cell.solved, .cell.unsolved').click()")
    wait_for("the panel", lambda: HOSTILE in text(browser, "#detail"))
    wait_for("the references", lambda: HOSTILE in text(browser, "#detail .references"))
    for part in (".matrix thead", "#legend", ".facts", "#jobs"):
        assert HOSTILE in text(browser, part)
    assert all_of(browser, "img", "each.getAttribute('src')") == ["favicon.svg"]
    assert js(browser, "return document.querySelectorAll('b').length") == 0
    assert js(browser, "return [...document.links].filter((a) => a.protocol === 'javascript:').length") == 0
    assert js(browser, "return window.pwned ?? null") is None
    assert console_errors(browser) == []


def note(browser, key):
    """The marks of a cell: of its footnote, and of one fact."""
    return text(browser, f"[data-key='{key}'] .note")


def test_notes_are_read_without_pointing(browser, fixture):
    server = fixture()
    for workload, said, number in (("ctc_loss", "with a defect", 2), ("softmax_xent", "a way <around>", 1),
                                   ("xla_reduction", "with a defect", 2)):
        fixture_data.set_cell(server.state["matrix"], workload, "tf-2.1", note=said, footnote=number)
    open_page(browser, server.url)
    assert all_of(browser, "#matrix-notes li", "each.innerText") == ["¹ a way <around>", "² with a defect"]
    assert js(browser, "return document.getElementById('matrix-notes').checkVisibility()")
    assert note(browser, "ctc_loss/model/tf-2.1") == "²" and note(browser, "ctc_loss/model/tf-2.2") == ""
    assert cell(browser, "ctc_loss", "tf-2.1")["label"].endswith(", note 2")


def test_what_rests_on_one_fact_says_so(browser, fixture):
    server = fixture()
    basis = "the recipes select the default itself: one measured fact"
    for row in server.state["matrix"]["rows"]:
        for each in row["cells"]:
            if (row["workload"], row["subject"], each["column"]) == ("ctc_loss", "model", "tf-2.1"):
                each["evidence"]["basis"] = basis
    open_page(browser, server.url)
    assert all_of(browser, "#matrix-notes li", "each.innerText") == [f"° {basis}"]
    assert note(browser, "ctc_loss/model/tf-2.1") == "°"
    assert basis in cell(browser, "ctc_loss", "tf-2.1")["label"]
    js(browser, "document.querySelector(arguments[0]).click()", "[data-key='ctc_loss/model/tf-2.1']")
    wait_for("the panel", lambda: basis in text(browser, "#detail"))


def test_a_source_without_a_workload_is_only_documented(browser, fixture):
    server = fixture()
    row = fixture_data.row_of(None, "torch.histc", "NS!||UDA||", "framework", "PyTorch", False)
    reference = {"kind": "documentation", "id": "PyTorch <3>", "title": "what it lists", "url": "https://docs.pytorch.org/",
                 "state": None, "solved": None}
    row.update(id="histc", subject_title="no model", references=[reference])
    for each in row["cells"]:
        each["state"] = "no_model" if each["documented"] else "absent"
    server.state["matrix"]["rows"].append(row)
    server.state["matrix"]["columns"][1]["images"] = [{"name": "NGC 19.06", "framework": "TF 1.13"}]
    open_page(browser, server.url)
    words = all_of(browser, "[data-key^='histc/framework/']", "each.querySelector('.word').innerText")
    assert words == ["[NS!]", "", "[UDA]", "", ""]
    assert all_of(browser, "[data-key='histc/framework/tf-1.14']", "each.dataset.kind") == ["no_model"]
    assert all_of(browser, "#matrix-notes li", "each.innerText")[-1].endswith(": images NGC 19.06 (TF 1.13)")
    js(browser, "document.querySelector(arguments[0]).click()", "[data-key='histc/framework/tf-1.14']")
    wait_for("the panel", lambda: "Nothing of ours stands for it" in text(browser, "#detail"))
    wait_for("its references", lambda: all_of(browser, "#detail .references a", "each.innerText") == ["PyTorch <3>"])
    assert not [path for path in server.requests if path.endswith("/null")]
    assert console_errors(browser) == []


def test_what_is_wrong_stands_above_everything(browser, fixture):
    server = fixture()
    open_page(browser, server.url)
    shown = "const node = document.getElementById('health'); return node.hidden ? null : node.innerText"
    assert js(browser, shown) is None
    server.state["conditions"] = [{"name": "hosts", "cause": "1 of 2 hosts: b: away", "since": "2026-11-23T00:00:00.000Z"}]
    wait_for("the warning", lambda: js(browser, shown) == "hosts: 1 of 2 hosts: b: away")
    server.problem = ("/readyz", 503, "storage: the disk is full")
    wait_for("the cause", lambda: js(browser, shown) == "Not ready: storage: the disk is full")
    above = "return document.getElementById('health').getBoundingClientRect().bottom <= " \
        "document.getElementById('progress').getBoundingClientRect().top"
    assert js(browser, above)
    server.problem, server.state["conditions"] = None, []
    wait_for("the end of it", lambda: js(browser, shown) is None)
