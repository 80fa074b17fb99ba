// The event stream of the whole page.

export const now = { state: null, history: null, ahead: null, findings: null, lost: null };
const listeners = new Set();

export function listen(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

function notify(kind) {
  for (const f of listeners) f(kind);
}

// The states of the last ten minutes, for trends.
const past = [], kept = 600; // maximum number of states; one arrives each second
export function grown(number) {
  const first = past.find((s) => s.numbers[number] !== null), last = past.at(-1);
  if (!first || first === last) return null;
  return { by: last.numbers[number] - first.numbers[number], seconds: (new Date(last.time) - new Date(first.time)) / 1000 };
}

// A hidden tab closes its stream: a browser opens at most six connections to a host, and each stream uses one.
export function connect() {
  let events = null;
  const follow = () => {
    if (document.hidden) {
      events?.close();
      events = null;
    } else {
      events ??= open();
    }
  };
  const open = () => {
    const stream = new EventSource("api/events");
    for (const kind of ["state", "history", "ahead", "findings"]) {
      stream.addEventListener(kind, (e) => {
        now[kind] = JSON.parse(e.data);
        now.lost = null;
        if (kind === "state" && past.push(now.state) > kept) past.shift();
        notify(kind);
      });
    }
    stream.onerror = () => {
      now.lost ??= new Date();
      notify("lost");
      if (stream.readyState !== EventSource.CLOSED) return; // the browser reconnects
      events = null; // too many viewers
      setTimeout(follow, 5000);
    };
    return stream;
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
