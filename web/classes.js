// Digest classes: a table with a letter a cell, and its pages of columns.

import { el, setText } from "./dom.js";
import { count, counted, ownPath, verdictKind } from "./format.js";

/** Where a table of classes is in its pages: the cursors that led to it. */
export function createPages(node, turned) {
  let cursors = [""];
  const turn = (next) => {
    cursors = next;
    turned();
  };
  return {
    cursor: () => cursors.at(-1),
    /** From the first page, without reading. */
    reset: () => (cursors = [""]),
    /** Shows which columns VIEW has, and the ways to others; WHAT names them. */
    show(view, what) {
      const one = cursors.length === 1 && !view.next;
      const button = (text, next) => el("button", { type: "button", text, onclick: () => turn(next) });
      node.hidden = one;
      node.replaceChildren(
        ...(one ? [] : [el("span", { text: `${count(view.columns.length)} of ${counted(view.column_count, what)}` })]),
        ...(cursors.length > 1 ? [button("‹ before", cursors.slice(0, -1))] : []),
        ...(view.next ? [button("next ›", [...cursors, view.next])] : []),
      );
    },
  };
}

/** The table of VIEW, as /v1/matrix has it.  CAPTION says what it is; BELOW(column): what
 *  stands below a column's title, or nothing. */
export function classesTable(view, caption, below = () => null) {
  const heads = view.columns.map((column) =>
    el(
      "th",
      { scope: "col", title: column.id, class: column.id === "majority" ? "majority" : null },
      el("span", { text: column.title || column.id.slice(0, 8) }),
      below(column),
    ),
  );
  const rows = view.groups.flatMap((group) => [
    el("tr", {}, el("th", { scope: "rowgroup", class: "workload", colspan: view.columns.length + 1, text: group.workload })),
    ...group.rows.map((row) => el("tr", {}, caseHead(row), ...row.cells.map((cell, at) => cellOf(cell, row, view.columns[at])))),
  ]);
  return el(
    "table",
    { class: "classes" },
    el("caption", { class: "hidden", text: caption }),
    el("thead", {}, el("tr", {}, el("td"), ...heads)),
    el("tbody", {}, ...rows),
  );
}

/** What to say where VIEW has no row. */
export function emptyText(view, differing) {
  if (view.columns.length === 0) return "Nothing has been run yet.";
  return differing ? "No case has more than one class: equal bits everywhere." : "Nothing has been run yet.";
}

/** The headline of VIEW into NODE. */
export function showHeadline(node, view) {
  setText(node, `${view.headline}.`);
}

/** "ordered small float32 seed 1", and whose it is where it is not ours. */
export function caseText(row) {
  const whose = row.subject === "model" || !row.subject ? "" : ` (${row.subject_name ?? "unknown"})`;
  const version = row.version > 1 ? ` v${row.version}` : "";
  return `${row.variant}${whose} ${row.size} ${row.dtype} seed ${row.seed}${version}`;
}

function caseHead(row) {
  return el("th", { scope: "row", text: caseText(row) });
}

// A letter alone is green; whatever is not reproducible now keeps its sign and its words.
function cellOf(cell, row, column) {
  if (!cell) return el("td", {}, el("span", { class: "badge unmeasured", text: "·", title: "not measured there" }));
  const path = ownPath(cell.href);
  const devices = cell.devices > 1 ? `, ${counted(cell.devices, "device")}` : "";
  const title = `${cell.verdict}${cell.digest ? `, digest ${cell.digest}` : ""}, ${counted(cell.runs, "run")}${devices}`;
  const label = `${row.workload ?? ""} ${row.variant}, ${column.title || column.id}: ${cell.mark}, ${title}`;
  return el(
    "td",
    {},
    el(path ? "a" : "span", {
      class: `badge ${verdictKind(cell.verdict)}`, href: path, "data-evidence": path, text: cell.mark, title, "aria-label": label,
    }),
  );
}
