package deliver

import (
	"time"

	"delaybroker/broker/jsapi"
)

// Heard takes the errors that the connection's error handler is called with. When the server refuses a publish because
// a permission is missing, it reports that apart from all answers. To the function that waits for an answer, the
// refusal looks like the silence of core subscribers. So the program that makes a deliverer must give it all errors of
// the deliverer's connection.
func (d *Deliverer) Heard(err error) {
	subject, _ := jsapi.Forbidden(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = err
	d.targets.forbid(subject, time.Now())
}
