// Jobs: the strip at the top (the job that runs now, or the last one) and the list.

import { el, setAttribute, setChildren, setText } from "./dom.js";
import { clock, count, counted, duration, jobTitle } from "./format.js";

const OPEN = ["queued", "running"];
const EXPECTED = "Every workload and variant will be measured as soon as a device has reported.";

/** Keeps the strip, the list and the announcer up to date.  Elements by id are the page's. */
export function createJobs() {
  const byId = (id) => document.getElementById(id);
  const rows = new Map(); // job id -> <li>
  let jobs = [];
  let announced = "";
  const none = el("li", { class: "empty", text: "No job yet." });

  const render = (surveyExpected) => {
    const shown = jobs.map((job) => {
      if (!rows.has(job.id)) rows.set(job.id, rowOf());
      fillRow(rows.get(job.id), job);
      return rows.get(job.id);
    });
    for (const id of rows.keys()) if (!jobs.some((job) => job.id === id)) rows.delete(id);
    setChildren(byId("jobs"), shown.length ? shown : [none]);
    renderStrip(surveyExpected);
  };

  const renderStrip = (surveyExpected) => {
    const open = jobs.filter((job) => OPEN.includes(job.state));
    const job = open.find((each) => each.state === "running") ?? open.at(-1) ?? jobs[0];
    const strip = byId("progress");
    setAttribute(strip, "data-state", job ? job.state : "none");
    const bar = byId("progress-bar");
    if (!job) {
      setText(byId("progress-title"), surveyExpected ? "The survey is about to start" : "No job yet");
      setText(byId("progress-count"), surveyExpected ? EXPECTED : "");
      setText(byId("progress-eta"), "");
      fillBar(bar, {});
      return;
    }
    const others = open.length > 1 ? `, ${counted(open.length - 1, "more job")} open` : "";
    setText(byId("progress-title"), `${jobTitle(job)} ${job.state}`);
    setText(byId("progress-count"), progressText(job.progress ?? {}) + others);
    setText(byId("progress-eta"), timeText(job));
    fillBar(bar, job.progress ?? {});
    announce(job);
  };

  // A screen reader hears a new state and every quarter, not every run.
  const announce = (job) => {
    const { runs_done: done, runs_total: total } = job.progress ?? {};
    const quarter = total > 0 ? Math.floor((done / total) * 4) * 25 : 0;
    const text = `${jobTitle(job)} ${job.state}${job.state === "running" ? `, ${quarter} %` : ""}`;
    if (`${job.id} ${text}` === announced) return;
    announced = `${job.id} ${text}`;
    setText(byId("announcer"), text);
  };

  return {
    /** JOBS as GET /v1/jobs lists them. */
    set(next) {
      jobs = next.map((job) => ({ ...job }));
    },
    /** An event {id, state, runs_done, runs_total, runs_failed}. */
    apply(event) {
      const job = jobs.find((each) => each.id === event.id);
      if (!job) return;
      job.state = event.state ?? job.state;
      job.progress = { ...job.progress };
      for (const name of ["runs_done", "runs_total", "runs_failed"])
        if (Number.isFinite(event[name])) job.progress[name] = event[name];
    },
    /** SURVEY_EXPECTED: nothing was ever measured here. */
    render,
  };
}

function progressText({ runs_done: done, runs_total: total, runs_failed: failed }) {
  if (!Number.isFinite(done) || !Number.isFinite(total)) return "";
  return `${count(done)} of ${counted(total, "run")}${failed > 0 ? `, ${count(failed)} failed` : ""}`;
}

function timeText(job) {
  if (job.state === "finished" || job.state === "cancelled") return clock(job.finished_at);
  if (job.state === "queued") return "waiting";
  const seconds = job.progress?.eta_seconds;
  return Number.isFinite(seconds) ? `about ${duration(seconds)} left` : "time left unknown";
}

function fillBar(bar, progress) {
  const { runs_done: done, runs_total: total, runs_failed: failed } = progress;
  const part = (value) => (total > 0 && value > 0 ? Math.min(1, value / total) : 0);
  const percent = Math.floor(part(done) * 100);
  setAttribute(bar, "aria-valuenow", total > 0 ? percent : null);
  setAttribute(bar, "aria-valuetext", total > 0 ? `${percent} %, ${progressText(progress)}` : "nothing to do");
  bar.children[0].style.setProperty("transform", `scaleX(${part(done)})`);
  bar.children[1].style.setProperty("transform", `scaleX(${part(failed)})`);
}

function rowOf() {
  return el(
    "li",
    {},
    el("a", { class: "job-title" }),
    el("span", { class: "job-state" }),
    el("span", { class: "job-count" }),
    el("span", { class: "job-time" }),
    el(
      "div",
      { class: "bar small", role: "progressbar", "aria-valuemin": "0", "aria-valuemax": "100" },
      el("span", { class: "done" }),
      el("span", { class: "failed" }),
    ),
  );
}

function fillRow(row, job) {
  const [title, state, progress, time, bar] = row.children;
  setText(title, jobTitle(job));
  setAttribute(title, "href", `/v1/jobs/${encodeURIComponent(job.id)}`);
  setAttribute(row, "data-state", job.state);
  setText(state, String(job.state));
  setText(progress, progressText(job.progress ?? {}));
  setText(time, timeText(job));
  setAttribute(bar, "aria-label", `${jobTitle(job)}: progress`);
  fillBar(bar, job.progress ?? {});
}
