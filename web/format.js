// Values to words.  Pure: no element, no request.

const NUMBER = new Intl.NumberFormat("en");

/** What each kind of cell is called.  A kind decides colour, shape and border. */
export const KINDS = {
  solved: "solution found",
  unsolved: "no solution",
  declared: "documented only",
  partial: "solution on some devices only",
  inconclusive: "inconclusive",
  unmeasured: "unmeasured",
  stale: "stale",
  failing: "failing",
  unsupported: "unsupported",
  absent: "not in the documents",
  no_model: "documented, without a model",
};

/** Codes that no profile explains. */
export const CODES = {
  DET: "deterministic without doing anything",
  NS: "no solution was seen to work",
  "NS!": "no solution, and asking for one raises an error",
};

/** {kind, word, caution} of a cell of the matrix.  The only way to "solved" is a code with
 *  runs behind it; whatever this page does not know is unmeasured. */
export function cellKind(cell) {
  if (!cell) return { kind: "absent", word: "", caution: "" };
  if (cell.state === "no_model") return { kind: "no_model", word: `[${cell.documented ?? ""}]`, caution: "" };
  if (cell.state === "declared") return { kind: "declared", word: `(${cell.code ?? ""})`, caution: "" };
  if (cell.state === "partial") return { kind: "partial", word: `${cell.code ?? ""} *`, caution: "" };
  if (cell.state !== "measured") {
    const known = Object.hasOwn(KINDS, cell.state) && !hasCode(cell.state);
    if (known) return { kind: cell.state, word: cell.state === "absent" ? "" : cell.state, caution: "" };
    return { kind: "unmeasured", word: "unknown", caution: `This page does not know the state "${cell.state}".` };
  }
  if (typeof cell.code !== "string" || cell.code === "" || !(cell.evidence?.runs > 0))
    return { kind: "inconclusive", word: "inconclusive", caution: "The answer has no code with runs behind it." };
  return { kind: cell.code.startsWith("NS") ? "unsolved" : "solved", word: cell.code, caution: "" };
}

/** The mark of a footnote: "¹²" for 12, "" for none. */
export function superscript(number) {
  return number > 0 ? String(number).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]) : "";
}

/** Whose computation a row, cell or fact is of, in words. */
export function subjectTitle({ subject, subject_name, subject_title }) {
  return subject_title ?? (subject === "model" ? "our models" : subject_name) ?? "unknown";
}

/** The mark of a cell whose recipes change nothing. */
export const ONE_FACT = "°";

/** Whether cells of this kind show a code. */
export function hasCode(kind) {
  return kind === "solved" || kind === "unsolved";
}

/** A kind of its own for what did not vary where another operation did; never a code. */
export function witnessedKind(kind, witness) {
  return kind === "inconclusive" && witness ? "witnessed" : kind;
}

/** The kind that a verdict is drawn as. */
export function verdictKind(verdict) {
  if (verdict === "reproducible") return "solved";
  if (verdict === "varies") return "unsolved";
  if (verdict === "devices_disagree") return "partial";
  return ["inconclusive", "stale", "failing", "unsupported"].includes(verdict) ? verdict : "unmeasured";
}

export function count(value) {
  return Number.isFinite(value) ? NUMBER.format(value) : "–";
}

export function counted(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** An upper bound, rounded up so that it stays one. */
export function bound(probability) {
  if (!(probability >= 0 && probability < 1)) return "none";
  const percent = probability * 100;
  const digits = percent >= 10 ? 0 : percent >= 1 ? 1 : 3;
  return `< ${(Math.ceil(percent * 10 ** digits) / 10 ** digits).toFixed(digits)} %`;
}

export function milliseconds(value) {
  if (!Number.isFinite(value)) return "–";
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 ? 2 : 4)} ms`;
}

export function duration(seconds) {
  if (seconds < 1) return "less than a second";
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** A time of day where it was today, else with its date; "" if it is no time. */
export function clock(text) {
  const at = new Date(text ?? NaN);
  if (Number.isNaN(at.getTime())) return "";
  const time = at.toLocaleTimeString("en-GB");
  if (at.toDateString() === new Date().toDateString()) return time;
  const twoDigits = (value) => String(value).padStart(2, "0");
  return `${at.getFullYear()}-${twoDigits(at.getMonth() + 1)}-${twoDigits(at.getDate())} ${time}`;
}

/** Four colours from the four words of a digest: equal digests look equal, and two that
 *  differ in one word differ in one stripe.  null if it is no digest. */
export function digestColours(digest) {
  if (!/^[0-9a-f]{32}$/i.test(digest ?? "")) return null;
  return [0, 8, 16, 24].map((at) => {
    const word = parseInt(digest.slice(at, at + 8), 16);
    return `hsl(${word % 360} ${45 + ((word >>> 9) % 50)}% ${35 + ((word >>> 17) % 35)}%)`;
  });
}

/** TEXT as one word of a POSIX shell. */
export function shellQuote(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export function curl(path) {
  return `curl ${shellQuote(new URL(path, location.origin).href)}`;
}

/** HREF if it is a path of this server, else null. */
export function ownPath(href) {
  return /^\/(?!\/)[\w.~/?=&%:,+-]*$/.test(href ?? "") ? String(href) : null;
}

/** What a job is, in few words. */
export function jobTitle(job) {
  const request = job.request ?? {};
  if (request.survey) return "Survey";
  const workloads = Array.isArray(request.workloads) ? request.workloads.map(String) : [];
  if (workloads.length === 0) return "Job";
  const variants = Array.isArray(request.variants) ? ` (${request.variants.join(", ")})` : "";
  const more = workloads.length > 3 ? ` and ${workloads.length - 3} more` : "";
  return workloads.slice(0, 3).join(", ") + more + variants + circumstancesOf(request);
}

// What perturbs the runs of a job; not part of its cases.
function circumstancesOf(request) {
  const words = [];
  if (request.contention) words.push(counted(request.contention, "load", "loads"));
  if (request.memory_poison) words.push("poisoned memory");
  if (request.allocation_jitter) words.push("moved allocations");
  if (request.shared_import) words.push("shared imports");
  return words.length ? `, under ${words.join(", ")}` : "";
}

/** What the recipes of TABLE mean: {name: title}.  PROFILES: the tables as the API lists
 *  them. */
export function recipesOf(profiles, table) {
  const recipes = profiles.find((profile) => profile.id === table)?.recipes ?? [];
  return Object.fromEntries(recipes.filter(({ name }) => name !== "none").map(({ name, title }) => [name, title]));
}
