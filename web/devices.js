// Devices compared: which case has which bits on which device, and who dissents where.
// Read when somebody opens it, and again while it is open.

import { ApiError, coalesce, getJson, withQuery } from "./api.js";
import { caseText, classesTable, createPages, emptyText, showHeadline } from "./classes.js";
import { el, setNotice, setText } from "./dom.js";
import { clock, count, counted, ownPath } from "./format.js";

const RETRY_MS = 10000;
const AGAIN_MS = 15000; // thousands of devices are compared
const COLUMNS = 24;
const DISSENTERS = 20;
const PLACES = 12; // in which one dissents
const CAPTION = "Digest classes by case and device";

/** Fills DETAILS (<details>) while it is open.  CHOSEN(name) reads the page's address: its
 *  "environment" is the one whose devices are compared; "devices" opens it.  Returns
 *  refresh(now). */
export function createDevices(details, chosen, choose) {
  const [differing, each] = details.getElementsByTagName("input");
  const [summary, where, notice, dissenters, table, pager] = ["summary", "where", "notice", "dissenters", "scroller", "pager"].map((name) =>
    details.querySelector(`:scope > .${name}`),
  );
  let room = DISSENTERS;
  let environment = "";
  let shown = null;

  const read = coalesce(async () => {
    if (!details.open) return;
    if (!shown) table.replaceChildren(el("p", { class: "empty", text: "Reading what each device showed." }));
    if (environment !== chosen("environment")) pages.reset();
    environment = chosen("environment");
    try {
      const query = {
        view: "devices", environment, rows: differing.checked ? "differing" : "", columns: each.checked ? "hosts" : "",
        limit: COLUMNS, cursor: pages.cursor(),
      };
      const [view, found] = await Promise.all([
        getJson(withQuery("/v1/matrix", query)),
        getJson(withQuery("/v1/devices", { dissents: "only", limit: room })),
      ]);
      showClasses(view);
      showDissenters(found);
      setNotice(notice, "");
    } catch (error) {
      if (!(error instanceof ApiError)) console.error(error);
      setNotice(notice, `The devices could not be read: ${error.message}`);
      setTimeout(() => read(), RETRY_MS);
    }
  }, AGAIN_MS);
  const pages = createPages(pager, () => read(true));

  const showClasses = (view) => {
    if (view === shown) return; // whoever is in it stays in it
    shown = view;
    showHeadline(summary, view);
    setText(where, view.environment?.title ? `In ${view.environment.title}, the environment chosen above.` : "");
    pages.show(view, "column");
    table.replaceChildren(
      view.groups.length ? classesTable(view, CAPTION) : el("p", { class: "empty", text: emptyText(view, differing.checked) }),
    );
  };

  let listed = null;
  const showDissenters = (found) => {
    if (found === listed) return;
    listed = found;
    dissenters.hidden = found.items.length === 0;
    const more = el("button", { type: "button", text: "more devices", onclick: () => ((room += DISSENTERS), read(true)) });
    dissenters.replaceChildren(
      el("h3", { text: "Devices that dissent from their equals" }),
      el("ul", {}, ...found.items.map(dissenterOf)),
      found.next ? more : "",
    );
  };

  details.addEventListener("toggle", () => {
    choose({ devices: details.open ? "shown" : "" });
    read(true);
  });
  for (const box of [differing, each])
    box.addEventListener("change", () => {
      pages.reset();
      read(true);
    });
  details.open ||= chosen("devices") !== "";
  return (now = false) => read(now);
}

/** A device with the cells in which it dissents, which are read when somebody asks. */
function dissenterOf(device) {
  const { serial, pci_bus_id: slot } = device.attributes ?? {};
  const facts = [`on ${device.host}`, device.model, slot && `slot ${slot}`, serial && `serial ${serial}`, device.state === "online" ? "" : device.state];
  const places = el("ul");
  const node = el(
    "details",
    {},
    el(
      "summary",
      {},
      el("code", { text: device.id }),
      el("span", { class: "badge partial", text: `≠ in ${count(device.dissents)} of ${counted(device.cells, "cell")}` }),
      el("span", { class: "why", text: facts.filter(Boolean).join(", ") }),
    ),
    places,
  );
  node.addEventListener("toggle", async () => {
    if (!node.open || places.childElementCount) return;
    try {
      const { dissents_in: cells, dissents } = await getJson(`/v1/devices/${encodeURIComponent(device.id)}`);
      const some = cells.slice(0, PLACES);
      places.replaceChildren(...some.map(placeOf), dissents > some.length ? el("li", {}, `and ${count(dissents - some.length)} more: `, findings()) : "");
    } catch (error) {
      places.replaceChildren(el("li", { text: `They could not be read: ${error.message}` }));
    }
  });
  return el("li", {}, node);
}

const findings = () => el("a", { href: "/v1/findings.txt", text: "all findings, as text" });

function placeOf(cell) {
  const path = ownPath(cell.href);
  const name = `${cell.workload} ${caseText(cell)}`;
  return el(
    "li",
    {},
    path ? el("a", { href: path, "data-evidence": path, text: name }) : name,
    el("span", { class: "why", text: `since ${clock(cell.named_at)}` }),
  );
}
