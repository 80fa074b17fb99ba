package links

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/link"
	"delaybroker/broker/text"
)

// maxErrorChars is the maximum length of a server's error that is shown, in characters.
const maxErrorChars = 1000

// Connect makes the connection of a command. It tells the user when the connection is lost and when it is back.
func Connect(ctx context.Context, to Access, version string, notify func(text string)) (*nats.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name(fmt.Sprintf("delaybroker %s client", version)),
		nats.MaxReconnects(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil after Close
				notice := fmt.Sprintf("the command is disconnected from NATS, and reconnects: %v", err)
				notify(text.Printable(notice, maxErrorChars))
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			notify("the command is reconnected to NATS at " + link.ServerOf(nc))
		}),
	}
	nc, err := nats.Connect(to.URL, append(options, to.Options...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", WithoutUsers(to.URL), to.Explain(err))
	}
	return nc, nil
}
