package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
)

// change calls request, which asks JetStream to create or update a stream. If the user may not publish the request, the
// server does not reply, but reports an error on the connection. Then change immediately returns ErrForbidden with the
// subject. A timeout would look like a cluster without a leader.
func (p Provisioner) change(ctx context.Context, verb, stream string, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(p.ChangeTimeout, jsapi.Timeout))
	defer cancel()
	subject := p.api() + ".STREAM." + strings.ToUpper(verb) + "." + stream
	ctx, stop := jsapi.WatchRefusal(ctx, p.Streams.Conn(), subject)
	defer stop()
	err := request(ctx)
	if err == nil {
		return nil
	}
	if errors.Is(context.Cause(ctx), nats.ErrPermissionViolation) {
		err = fmt.Errorf("%w: Publish to %s", ErrForbidden, subject)
	}
	return fmt.Errorf("%s stream %s: %w", verb, stream, err)
}

func (p Provisioner) api() string {
	return cmp.Or(strings.TrimSuffix(p.Streams.Options().APIPrefix, "."), "$JS.API")
}
