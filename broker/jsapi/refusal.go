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

// When the server refuses a question or a publish because a permission is missing, it gives no answer. It tells the
// connection, apart from all answers, and nats.go's error has no field for what was refused.

// Refused reads what the server has refused, in its words: "Publish to orders.x".
func Refused(err error) (what string, ok bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", false
	}
	_, what, _ = strings.Cut(err.Error(), "Violation for ")
	return strings.ReplaceAll(what, `"`, ""), true
}

// Forbidden reads the subject of a publish that was refused.
func Forbidden(err error) (subject string, ok bool) {
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

// refusalPollEvery is the interval at which a request that waits for its answer checks for a refusal.
const refusalPollEvery = 10 * time.Millisecond

// Watched is a context for a question on a subject, of a connection whose error handler is somebody else's. It ends
// when the server refuses the question, with the refusal as its cause. The returned function ends the watching, and
// waits for that.
func Watched(ctx context.Context, conn *nats.Conn, subject string) (context.Context, func()) {
	ctx, refuse := context.WithCancelCause(ctx)
	before := conn.LastError() // of an earlier try, perhaps in the same words
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(refusalPollEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			err := conn.LastError()
			if forbidden, _ := Forbidden(err); forbidden == subject && err != before {
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
