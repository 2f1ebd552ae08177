// Requests: JSON with ETag, problems as errors, and a limit on how often.

const TIMEOUT_MS = 15000;
const PAGE = 1000; // the most that a page of a list may have
const answers = new Map(); // path -> {etag, data}
const lists = new Map(); // path -> {paths, pages, items}: of its pages, and all of them

/** A request that got no useful answer; its message is one plain sentence.  `status` 0:
 *  nobody answered. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The JSON at PATH.  The very same object as last time if the server says 304, so that
 *  callers can compare with ===. */
export async function getJson(path) {
  const known = answers.get(path);
  const headers = { Accept: "application/json" };
  if (known?.etag) headers["If-None-Match"] = known.etag;
  const response = await request(path, headers);
  if (response.status === 304 && known) return known.data;
  if (!response.ok) throw new ApiError(response.status, await problemText(response));
  let data;
  try {
    data = await response.json();
  } catch {
    throw new ApiError(response.status, `${path} answered with something that is not JSON.`);
  }
  answers.set(path, { etag: response.headers.get("ETag"), data });
  return data;
}

/** All items of the list at PATH, page after page.  The very same array as last time if no
 *  page has changed. */
export async function getList(path) {
  const paths = [];
  const pages = [];
  do {
    paths.push(withQuery(path, { limit: PAGE, cursor: pages.at(-1)?.next }));
    pages.push(await getJson(paths.at(-1)));
  } while (pages.at(-1).next);
  const known = lists.get(path);
  if (known && pages.length === known.pages.length && pages.every((page, i) => page === known.pages[i])) return known.items;
  for (const old of known?.paths ?? []) if (!paths.includes(old)) answers.delete(old);
  const items = pages.flatMap((page) => page.items);
  lists.set(path, { paths, pages, items });
  return items;
}

/** The JSON that answers a POST of DATA to PATH.  However often it is sent with the same
 *  KEY, it is carried out once. */
export async function postJson(path, data, key) {
  const headers = { Accept: "application/json", "Content-Type": "application/json", "Idempotency-Key": key };
  const response = await request(path, headers, { method: "POST", body: JSON.stringify(data) });
  if (!response.ok) throw new ApiError(response.status, await problemText(response));
  return response.json();
}

async function request(path, headers, how = {}) {
  try {
    return await fetch(path, { ...how, headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
  } catch (error) {
    const slow = error.name === "TimeoutError";
    throw new ApiError(0, slow ? `No answer within ${TIMEOUT_MS / 1000} s.` : "The daemon does not answer.");
  }
}

async function problemText(response) {
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // A proxy's error page: the status says enough.
  }
  const words = [problem?.title, problem?.detail].filter((part) => typeof part === "string" && part !== "");
  return `${response.status} ${words.length ? words.join(": ") : response.statusText}`.trim();
}

/** PATH with the parameters that are set. */
export function withQuery(path, parameters) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
  return query ? `${path}?${query}` : path;
}

/** A function that runs TASK (async, must not throw) soon, never twice at the same time and
 *  at most once every INTERVAL ms; calls in between become one.  It returns a promise of
 *  the result of a run that started after the call.  Its `stop` forgets what is still to
 *  come: those promises give false.  With NOW, the next run does not wait for its turn. */
export function coalesce(task, interval) {
  let last = -Infinity;
  let timer = 0;
  let running = false;
  let next = null;

  const arm = () => {
    timer = setTimeout(start, Math.max(0, last + interval - performance.now()));
  };
  const start = async () => {
    const current = next;
    next = null;
    running = true;
    last = performance.now();
    current.resolve(await task());
    running = false;
    if (next) arm();
  };
  const trigger = (now = false) => {
    if (now) last = -Infinity;
    if (now && next && !running) {
      clearTimeout(timer);
      arm();
    }
    if (!next) {
      next = {};
      next.promise = new Promise((resolve) => (next.resolve = resolve));
      if (!running) arm();
    }
    return next.promise;
  };
  trigger.stop = () => {
    clearTimeout(timer);
    next?.resolve(false);
    next = null;
  };
  return trigger;
}
