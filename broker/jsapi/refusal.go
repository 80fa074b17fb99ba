package jsapi

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// If a permission is missing, the server does not answer a request or a publish. It sends an error to the connection,
// and nats.go's type for this error has no field for the refused operation.

// RefusedOperation returns the operation that the server has refused, in the server's words: "Publish to orders.x". Ok
// is false for any other error.
func RefusedOperation(err error) (what string, ok bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", false
	}
	_, what, _ = strings.Cut(err.Error(), "Violation for ")
	return strings.ReplaceAll(what, `"`, ""), true
}

// RefusedSubject returns the subject of a publish that the server has refused. Ok is false for any other error.
func RefusedSubject(err error) (subject string, ok bool) {
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

// refusalPollEvery is the interval at which WatchRefusal checks for a refusal.
const refusalPollEvery = 10 * time.Millisecond

// WatchRefusal returns a context for a request on a subject. The context ends when the server refuses the request, with
// the refusal as its cause. WatchRefusal polls the connection's last error, since the error handler belongs to another
// package. The caller must call the returned function, which stops the polling.
func WatchRefusal(ctx context.Context, conn *nats.Conn, subject string) (context.Context, func()) {
	ctx, refuse := context.WithCancelCause(ctx)
	before := conn.LastError() // an earlier refusal may have the same text
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(refusalPollEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			err := conn.LastError()
			if forbidden, _ := RefusedSubject(err); forbidden == subject && err != before {
				refuse(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return ctx, func() {
		refuse(nil)
		watching.Wait()
	}
}
