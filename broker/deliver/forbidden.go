package deliver

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/reply"
)

// Heard takes in what the connection's error handler is told. The server says apart from all answers that it did not take
// a publish for want of a right; to those who wait for an answer, that looks like core subscribers, who do not give any.
// So whoever makes a deliverer hands it all errors of its connection.
func (d *Deliverer) Heard(err error) {
	subject, ok := forbidden(err)
	if !ok {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.targets[subject]; t != nil {
		t.forbidden = time.Now()
	}
}

// forbidden reads the subject of a publish that the server refused.
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

// unlessForbidden is judge, but for the silence behind a refusal. The refusal comes before the answer to the flush that
// the silence is known by.
func (d *Deliverer) unlessForbidden(dl *delivery, judge func(*delivery, *nats.Msg, error) bool) reply.Func {
	return func(answer *nats.Msg, err error) (wait bool) {
		if (errors.Is(err, reply.ErrSilent) || errors.Is(err, reply.ErrTimeout)) && d.isForbidden(dl) {
			d.finish(dl, Result{Outcome: Refused, Reason: "NATS does not let the broker publish there: grant the subject to the user that delivers"})
			return false
		}
		return judge(dl, answer, err)
	}
}

func (d *Deliverer) isForbidden(dl *delivery) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !dl.target.forbidden.Before(dl.sent)
}
