// A cell: how much it varies, what each of its devices showed, who dissents, and what those
// share that agree.
// A dialog, opened by any link that is marked with data-evidence, and by the address.

import { ApiError, coalesce, getJson, withQuery } from "./api.js";
import { caseText } from "./classes.js";
import { commandLine, el, icon, setNotice } from "./dom.js";
import { digestSwatch } from "./facts.js";
import { bound, clock, count, counted, curl, ownPath, verdictKind, witnessedKind } from "./format.js";
import { spreadOf } from "./spread.js";

const RETRY_MS = 10000;
const AGAIN_MS = 5000;
const PAGE = 50;
const FEW = 16; // so many devices that agree are listed without being asked for
const STATES = {
  dissents: "dissent: their bits are not those of their equals",
  departs: "depart: why cannot be told yet",
  agrees: "agree",
};
const ONE = { dissents: "dissents: its bits are not those of its equals", departs: "departs: why cannot be told yet", agrees: "agrees" };
const COLUMNS = ["Device", "Host", "Slot", "Class", "Runs", "Iterations", "With itself", "A run differs", "First run", "Last run"];

/** Fills DIALOG (<dialog>).  CHOSEN(name) and CHOOSE(changes) read and write the page's
 *  address; its "evidence" is the number of a cell.  Returns refresh(now). */
export function createCell(dialog, chosen, choose) {
  const body = dialog.querySelector(".cell-body");
  const notice = dialog.querySelector(".notice");
  let wanted = {}; // state -> how many of its devices
  let text = "";

  const read = coalesce(async () => {
    const id = chosen("evidence");
    if (!id || !dialog.open) return;
    try {
      const path = `/v1/cells/${encodeURIComponent(id)}/devices`;
      const [first, { spread, witness }] = await Promise.all([getJson(withQuery(path, { limit: PAGE })), getJson(`/v1/cells/${encodeURIComponent(id)}`)]);
      wanted.agrees ??= first.device_count <= FEW ? FEW : 0;
      const lists = {};
      for (const state of Object.keys(STATES)) lists[state] = await some(path, state, wanted[state] ?? PAGE);
      if (chosen("evidence") !== id) return;
      setNotice(notice, "");
      show({ ...first, witness }, lists, spread);
    } catch (error) {
      if (!(error instanceof ApiError)) console.error(error);
      setNotice(notice, `The cell could not be read: ${error.message}`);
      if (!text) body.replaceChildren();
      setTimeout(() => read(), RETRY_MS);
    }
  }, AGAIN_MS);

  const show = (cell, lists, spread) => {
    const next = JSON.stringify([cell, lists, spread]);
    if (next === text) return; // whoever is in it stays in it
    text = next;
    const focused = document.activeElement?.dataset.hold;
    body.replaceChildren(...content(cell, lists, spread, (state, number) => ((wanted[state] = number), read(true))));
    if (focused) body.querySelector(`[data-hold="${focused}"]`)?.focus();
  };

  const open = () => {
    text = "";
    wanted = {};
    body.replaceChildren(el("p", { class: "empty", text: "Reading the cell." }));
    if (!dialog.open) dialog.showModal();
    read(true);
  };

  document.addEventListener("click", (event) => {
    const id = /^\/v1\/cells\/(\d+)$/.exec(event.target.closest?.("[data-evidence]")?.dataset.evidence)?.[1];
    if (!id || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    choose({ evidence: id });
    open();
  });
  dialog.addEventListener("close", () => choose({ evidence: "" }));
  // A press beside it closes it.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  if (chosen("evidence")) open();
  return (now = false) => read(now);
}

/** The first NUMBER devices in STATE: {items, more}. */
async function some(path, state, number) {
  const items = [];
  let next = "";
  while (items.length < number && next !== null) {
    const page = await getJson(withQuery(path, { state, limit: PAGE, cursor: next }));
    items.push(...page.items);
    next = page.next;
  }
  return { items, more: number === 0 || next !== null };
}

function content(cell, lists, spread, want) {
  const kind = witnessedKind(verdictKind(cell.verdict), cell.witness);
  const path = ownPath(cell.href);
  const agreeing = cell.device_count - lists.dissents.items.length - lists.departs.items.length;
  const parts = Object.keys(STATES).map((state) => {
    const known = state === "agrees" && !lists.dissents.more && !lists.departs.more;
    return group(state, lists[state], known ? agreeing : null, cell, want);
  });
  return [
    el("h2", { id: "cell-heading", text: cell.workload }),
    el("p", { class: "muted", text: `${caseText(cell)}${cell.is_control ? ", the control" : ""}` }),
    el("p", { class: `badge big ${kind}` }, icon(kind), kind === "witnessed" ? `${cell.verdict}, witnessed` : cell.verdict.replace("_", " ")),
    el("p", { class: "reason", text: cell.reason }),
    cell.agreement_words && el("p", { class: "why", text: cell.agreement_words }),
    cell.witness && el("p", { class: "witness" }, `Witnessed: ${cell.witness.text}. `, el("a", { href: ownPath(cell.witness.href), "data-evidence": cell.witness.href, text: "The witness" }), " shows that differences can be seen here, not that this case has none."),
    ...spreadOf(spread),
    el("h3", { text: cell.device_count === 1 ? "One device" : `What ${counted(cell.device_count, "device")} showed` }),
    el("ul", { class: "camps" }, ...cell.camps.map(campOf)),
    cell.more_camps > 0 && el("p", { class: "why", text: `and ${counted(cell.more_camps, "smaller camp")}` }),
    ...parts,
    path && el("p", { class: "links" }, ...[["", "cell (JSON)"], ["/evidence", "all digests (JSON)"], ["/devices.csv", "devices (CSV)"], ["/history.txt", "history"]].map(
      ([end, text]) => el("a", { href: path + end, text }))),
    path && el("div", { class: "command" }, ...commandLine("curl command for these devices", curl(`${path}/devices.txt`))),
  ].filter(Boolean);
}

/** Devices with the same bits: how many, and what they have in common. */
function campOf(camp) {
  const shares = Object.entries(camp.shares).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`);
  const names = camp.devices.join(", ") + (camp.size > camp.devices.length ? ` and ${count(camp.size - camp.devices.length)} more` : "");
  return el(
    "li",
    {},
    el("span", { class: "letter", text: camp.class ?? (camp.digest ? "…" : "≈"), title: camp.digest ?? "differ with themselves" }),
    el("strong", { text: counted(camp.size, "device") }),
    el("span", { text: `${counted(camp.runs, "run")}, ${counted(camp.iterations, "iteration")}` }),
    camp.digest ? digestSwatch(camp) : el("span", { text: "differ with themselves" }),
    el("span", { class: "why", text: `${camp.size > 1 ? "share " : ""}${shares.join(", ") || "nothing that is known"}` }),
    el("span", { class: "why names", text: names }),
  );
}

/** The devices in one state, a line each, or one line for all of them. */
function group(state, { items, more }, known, cell, want) {
  if (items.length === 0 && (!more || known === 0)) return null;
  const number = known ?? (more ? `${count(items.length)} or more` : items.length);
  const who = cell.device_count === items.length && state === "agrees" ? "All" : Number.isFinite(number) ? count(number) : number;
  const button = (text, next) => el("button", { type: "button", text, "data-hold": `${state}-more`, onclick: () => want(state, next) });
  return el(
    "section",
    { class: `devices-${state}` },
    el("h4", { text: cell.device_count === 1 ? "Its runs" : `${who} ${number === 1 ? ONE[state] : STATES[state]}` }),
    items.length ? tableOf(items, state) : null,
    more ? button(items.length ? `${PAGE} more` : "list them", items.length + PAGE) : null,
  );
}

function tableOf(items, state) {
  const heads = COLUMNS.map((text) => el("th", { scope: "col", role: "columnheader", text }));
  return el(
    "div",
    { class: "scroller", role: "region", tabindex: "0", "aria-label": `Devices that ${STATES[state]}` },
    el(
      "table",
      { class: "devices", role: "table" },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...heads)),
      el("tbody", { role: "rowgroup" }, ...items.map(lineOf)),
    ),
  );
}

function lineOf(device) {
  const consistent = device.self_consistent ? "consistent" : counted(device.distinct_digests, "digest");
  const values = [
    device.host, device.slot ?? "–", device.class ?? (device.self_consistent ? "…" : "≈"), count(device.runs), count(device.iterations), consistent,
    device.distinct_digests === 1 ? bound(device.difference_probability_upper_bound) : "yes", clock(device.first_run_at), clock(device.last_run_at),
  ];
  const title = device.serial ? `serial ${device.serial}` : null;
  return el(
    "tr",
    { role: "row" },
    el("th", { scope: "row", role: "rowheader", title, text: device.device }),
    ...values.map((text, at) => el("td", { role: "cell", "data-name": COLUMNS[at + 1], text })),
  );
}
