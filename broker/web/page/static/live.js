// The event stream. All views share it.

export const live = { state: null, history: null, ahead: null, findings: null, lost: null };
const listeners = new Set();

export function listen(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

function notify(kind) {
  for (const f of listeners) f(kind);
}

// The states of the last ten minutes: one arrives each second.
const states = [], maxStates = 600;

// Returns the increase of a number, and the seconds in which it increased. Returns null if fewer than two values are
// known.
export function growth(number) {
  const first = states.find((s) => s.numbers[number] !== null), last = states.at(-1);
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
        live[kind] = JSON.parse(e.data);
        live.lost = null;
        if (kind === "state" && states.push(live.state) > maxStates) states.shift();
        notify(kind);
      });
    }
    stream.onerror = () => {
      live.lost ??= new Date();
      notify("lost");
      if (stream.readyState !== EventSource.CLOSED) return; // the browser reconnects
      events = null; // the broker refused the stream; it may have too many viewers
      setTimeout(follow, 5000);
    };
    return stream;
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
