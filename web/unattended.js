// What is measured without being requested each time: schedules, background evidence, and the
// runs of peers.

import { el, setAttribute, setChildren, setText } from "./dom.js";
import { bound, clock, count, counted, duration } from "./format.js";

/** Keeps LIST (<ul>), its heading, NOTE and PEERSNOTE up to date: update(schedules, background,
 *  peers), as /v1/schedules, /v1/background and /v1/peers list them. */
export function createUnattended(heading, list, note, peersNote) {
  const rows = new Map(); // schedule id -> <li>

  return (schedules, background, peers) => {
    const shown = schedules.map((schedule) => {
      if (!rows.has(schedule.id)) rows.set(schedule.id, rowOf());
      fillRow(rows.get(schedule.id), schedule);
      return rows.get(schedule.id);
    });
    for (const id of rows.keys()) if (!schedules.some((each) => each.id === id)) rows.delete(id);
    heading.hidden = list.hidden = shown.length === 0;
    setChildren(list, shown);
    setText(note, backgroundText(background));
    setText(peersNote, peers.length ? `Peers: ${peers.map(peerText).join(" ")}` : "");
    peersNote.hidden = peers.length === 0;
  };
}

/** "Background evidence: …" for people; "" where nothing is known. */
function backgroundText({ budget_percent: budget, target_percent: target, every_seconds: every, items = [] }) {
  if (!Number.isFinite(budget)) return "";
  if (budget === 0) return "Background evidence is off: nothing is measured that nobody requests.";
  const spent = items.reduce((sum, { spent_seconds: seconds }) => sum + seconds, 0);
  const most = Math.max(0, ...items.map(({ share_percent: share }) => share));
  const gave = items.length
    ? ` ${counted(items.length, "device")} gave ${duration(spent)} so far, none more than ${most.toFixed(1)} %.`
    : "";
  const standing = items.filter(({ cells }) => cells > 0);
  const sum = (name) => standing.reduce((total, each) => total + each[name], 0);
  const oldest = standing.map(({ oldest_run_at: at }) => at).sort()[0];
  const stand = standing.length
    ? ` ${count(sum("below_target"))} of ${counted(sum("cells"), "bound")} are; the weakest is ${bound(
        Math.max(...standing.map(({ weakest_bound: weakest }) => weakest)))}, and the oldest last run was at ${clock(oldest)}.`
    : "";
  return `Background evidence: at most ${budget} % of each device's time, every ${duration(every)}, until a bound is below ${target} %.${stand}${gave}`;
}

/** "east: 12 runs, read up to 3 s ago." for people. */
function peerText({ name, state, cause, taken, refused, folded, lag_seconds: lag }) {
  const missing = [[refused, "refused"], [folded, "missing, which it had folded"]].filter(([runs]) => runs > 0);
  const counts = missing.map(([runs, how]) => `, ${count(runs)} ${how}`).join("");
  const seen = lag === null ? "not yet read to the end" : `read up to ${duration(lag)} ago`;
  const well = ["new", "waiting", "pulling"].includes(state);
  const wrong = well ? "" : `, ${state.replaceAll("_", " ")}${cause ? ` (${cause})` : ""}`;
  return `${name}: ${counted(taken, "run")}${counts}, ${seen}${wrong}.`;
}

function rowOf() {
  return el(
    "li",
    {},
    el("a", { class: "job-title" }),
    el("span", { class: "job-state" }),
    el("span", { class: "job-count" }),
    el("span", { class: "job-time" }),
    el("p", { class: "why" }),
  );
}

function fillRow(row, schedule) {
  const [title, state, made, next, problem] = row.children;
  setText(title, schedule.name);
  setAttribute(title, "href", `/v1/schedules/${encodeURIComponent(schedule.id)}`);
  setAttribute(row, "data-state", schedule.paused ? "paused" : "scheduled");
  setText(state, schedule.every ? `every ${schedule.every}` : `${schedule.calendar} UTC`);
  const skipped = schedule.skipped > 0 ? `, ${count(schedule.skipped)} skipped` : "";
  setText(made, `${counted(schedule.jobs, "job")}${skipped}`);
  setText(next, schedule.paused ? "paused" : `next ${clock(schedule.next_at)}`);
  setText(problem, schedule.problem ? `No job was made when it was last due: ${schedule.problem}.` : "");
  problem.hidden = !schedule.problem;
}
