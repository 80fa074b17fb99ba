// One stream of events for the whole page.

export const now = { state: null, history: null, ahead: null };
const listeners = new Set();

export function listen(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

export function connect(onlost) {
  const events = new EventSource("api/events");
  for (const kind of ["state", "history", "ahead"]) {
    events.addEventListener(kind, (e) => {
      now[kind] = JSON.parse(e.data);
      onlost(false);
      for (const f of listeners) f(kind, now[kind]);
    });
  }
  events.onerror = () => {
    onlost(true);
    if (events.readyState === EventSource.CLOSED) setTimeout(() => connect(onlost), 5000); // it was refused: too many look
  };
}
