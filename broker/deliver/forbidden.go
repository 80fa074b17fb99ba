package deliver

import (
	"time"

	"delaybroker/broker/jsapi"
)

// NoteError must be called with each error that the connection's error handler gets. If a permission is missing, the
// server refuses a publish by an error of the connection, and sends no answer. Without this call, the deliverer cannot
// distinguish the refusal from the silence of core subscribers.
func (d *Deliverer) NoteError(err error) {
	subject, _ := jsapi.RefusedSubject(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastError = err
	d.targets.forbid(subject, time.Now())
}
