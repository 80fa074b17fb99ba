package links

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/fault"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/link"
)

const (
	// minRefusalWait and maxRefusalWait bound the time between two reconnects because of refused subscriptions.
	minRefusalWait, maxRefusalWait = 500 * time.Millisecond, 5 * time.Second
	// refusalAge is the time for which a link counts as refused. It is longer than the time between two reconnects, of
	// which each brings another refusal while the cause remains.
	refusalAge = maxRefusalWait + 3*time.Second
)

// refusal is the state of a link of which the server refuses subscriptions: a limit of the account, the user or the
// server is reached, or a permission is missing. nats.go counts a refused subscription as made, so the link would wait
// for ever for messages that the server does not send. Only a reconnect repeats the subscriptions.
type refusal struct {
	at       atomic.Int64 // unix nanoseconds of the last refusal; zero without one
	reason   atomic.Pointer[error]
	waiting  atomic.Bool // a reconnect is planned
	attempts atomic.Int32
}

// isRefusal reports whether the server refused a subscription without which the link does not work: one to its inboxes,
// or any, because of a limit.
func isRefusal(nc *nats.Conn, err error) bool {
	if errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
		return true
	}
	operation, _ := jsapi.RefusedOperation(err)
	subject, isSubscription := strings.CutPrefix(operation, "Subscription to ")
	return isSubscription && strings.HasPrefix(subject, link.Inbox(nc)+".")
}

// note records a refusal, and plans a reconnect, the later the more reconnects have been refused.
func (r *refusal) note(nc *nats.Conn, log *slog.Logger, err error) {
	now := time.Now()
	if now.Sub(time.Unix(0, r.at.Load())) > refusalAge {
		r.attempts.Store(0)
	}
	r.at.Store(now.UnixNano())
	r.reason.Store(&err)
	if r.waiting.Swap(true) {
		return
	}
	wait := min(minRefusalWait<<min(r.attempts.Add(1)-1, 10), maxRefusalWait)
	if wait == minRefusalWait {
		log.Error("NATS refuses subscriptions of a link, without which nothing is delivered; the link reconnects until all "+
			"are accepted", "err", err, "do", fault.Of(err).Remedy)
	}
	time.AfterFunc(wait, func() {
		r.waiting.Store(false)
		_ = nc.ForceReconnect() // fails only on a closed connection
	})
}

// fault returns the fault of a recent refusal, or nil.
func (r *refusal) fault() *fault.Fault {
	if time.Since(time.Unix(0, r.at.Load())) > refusalAge {
		return nil
	}
	f := fault.Of(*r.reason.Load())
	f.Detail = "NATS refuses its subscriptions: " + f.Detail
	return &f
}
