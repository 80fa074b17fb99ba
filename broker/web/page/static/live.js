// The event stream. All views share it.

export const live = { state: null, history: null, ahead: null, findings: null, found: null, lost: null };
// A state arrives each second. After maxSilence milliseconds without a frame, the broker or the connection is dead.
const maxSilence = 5000;
let heardAt = Date.now(); // time of the last frame, or of the last attempt to connect
const listeners = new Set();

export function listen(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

export function notify(kind) {
  for (const f of listeners) f(kind);
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
  const lose = () => {
    live.lost ??= new Date(heardAt);
    notify("lost");
  };
  setInterval(() => { if (events && live.state && !live.lost && Date.now() - heardAt > maxSilence) lose(); }, 1000);
  const open = () => {
    heardAt = Date.now();
    const stream = new EventSource("api/events");
    for (const kind of ["state", "history", "ahead", "findings"]) {
      stream.addEventListener(kind, (e) => {
        live[kind] = JSON.parse(e.data);
        live.lost = null;
        heardAt = Date.now();
        notify(kind);
      });
    }
    stream.onerror = () => {
      lose();
      if (stream.readyState !== EventSource.CLOSED) return; // the browser reconnects
      events = null; // the broker refused the stream; it may have too many viewers
      setTimeout(follow, 5000);
    };
    return stream;
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
