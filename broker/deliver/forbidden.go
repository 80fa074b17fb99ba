package deliver

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Heard takes the errors that the connection's error handler is called with. When the server refuses a publish because
// a permission is missing, it reports that apart from all answers. To the function that waits for an answer, the
// refusal looks like the silence of core subscribers. So the program that makes a deliverer must give it all errors of
// the deliverer's connection.
func (d *Deliverer) Heard(err error) {
	subject, _ := forbidden(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = err
	d.targets.forbid(subject, time.Now())
}

// forbidden reads the subject from the error for a publish that the server refused. The error has no field for it.
func forbidden(err error) (subject string, ok bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", false
	}
	_, quoted, ok := strings.Cut(err.Error(), "Permissions Violation for Publish to ")
	if !ok {
		return "", false
	}
	subject, unquoted := strconv.Unquote(quoted)
	return subject, unquoted == nil
}
