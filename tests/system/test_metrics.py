"""GET /metrics: both formats, and what it says of a case that no longer gives the bits it gave."""
import re
import shutil
import sys

import pytest

from service import ROOT, Service

sys.path.insert(0, str(ROOT / "tests" / "fixtures" / "frameworks"))
import tiny  # noqa: E402

PROMETHEUS = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75," \
             "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
VALUE = r"-?\d+(\.\d+)?(e[+-]\d+)?"
LABELS = r'\{[a-z_]+="([^"\\\n]|\\["\\n])*"(,[a-z_]+="([^"\\\n]|\\["\\n])*")*\}'


def scrape(service):
    """{series with labels: value}"""
    lines = [line for line in service.get("/metrics").splitlines() if not line.startswith("#")]
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines)}


def families(text):
    """{name: (type, [lines of its series])}, in the order of the text; each stands in one piece."""
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in found, f"{name} is in two pieces"
            found[name] = [None, []]
        elif line.startswith("# TYPE "):
            assert line.split()[2] == name
            found[name][0] = line.split()[3]
        elif line != "# EOF":
            found[name][1].append(line)
    return found


class Tiny:
    """A service with a framework whose sums begin with what a file says."""

    def __init__(self, folder):
        self.folder = folder
        self.start_file = folder / "start"
        self.begin_with("0.0")
        self.service = Service(folder / "service", options=["--no-survey"], config={
            "stacks": [{"name": "tiny", "worker": str(folder / "tiny" / "worker")}]})
        self.install("1.0")

    def begin_with(self, number):
        self.start_file.write_text(number)

    def install(self, version):
        """Instead of what there is."""
        shutil.rmtree(self.folder / "tiny", ignore_errors=True)
        tiny.stack(self.folder / "tiny", version, start=f"float(open({str(self.start_file)!r}).read())")

    def start(self):
        self.service.start()
        return self

    def measure(self):
        job = self.service.post_job(workloads=["tiny_total"], runs=3, iterations=2)
        assert self.service.finish_job(job)["state"] == "finished"


@pytest.fixture
def planted(tmp_path):
    host = Tiny(tmp_path).start()
    yield host
    if host.service.process:
        assert host.service.stop() == 0, host.service.log.read_text()[-3000:]


def test_two_formats_say_the_same(planted):
    planted.measure()
    planted.begin_with("1e-9")
    planted.measure()
    _, headers, text = planted.service.request("GET", "/metrics")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    _, headers, opened = planted.service.request("GET", "/metrics", headers={"Accept": PROMETHEUS})
    assert headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert opened.endswith("\n# EOF\n") and "# EOF" not in text
    plain = families(text)
    assert {name.removesuffix("_total") if kind == "counter" else name: kind
            for name, (kind, _) in plain.items()} == {name: kind for name, (kind, _) in families(opened).items()}
    for name, (kind, lines) in plain.items():
        assert (kind == "counter") == name.endswith("_total"), name
        for line in lines:
            assert re.fullmatch(f"{name}({LABELS})? {VALUE}", line), line
    assert plain["reprod_cell_regressed_timestamp_seconds"][1]


@pytest.mark.long
def test_other_bits_of_the_same_environment_are_a_regression_until_it_is_gone(planted):
    service = planted.service
    new = scrape(service)
    assert new['reprod_cells_regressed{verdict="varies"}'] == 0
    assert new['reprod_drift_cases{kind="bits_changed"}'] == 0
    assert not any(value for series, value in new.items() if "regressed" in series or "drift" in series)
    planted.measure()
    assert scrape(service)['reprod_cells{verdict="reproducible"}'] == 1
    assert not any(value for series, value in scrape(service).items() if "regressed" in series)

    planted.begin_with("1e-9")
    planted.measure()
    found = scrape(service)
    assert found['reprod_cells_regressed{verdict="varies"}'] == 1
    [listed] = [series for series in found if series.startswith("reprod_cell_regressed_timestamp_seconds{")]
    cell = service.items("/v1/runs?variant=deterministic")[0]["cell"]
    [environment] = service.get("/v1/environments")["items"]
    assert listed == (f'reprod_cell_regressed_timestamp_seconds{{cell="{cell}",workload="tiny_total",'
                      'variant="deterministic",size="small",dtype="float32",seed="1",'
                      f'environment="{environment["id"]}",verdict="varies"}}')

    # The same again is no cure, and neither is a start anew; what is measured in another environment is.
    planted.begin_with("0.0")
    planted.measure()
    assert service.stop() == 0
    planted.install("2.0")
    planted.start()
    assert scrape(service)['reprod_cells_regressed{verdict="varies"}'] == 1
    planted.measure()
    assert scrape(service)['reprod_cells_regressed{verdict="varies"}'] == 0
    assert scrape(service)['reprod_cells{verdict="varies"}'] == 3, "it is not forgotten"


def test_a_stack_that_is_gone_is_not_in_use(planted):
    service = planted.service
    planted.measure()
    planted.begin_with("1e-9")
    planted.measure()
    assert service.stop() == 0
    service.config.write_text(service.config.read_text().replace('"name": "tiny"', '"name": "other"'))
    service.start()
    assert scrape(service)['reprod_cells_regressed{verdict="varies"}'] == 0
