"""deploy/prometheus: what its files name is there, and its alerts fire when they should."""
import json
import re
import subprocess

import pytest

from prometheus import AMTOOL, FOLDER, MISSING, PROMTOOL
from test_metrics import PROMETHEUS as ACCEPT, families, scrape

RULES = (FOLDER / "rules.yml").read_text()
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())

needs_promtool = pytest.mark.skipif(not (PROMTOOL and AMTOOL), reason=MISSING)


def expressions(panels):
    return [target["expr"] for panel in panels for target in panel["targets"]]


def alerts():
    """{name: its lines}"""
    blocks = re.split(r"\n(?=  - (?:alert|record): )", RULES)
    return {block.split()[2]: block for block in blocks if block.startswith("  - alert: ")}


def tool(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **more)
    return done.returncode, done.stdout + done.stderr


def test_every_metric_that_a_file_names_is_there(service):
    there = set(families(service.get("/metrics")))
    recorded = set(re.findall(r"- record: (\S+)", RULES))
    for name, text in ("rules.yml", RULES), ("dashboard.json", json.dumps(DASHBOARD)), \
            ("README.md", (FOLDER / "README.md").read_text()):
        named = set(re.findall(r"\breprod_[a-z_]+", text))
        assert named and named <= there, f"{name}: {sorted(named - there)}"
        assert set(re.findall(r"\breprod:[a-z_0-9:]+", text)) <= recorded, name
    # What a rule compares is there from the start, unless its absence says something.
    new = {series.split("{")[0] for series in scrape(service)}
    assert {"reprod_cells_regressed", "reprod_condition", "reprod_drift_cases", "reprod_devices_dissenting"} <= new


def test_labels_that_rules_ask_for_are_there(service):
    """Of series that are there from the start: a misspelt value would never fire."""
    series = list(scrape(service))
    found = re.findall(r'(reprod_[a-z_]+)\{([a-z]+)(!?=~?)"([^"]*)"', RULES)
    assert len(found) > 5
    for name, label, operator, values in found:
        known = {match[1] for match in (re.search(rf'^{name}\{{.*?\b{label}="([^"]*)"', each) for each in series) if match}
        for value in values.split("|") if known else ():
            assert value in known, (name, label, operator, value)


def test_each_alert_says_what_to_do_and_has_a_test():
    tests = (FOLDER / "rules-test.yml").read_text()
    assert len(alerts()) > 10
    for name, block in alerts().items():
        assert re.search(r"labels: \{severity: (critical|warning|info)\}", block), name
        assert "summary:" in block and "description:" in block, name
        assert name in tests or name == "ReprodListFull", f"{name} is in no test of rules-test.yml"
        assert name in (FOLDER / "README.md").read_text(), f"{name} is not in README.md"
        for other in re.findall(r'alertname="(\w+)"', block):
            assert other == name, f"{name} goes on as {other}"


def test_the_dashboard_is_one():
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) and len({panel["title"] for panel in panels}) == len(panels)
    cells = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        own = {(x, y) for x in range(place["x"], place["x"] + place["w"])
               for y in range(place["y"], place["y"] + place["h"])}
        assert not own & cells, f"{panel['title']} lies on another one"
        cells |= own
        assert {target["refId"] for target in panel["targets"]} and panel["type"] in ("stat", "table", "timeseries")
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert target["expr"].count("$instance") >= 1, target["expr"]
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["datasource", "instance"]


@needs_promtool
def test_tools_accept_every_file(service, tmp_path):
    for command in ((PROMTOOL, "check", "config", FOLDER / "prometheus.yml"),
                    (PROMTOOL, "check", "rules", FOLDER / "rules.yml"),
                    (AMTOOL, "check-config", FOLDER / "alertmanager.yml")):
        code, said = tool(*command)
        assert code == 0, said
    # Whether what panels ask is an expression.
    panels = [expr.replace("$__rate_interval", "5m").replace("$instance", ".*") for expr in expressions(DASHBOARD["panels"])]
    (tmp_path / "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": [
        {"record": f"panel:{n}", "expr": expr} for n, expr in enumerate(panels)]}]}))
    code, said = tool(PROMTOOL, "check", "rules", tmp_path / "panels.yml")
    assert code == 0 and f"{len(panels)} rules found" in said, said
    for headers in {}, {"Accept": "text/plain"}:
        _, _, text = service.request("GET", "/metrics", headers=headers)
        code, said = tool(PROMTOOL, "check", "metrics", input=text)
        assert (code, said) == (0, ""), said
    assert service.request("GET", "/metrics", headers={"Accept": ACCEPT})[2].endswith("# EOF\n")


@needs_promtool
@pytest.mark.long
def test_each_alert_fires_and_stops():
    code, said = tool(PROMTOOL, "test", "rules", FOLDER / "rules-test.yml")
    assert code == 0, said


@needs_promtool
@pytest.mark.parametrize("listed, fires", [(49, []), (50, [{"labels": '{alertname="ReprodListFull"}', "value": 1}])])
def test_a_full_list_is_told(tmp_path, listed, fires):
    series = [{"series": f'reprod_device_dissents{{job="reprod",instance="a",device="GPU-{n}"}}', "values": "1x3"}
              for n in range(listed)]
    (tmp_path / "test.yml").write_text(json.dumps({
        "rule_files": [str(FOLDER / "rules.yml")], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": [
            {"expr": 'count by (alertname) (ALERTS{alertname="ReprodListFull"})', "eval_time": "2m", "exp_samples": fires}]}]}))
    code, said = tool(PROMTOOL, "test", "rules", tmp_path / "test.yml")
    assert code == 0, said


@needs_promtool
@pytest.mark.long
def test_a_healthy_new_service_alerts_nobody(start_service, tmp_path):
    """What it says when it is new, and when it measured something, for almost two days; then there is a backup."""
    service = start_service()
    for measured in False, True:
        if measured:
            service.finish_job(service.post_job(workloads=["selftest_pass"], runs=3, iterations=2))
        series = [{"series": (name[:-1] + "," if "{" in name else name + "{") + 'job="reprod",instance="a"}',
                   "values": f"{value:.17g}x720"} for name, value in scrape(service).items()]
        series.append({"series": 'up{job="reprod",instance="a"}', "values": "1x720"})
        (tmp_path / "test.yml").write_text(json.dumps({
            "rule_files": [str(FOLDER / "rules.yml")], "evaluation_interval": "4m",
            "tests": [{"interval": "4m", "input_series": series, "promql_expr_test": [
                {"expr": 'count(ALERTS{alertstate="firing"})', "eval_time": at, "exp_samples": []}
                for at in ("8m", "2h", "1d", "47h")]}]}))
        code, said = tool(PROMTOOL, "test", "rules", tmp_path / "test.yml")
        assert code == 0, said
