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
// and nats.go's type for this error has no field for the refused operation. So this file parses the error's text.

// RefusedOperation returns the operation that the server has refused, in the server's words: "Publish to orders.x". Ok
// is false if the error is not a refusal.
func RefusedOperation(err error) (operation string, ok bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", false
	}
	_, operation, _ = strings.Cut(err.Error(), "Violation for ")
	return strings.ReplaceAll(operation, `"`, ""), true
}

// RefusedSubject returns the subject of a publish that the server has refused. Ok is false if the error is not the
// refusal of a publish.
func RefusedSubject(err error) (subject string, ok bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", false
	}
	_, quoted, ok := strings.Cut(err.Error(), "Permissions Violation for Publish to ")
	if !ok {
		return "", false
	}
	subject, unquoteErr := strconv.Unquote(quoted)
	return subject, unquoteErr == nil
}

// refusalPollInterval is the interval at which WatchRefusal checks for a refusal.
const refusalPollInterval = 10 * time.Millisecond

// WatchRefusal returns a context for a request on a subject. When the server refuses the request, the context ends,
// with the refusal as its cause. WatchRefusal polls the connection's last error, because the connection's error handler
// belongs to another package. The caller must call stop, which ends the polling.
func WatchRefusal(ctx context.Context, conn *nats.Conn, subject string) (watched context.Context, stop func()) {
	watched, refuse := context.WithCancelCause(ctx)
	earlier := conn.LastError() // an earlier refusal may have the same text
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(refusalPollInterval)
		defer tick.Stop()
		for watched.Err() == nil {
			err := conn.LastError()
			if forbidden, _ := RefusedSubject(err); forbidden == subject && err != earlier {
				refuse(err)
				return
			}
			select {
			case <-watched.Done():
			case <-tick.C:
			}
		}
	})
	return watched, func() {
		refuse(nil)
		watching.Wait()
	}
}
