// One stream of events for the whole page.

export const now = { state: null, history: null, ahead: null };
const listeners = new Set();

export function listen(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

// A hidden tab has no stream: a browser makes six connections to a host, and each stream holds one.
export function connect(onlost) {
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
    for (const kind of ["state", "history", "ahead"]) {
      stream.addEventListener(kind, (e) => {
        now[kind] = JSON.parse(e.data);
        onlost(false);
        for (const f of listeners) f(kind, now[kind]);
      });
    }
    stream.onerror = () => {
      onlost(true);
      if (stream.readyState !== EventSource.CLOSED) return; // the browser reconnects
      events = null; // too many viewers
      setTimeout(follow, 5000);
    };
    return stream;
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
