package layout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
)

// glance is how often a change that waits for its answer looks for a refusal.
const glance = 10 * time.Millisecond

// change asks JetStream for a change of a stream. A server that refuses the user the right to ask gives no answer: it
// tells the connection, apart from all answers. Then the error is an ErrForbidden with the subject, at once. It is not
// the end of the waiting, which is also what a cluster without a leader looks like.
func (p Provisioner) change(ctx context.Context, verb, stream string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	ctx, refuse := context.WithCancelCause(ctx)
	subject := p.api() + ".STREAM." + verb + "." + stream
	var watching sync.WaitGroup
	defer watching.Wait()
	defer refuse(nil)
	conn := p.Streams.Conn()
	before := conn.LastError() // of an earlier try, perhaps in the same words
	watching.Go(func() {
		tick := time.NewTicker(glance)
		defer tick.Stop()
		for ctx.Err() == nil {
			err := conn.LastError()
			if forbidden, _ := jsapi.Forbidden(err); forbidden == subject && err != before {
				refuse(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	err := ask(ctx)
	if err != nil && errors.Is(context.Cause(ctx), nats.ErrPermissionViolation) {
		return fmt.Errorf("%w: Publish to %s", ErrForbidden, subject)
	}
	return err
}

// api is the root of the JetStream API's subjects.
func (p Provisioner) api() string {
	return cmp.Or(strings.TrimSuffix(p.Streams.Options().APIPrefix, "."), "$JS.API")
}
