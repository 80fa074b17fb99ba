package links

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/link"
	"delaybroker/broker/text"
)

// Access has the address and the options to reach NATS. Secrets are inside the options, which are never printed.
type Access struct {
	URL         string // servers, comma separated; may contain a password, so never logged
	Options     []nats.Option
	LoginAdvice string // settings to correct if the embedded server refuses the user; empty for another server
}

// WithURL returns the access to the server at url as the same user, with more options.
func (a Access) WithURL(url string, more []nats.Option) Access {
	return Access{URL: url, Options: slices.Concat(a.Options, more), LoginAdvice: a.LoginAdvice}
}

// Explain appends advice to a refusal by the embedded server: the settings that an operator has to correct. It also
// appends advice to a timeout: a server that waits for TLS sends nothing.
func (a Access) Explain(err error) error {
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: if the server begins connections with TLS (handshake_first), set NATS_TLS_FIRST=on", err)
	case a.LoginAdvice == "":
		return err
	case errors.Is(err, nats.ErrAuthorization):
		return fmt.Errorf("%w: %s", err, a.LoginAdvice)
	case certificate:
		return fmt.Errorf("%w: set DELAY_EMBEDDED_CONFIG to the file of the embedded server, or NATS_CA and NATS_URL", err)
	case RefusesCertificate(err):
		return fmt.Errorf("%w: set NATS_CERT and NATS_KEY to a valid client certificate of an authority in the embedded"+
			" server's ca_file", err)
	}
	return err
}

// RefusesCertificate reports whether a server ended the TLS handshake, in practice because of the client's certificate.
// With TLS 1.3 the server may close the connection before the client has read the reason. nats.go has no sentinel for
// this error.
func RefusesCertificate(err error) bool {
	refusal, ok := errors.AsType[*net.OpError](err)
	return ok && refusal.Op == "remote error" ||
		err != nil && strings.Contains(err.Error(), "connection closed by remote after TLS handshake")
}

// StripUsers removes users and passwords from a list of servers, for errors and logs.
func StripUsers(servers string) string {
	list := strings.Split(servers, ",")
	for i, server := range list {
		if server = strings.TrimSpace(server); !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		address, err := link.StripUser(server)
		if err != nil {
			address = "(no URL)"
		}
		list[i] = address
	}
	return strings.Join(list, ",")
}

// maxErrorChars is the maximum length of a server's error that is shown, in characters.
const maxErrorChars = 1000

// Connect makes the connection of a command. It calls notify when the connection is lost and when it is back.
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
		err = fmt.Errorf("connect to NATS at %s: %w", StripUsers(to.URL), to.Explain(err))
		if errors.Is(err, nats.ErrNoServers) {
			err = fmt.Errorf("%w; start one with delaybroker, or set NATS_URL", err)
		}
		return nil, err
	}
	return nc, nil
}
