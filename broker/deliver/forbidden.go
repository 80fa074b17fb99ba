package deliver

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/outbox"
)

// Heard takes in what the connection's error handler is told. The server says apart from all answers that it did not take
// a publish for want of a right; to those who wait for an answer, that looks like core subscribers, who do not give any.
// So whoever makes a deliverer hands it all errors of its connection.
func (d *Deliverer) Heard(err error) {
	subject, _ := forbidden(err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = err
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

// unlessForbidden is judge, but for the silence behind a refusal. The server refuses before it answers the flush by which
// the silence is known; but nats.go tells its error handler later, after whatever the handler did before. So while the
// connection has seen a refusal that we have not heard of, no silence means anything.
func (d *Deliverer) unlessForbidden(dl *delivery, judge func(*delivery, *nats.Msg, error) bool) outbox.Func {
	return func(answer *nats.Msg, err error) (wait bool) {
		if (errors.Is(err, outbox.ErrSilent) || errors.Is(err, outbox.ErrTimeout)) && d.isForbidden(dl) {
			d.finish(dl, Result{Outcome: Refused, Reason: "NATS does not let the broker publish there: grant the subject to the user that delivers"})
			return false
		}
		if errors.Is(err, outbox.ErrSilent) && d.unheard() {
			return true // the box asks again
		}
		return judge(dl, answer, err)
	}
}

// unheard reports whether the connection has seen a refusal that nobody told us of yet.
func (d *Deliverer) unheard() bool {
	last := d.box.LastError()
	d.mu.Lock()
	defer d.mu.Unlock()
	return last != d.heard && errors.Is(last, nats.ErrPermissionViolation)
}

func (d *Deliverer) isForbidden(dl *delivery) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !dl.target.forbidden.Before(dl.sent)
}
