#!/usr/bin/env python3
"""Thousands of seeded fleets through the real service: one of eight devices is wrong, and its first survey must
name it, wherever one looks, and nobody else; beside them fleets without a wrong device, and halves that differ.

    campaign.py [--fleets 1000] [--seed 1] [--kinds "fake agents"] [--result fleets.json]

Many fleets share a service, each in an environment of its own.  What failed is printed with what makes it again:
--seed S --kinds K --only N."""
import argparse
import collections
import concurrent.futures
import importlib.util
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system"), str(HERE.parent / "reliability"), str(HERE.parent / "web")]
import fleet_judge as judge  # noqa: E402
import fleet_kinds as kinds  # noqa: E402
import fleet_truths as truths  # noqa: E402
from results import FOLDER, machine, write_result  # noqa: E402
from service import Service  # noqa: E402

BATCH = 20  # fleets in one service
SURVEY_S = 300
SHOWN = 20  # failures that a result has in full
OVER = ("passed", "dissents", "inconclusive")
QUIET = {"background": {"budget_percent": 0}}


def surveyed(service, devices):
    """Whether all devices are there and were screened by the first survey."""
    metrics = service.get("/metrics")
    return sum(int(line.rsplit(" ", 1)[1]) for line in metrics.splitlines()
               if any(line.startswith(f'reprod_devices_screened{{state="{state}"}}') for state in OVER)) >= devices


def wait_for_survey(service, devices):
    """Gives up with what a look at the service shows."""
    try:
        service.wait(lambda: surveyed(service, devices), "the first survey", SURVEY_S)
    except AssertionError as error:
        waiting = [device["id"] for device in service.items("/v1/devices")
                   if not device["screening"] or device["screening"]["state"] not in OVER]
        away = [host for host in service.get("/v1/hosts")["items"] if not host["online"]]
        jobs = [(job["state"], job["progress"]) for job in service.items("/v1/jobs")]
        open_runs = [(run["id"], run["device"], run["started_at"]) for run in service.items("/v1/runs") if not run["outcome"]]
        raise AssertionError(f"{error}\nnot screened: {waiting}\naway: {away}\njobs: {jobs}\nopen: {open_runs[:20]}") from error


def measure(kind, fleets, folder, look=None):
    """(answers, failures by the fleet's number, runs) of a service with FLEETS; LOOK(service, answers): at its page."""
    service = Service(folder / "service", config={"hosts": kinds.hosts(kind, folder, fleets), **QUIET}).start(ready=False)
    devices = sum(len(fleet.devices) for fleet in fleets)
    listener = judge.Listener(service, devices)
    try:
        wait_for_survey(service, devices)
        answers = judge.Answers(service, listener)
        jobs = [service.get(f"/v1/jobs/{job['id']}") for job in service.items("/v1/jobs")]
        found = {fleet.number: judge.failures(answers, fleet) for fleet in fleets}
        joint = judge.joint_failures(answers, fleets)
        joint.expect("jobs", [job["survey"] for job in jobs], [True])
        if look:
            joint += look(service, answers)
    finally:
        listener.stop()
        code = service.stop()
    joint.expect("exit code", code, 0)
    if code != 0:
        joint.append("its log ends with " + service.log.read_text(errors="replace")[-1500:])
    joint.expect("fsck", service.fsck()[0], 0)
    found[None] = joint
    return answers, found, sum(job["progress"]["runs_done"] for job in jobs)


def look_at_page(browser, fleet):
    """A function that looks at what a browser shows of FLEET."""
    from page import all_of, open_page, text, wait_for  # selenium is not everywhere

    def look(service, answers):
        failed = judge.Failures()
        url = f"http://127.0.0.1:{service.port}"
        for cell in answers.cells_of(fleet):
            named = sorted(fleet.wrong_in(cell["variant"])) if fleet.what in truths.WRONG else []
            if cell["variant"] == truths.CONTROL or cell["seed"] not in (1, "1"):
                continue
            open_page(browser, url, f"/?evidence={cell['id']}")
            wait_for("the cell", lambda: text(browser, "#cell .badge.big"))
            verdict = text(browser, "#cell .badge.big").strip()
            wrong = fleet.wrong_in(cell["variant"])
            failed.expect("the page's verdict", verdict, "devices disagree" if wrong else "reproducible")
            shown = all_of(browser, "#cell .devices-dissents tbody tr", "each.children[0].innerText")
            failed.expect("who dissents on the page of a cell", sorted(shown), named)
        [environment] = {cell["environment"] for cell in answers.cells_of(fleet)}
        open_page(browser, url, f"/?devices=shown&environment={environment}")
        wait_for("the letters", lambda: all_of(browser, "#devices .classes .badge", "each.textContent"))
        marked = [letter for letter in all_of(browser, "#devices .classes .badge", "each.textContent") if "\N{NOT EQUAL TO}" in letter]
        failed.expect("marks on the page", len(marked), sum(fleet.named().values()))
        listed = set(all_of(browser, ".dissenters summary code", "each.textContent"))
        failed.expect("dissenters on the page", listed & set(fleet.devices), set(fleet.named()))
        return failed
    return look


class Campaign:
    def __init__(self, options):
        self.options = options
        self.failures, self.results = [], []
        self.browser = None
        self.anew = 0  # streams that were left behind; what they were not told was read from the database

    def batch(self, kind, fleets, number):
        look = None
        if self.browser and number % self.options.page_every == 0:
            fleet = fleets[number // self.options.page_every % len(fleets)]
            look = look_at_page(self.browser, fleet)
        with tempfile.TemporaryDirectory(prefix="fleets-") as folder:
            try:
                answers, found, runs = measure(kind, fleets, pathlib.Path(folder), look)
                self.anew += answers.anew
            except Exception as error:  # pylint: disable=broad-except
                found, runs = {None: [f"{type(error).__name__}: {error}"]}, 0
        return found, runs, bool(look)

    def tell(self, kind, fleets, found):
        for number, failed in found.items():
            what = "all fleets of a service" if number is None else next(f.what for f in fleets if f.number == number)
            for text in failed:
                self.failures.append({"kind": kind, "fleet": number, "what": what, "failure": text})
            if failed:
                only = f"{fleets[0].number}..{fleets[-1].number}" if number is None else number
                print(f"FAILED {kind}, {what}: --seed {self.options.seed} --kinds '{kind}' --only {only}",
                      *failed[:5], sep="\n    ", flush=True)

    def run(self, kind):
        fleets = truths.fleets(self.options.seed, self.options.fleets, kinds.KINDS[kind][1])
        if self.options.only:
            first, _, last = self.options.only.partition("..")
            fleets = [fleet for fleet in fleets if int(first) <= fleet.number <= int(last or first)]
        batches = [fleets[at:at + BATCH] for at in range(0, len(fleets), BATCH)]
        self.anew = 0
        begun, runs, pages, failed_fleets = time.monotonic(), 0, 0, set()
        with concurrent.futures.ThreadPoolExecutor(self.options.services) as pool:
            futures = {pool.submit(self.batch, kind, batch, n): batch for n, batch in enumerate(batches)}
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                found, made, looked = future.result()
                self.tell(kind, futures[future], found)
                failed_fleets |= {(number, futures[future][0].number) for number, failed in found.items() if failed}
                runs, pages = runs + made, pages + looked
                if done % 10 == 0 or done == len(batches):
                    print(f"{kind}: {done} of {len(batches)} services, {runs} runs, {len(failed_fleets)} failed, "
                          f"{time.monotonic() - begun:.0f} s", flush=True)
        of = collections.Counter(fleet.what for fleet in fleets)
        self.results.append({
            "kind": kind, "one_wrong": sum(of[what] for what in truths.WRONG),
            "controls": sum(of[what] for what in truths.CONTROLS), "of": dict(of),
            "hosts": dict(sorted(collections.Counter(len(fleet.hosts) for fleet in fleets).items())),
            "devices": sum(len(fleet.devices) for fleet in fleets), "runs": runs, "services": len(batches),
            "pages": pages, "streams_begun_anew": self.anew, "seconds": round(time.monotonic() - begun), "failed": len(failed_fleets)})

    def summary(self):
        return {"seed": self.options.seed, "kinds": self.results, "failed": len(self.failures),
                "failures": [f"{each['kind']}, fleet {each['fleet']} ({each['what']}): {each['failure']}"
                             for each in self.failures[:SHOWN]]}


def start_browser():
    try:
        spec = importlib.util.spec_from_file_location("web_conftest", HERE.parent / "web" / "conftest.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.start_browser()
    except BaseException as error:  # pytest.skip is no Exception
        print(f"pages are not looked at: {error}", flush=True)
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=1000, help="of each kind, with one wrong device")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="*", choices=kinds.KINDS, default=list(kinds.KINDS))
    parser.add_argument("--only", help="fleet N, or N..M")
    parser.add_argument("--services", type=int, default=2, help="at a time")
    parser.add_argument("--page-every", type=int, default=8, help="services of which one page is looked at; 0: none")
    parser.add_argument("--result", type=pathlib.Path)
    options = parser.parse_args()
    campaign = Campaign(options)
    begun = machine(f"make fleets FLEETS={options.fleets} SEED={options.seed}")
    campaign.browser = start_browser() if options.page_every else None
    try:
        for kind in options.kinds:
            campaign.run(kind)
            if options.result:  # what is done is kept
                write_result(options.result, {**begun, **campaign.summary()})
    finally:
        if campaign.browser:
            campaign.browser.quit()
    print(*campaign.results, f"{len(campaign.failures)} failures", sep="\n")
    return bool(campaign.failures)


if __name__ == "__main__":
    sys.exit(main())
