package layout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
)

// change asks JetStream for a change of a stream. A server that refuses the user the right to ask gives no answer: it
// tells the connection, apart from all answers. Then the error is an ErrForbidden with the subject, at once. It is not
// the end of the waiting, which is also what a cluster without a leader looks like.
func (p Provisioner) change(ctx context.Context, verb, stream string, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	subject := p.api() + ".STREAM." + verb + "." + stream
	ctx, stop := jsapi.Watched(ctx, p.Streams.Conn(), subject)
	defer stop()
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
