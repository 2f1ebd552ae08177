// The event stream, and polling where there is none.
//
// States, as the header shows them: "connecting" (no answer yet), "live" (the stream is
// open), "polling" (the stream is lost, requests are answered), "offline" (nothing is
// answered), "paused" (the page is hidden: stream and timers are off).

const POLL_MS = 5000;
const CHECK_MS = 30000; // a stream that died without a word is found out after this long

/** ON.event(kind, data), ON.state(state), ON.refresh(): read everything again; returns a
 *  promise of whether the server answered.  Starts at once unless the page is hidden. */
export function openStream(path, kinds, on) {
  let source = null;
  let timer = 0;
  let lost = false;

  const isOpen = () => source?.readyState === EventSource.OPEN;

  const connect = () => {
    source?.close();
    source = new EventSource(path);
    source.addEventListener("open", onOpen);
    source.addEventListener("error", onLost);
    for (const kind of kinds) source.addEventListener(kind, (event) => deliver(kind, event.data));
  };

  const deliver = (kind, text) => {
    let data = null;
    try {
      data = JSON.parse(text);
    } catch {
      // Not ours; the next refresh has the facts.
    }
    if (data !== null && typeof data === "object") on.event(kind, data);
  };

  const schedule = (delay) => {
    clearTimeout(timer);
    timer = setTimeout(tick, delay);
    return timer;
  };

  const onOpen = () => {
    lost = false;
    schedule(CHECK_MS);
    on.state("live");
    on.refresh();
  };

  const onLost = () => {
    if (lost) return;
    lost = true;
    tick();
  };

  const tick = async () => {
    const turn = schedule(isOpen() ? CHECK_MS : POLL_MS);
    // The browser reconnects a broken stream by itself, but gives up on an error status.
    if (source.readyState === EventSource.CLOSED) connect();
    const answered = await on.refresh();
    if (timer !== turn || (isOpen() && answered)) return;
    if (isOpen()) {
      lost = true;
      connect();
      schedule(POLL_MS);
    }
    on.state(answered ? "polling" : "offline");
  };

  const pause = () => {
    source?.close();
    source = null;
    clearTimeout(timer);
    timer = 0;
    on.state("paused");
  };

  const resume = () => {
    lost = false;
    on.state("connecting");
    connect();
    schedule(POLL_MS);
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? pause() : resume()));
  if (!document.hidden) resume();
}
