// Environments compared: which case has which bits where, and what drifted between two.
// Read when somebody opens it, and again while it is open.

import { ApiError, coalesce, getJson, withQuery } from "./api.js";
import { el, setNotice, setText } from "./dom.js";
import { counted, ownPath, verdictKind } from "./format.js";

const AGAIN_MS = 5000;
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
};
// What is listed case by case; of the rest the number says enough.
const LISTED = Object.keys(KINDS).slice(0, 8);

/** Fills DETAILS (<details>) while it is open.  CHOSEN(name) and CHOOSE(changes) read and
 *  write the page's address; its "drift" is "FROM..TO".  Returns refresh(). */
export function createEnvironments(details, chosen, choose) {
  const [differing] = details.getElementsByTagName("input");
  const [summary, notice, table, drift] = ["summary", "notice", "scroller", "drift"].map((name) =>
    details.querySelector(`:scope > .${name}`),
  );

  const read = coalesce(async () => {
    if (!details.open) return;
    try {
      showClasses(await getJson(withQuery("/v1/matrix", { view: "environments", rows: differing.checked ? "differing" : "" })));
      const [from, to] = chosen("drift").split("..");
      showDrift(to ? (await getJson(withQuery("/v1/drift", { from, to }))).items[0] : null);
      setNotice(notice, "");
    } catch (error) {
      if (!(error instanceof ApiError)) console.error(error);
      setNotice(notice, `The environments could not be read: ${error.message}`);
    }
  }, AGAIN_MS);

  const compare = (column) => {
    const [, from, to] = /from=(\w+)&to=(\w+)/.exec(column.drift) ?? [];
    choose({ drift: `${from}..${to}` });
    read(true).then(() => drift.scrollIntoView({ block: "nearest" }));
  };

  const showClasses = (view) => {
    setText(summary, `${view.headline}.`);
    const heads = view.columns.map((column) =>
      el(
        "th",
        { scope: "col", title: column.id },
        el("span", { text: column.title || column.id.slice(0, 8) }),
        column.drift && el("button", { type: "button", class: "copy", text: "what changed", onclick: () => compare(column) }),
      ),
    );
    const rows = view.groups.flatMap((group) => [
      el("tr", {}, el("th", { scope: "rowgroup", class: "workload", colspan: view.columns.length + 1, text: group.workload })),
      ...group.rows.map((row) => el("tr", {}, caseHead(row), ...row.cells.map(cellOf))),
    ]);
    const grid = el(
      "table",
      { class: "classes" },
      el("caption", { class: "hidden", text: "Digest classes by case and environment, newest environment first" }),
      el("thead", {}, el("tr", {}, el("td"), ...heads)),
      el("tbody", {}, ...rows),
    );
    const none = differing.checked ? "No row has more than one class." : "Nothing has been run yet.";
    table.replaceChildren(rows.length ? grid : el("p", { class: "empty", text: none }));
  };

  const showDrift = (found) => {
    drift.hidden = !found;
    if (!found) return;
    drift.replaceChildren(
      el("h3", { text: found.title }),
      el("p", { class: "headline", text: `${found.headline}.` }),
      ...Object.keys(KINDS).map((kind) => kindOf(kind, found.groups)).filter(Boolean),
      el("p", { class: "summary" }, el("a", { href: ownPath(found.href)?.replace("?", ".txt?") ?? "#", text: "as text" })),
    );
  };

  details.addEventListener("toggle", () => read(true));
  differing.addEventListener("change", () => read(true));
  details.open ||= chosen("drift") !== "";
  return () => read();
}

function caseHead(row) {
  const whose = row.subject === "model" ? "" : ` (${row.subject_name ?? "unknown"})`;
  return el("th", { scope: "row", text: `${row.variant}${whose} ${row.size} ${row.dtype} seed ${row.seed}` });
}

// A letter alone is green; whatever is not reproducible now keeps its sign and its words.
function cellOf(cell) {
  if (!cell) return el("td", {}, el("span", { class: "badge unmeasured", text: "·", title: "not measured there" }));
  const path = ownPath(cell.href);
  const title = `${cell.verdict}${cell.digest ? `, digest ${cell.digest}` : ""}, ${counted(cell.runs, "run")}`;
  return el("td", {}, el(path ? "a" : "span", { class: `badge ${verdictKind(cell.verdict)}`, href: path, text: cell.mark, title }));
}

function kindOf(kind, groups) {
  const cases = groups.flatMap((group) => group.cases).filter((each) => each.kind === kind);
  const [colour, words] = KINDS[kind];
  if (cases.length === 0) return null;
  const items = LISTED.includes(kind)
    ? cases.map((each) =>
        el("li", {}, `${each.workload} ${each.variant} ${each.size} ${each.dtype} seed ${each.seed}`, el("span", { class: "why", text: each.reason })),
      )
    : [];
  return el("section", {}, el("h4", {}, el("span", { class: `badge ${colour}`, text: `${cases.length} ${words}` })), el("ul", {}, ...items));
}
