// Drift between two environments, grouped as the text is: what matters first.

import { commandLine, el } from "./dom.js";
import { caseText } from "./classes.js";
import { clock, counted, ownPath, shellQuote } from "./format.js";

const KINDS = {
  varies_now: ["unsolved", "vary now"],
  devices_disagree_now: ["unsolved", "have devices that disagree now"],
  fails_now: ["failing", "fail now"],
  bits_changed: ["unsolved", "changed bits"],
  algorithm_changed: ["inconclusive", "another algorithm"],
  cost_changed: ["inconclusive", "another cost"],
  verdict_changed: ["inconclusive", "another verdict"],
  cannot_be_told_yet: ["unmeasured", "cannot be told yet"],
  disappeared: ["absent", "disappeared"],
  appeared: ["absent", "appeared"],
  varies: ["unsolved", "vary before and after"],
  computed_on_neither_side: ["failing", "computed on neither side"],
  same_bits: ["solved", "same bits"],
};
// What is listed case by case; of the rest the number says enough.
const LISTED = Object.keys(KINDS).slice(0, 9);
const CASES_SHOWN = 40; // of a kind
const JOBS_SHOWN = 5;

/** "FROM..TO", "HOST@SINCE" or "HOST@SINCE..UNTIL", as the page's address has it, of the path of a drift; "". */
export function driftKey(href) {
  const query = new URLSearchParams((href ?? "").split("?")[1]);
  if (query.get("from") && query.get("to")) return `${query.get("from")}..${query.get("to")}`;
  const until = query.get("until") ? `..${query.get("until")}` : "";
  return query.get("host") && query.get("since") ? `${query.get("host")}@${query.get("since")}${until}` : "";
}

/** The parameters of /v1/drift for such a key; null: it is none. */
export function driftQuery(key) {
  const [from, to] = key.split("..");
  if (from && to && !key.includes("@")) return { from, to };
  const at = key.lastIndexOf("@");
  const [since, until] = key.slice(at + 1).split("..");
  return at > 0 && since ? { host: key.slice(0, at), since, ...(until ? { until } : {}) } : null;
}

/** The reports of ANSWER, as /v1/drift has it. */
export function driftReports(answer) {
  if (answer.items.length === 0) return [el("p", { class: "empty", text: answer.unmeasured ? "Nothing of this host was measured before its next change." : "Nothing of this host was measured before that time." })];
  const more = answer.more > 0 ? [el("p", { class: "summary", text: `And ${counted(answer.more, "more pair")} of environments.` })] : [];
  return [...answer.items.map(reportOf), ...more];
}

function reportOf(drift) {
  const path = ownPath(drift.href);
  const kinds = Object.keys(KINDS).map((kind) => kindOf(kind, drift.groups, drift.counts ?? {})).filter(Boolean);
  const as = (suffix, text) => path && el("a", { href: path.replace("?", `${suffix}?`), text });
  return el(
    "article",
    {},
    el("h3", { text: drift.title }),
    el("p", { class: "headline", text: `${drift.headline}.` }),
    ends(drift),
    ...kinds,
    ...jobsOf(drift.to_run ?? []),
    el("p", { class: "links" }, as(".txt", "as text"), as(".csv", "as a table (CSV)")),
  );
}

function ends({ from, to }) {
  const line = (term, end) => (end ? [el("dt", { text: term }), el("dd", { text: `${end.title}, last used ${clock(end.last_seen_at)}` })] : []);
  return el("dl", { class: "ends" }, ...line("Before", from), ...line("Now", to));
}

/** Cases of one kind below what they share. */
function kindOf(kind, groups, counts) {
  const own = groups.filter((group) => group.kind === kind);
  const cases = own.reduce((sum, group) => sum + group.cases.length, 0);
  if (cases === 0) return null;
  const [colour, words] = KINDS[kind];
  const note = kind === "same_bits" && counts.same_bits_proven < counts.same_bits
    ? `of all ${counts.same_bits} with the same bits, ${counts.same_bits_proven} are proven on both sides` : "";
  const head = el("summary", {}, el("span", { class: `badge ${colour}`, text: `${cases} ${words}` }), note && el("span", { class: "why", text: note }));
  return el("details", { class: "kind", open: LISTED.includes(kind) }, head, ...(LISTED.includes(kind) ? listed(own) : [numbered(own)]));
}

function listed(groups) {
  let room = CASES_SHOWN;
  const lists = groups.map((group) => {
    const shown = group.cases.slice(0, room);
    room -= shown.length;
    return shown.length ? el("div", {}, groupHead(group), el("ul", {}, ...shown.map(caseOf))) : null;
  });
  const left = groups.reduce((sum, group) => sum + group.cases.length, 0) - CASES_SHOWN;
  return [...lists.filter(Boolean), left > 0 ? el("p", { class: "why", text: `and ${left} more: in the text and the table below` }) : ""];
}

function numbered(groups) {
  const numbers = new Map();
  for (const group of groups) {
    const name = `${group.workload}${whose(group)}`;
    numbers.set(name, (numbers.get(name) ?? 0) + group.cases.length);
  }
  return el("p", { class: "why", text: [...numbers].map(([name, number]) => `${name}: ${number}`).join(", ") });
}

function whose(group) {
  return !group.subject || group.subject === "model" ? "" : ` (${group.subject_name ?? "unknown"})`;
}

function groupHead(group) {
  const { algorithm_before: before, algorithm_after: after } = group;
  const algorithm = before && after && before !== after ? `, ${before} → ${after}` : "";
  return el("h4", { text: `${group.workload}${whose(group)}${algorithm}` });
}

function caseOf(each) {
  const links = [["before", each.before], ["now", each.after]]
    .filter(([, side]) => ownPath(side?.href))
    .map(([text, side]) => el("a", { href: ownPath(side.href), "data-evidence": ownPath(side.href), text }));
  return el(
    "li",
    {},
    `${caseText(each)}${each.is_control ? " (control)" : ""}: `,
    el("span", { class: "reason", text: each.reason }),
    ...links.flatMap((link) => [" ", link]),
  );
}

function jobsOf(jobs) {
  if (jobs.length === 0) return [];
  const command = (job) => `curl -d ${shellQuote(JSON.stringify(job))} ${location.origin}/v1/jobs`;
  const left = jobs.length - JOBS_SHOWN;
  return [
    el("h4", { text: "What would tell the rest" }),
    ...jobs.slice(0, JOBS_SHOWN).map((job) => el("div", { class: "command" }, ...commandLine("curl command for this job", command(job)))),
    left > 0 ? el("p", { class: "why", text: `and ${counted(left, "more job")}: see the text` }) : "",
  ];
}
