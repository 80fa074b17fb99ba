package deliver

import (
	"time"

	"delaybroker/broker/jsapi"
)

// Heard must be called with each error that the connection's error handler gets. When the server refuses a publish
// because a permission is missing, it reports that as an error of the connection, not as an answer. To the function
// that waits for an answer, the refusal looks like the silence of core subscribers. So the program that makes a
// Deliverer must pass it all errors of the Deliverer's connection.
func (d *Deliverer) Heard(err error) {
	subject, _ := jsapi.Forbidden(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = err
	d.targets.forbid(subject, time.Now())
}
