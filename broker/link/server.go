package link

import (
	"errors"
	"net/url"

	"github.com/nats-io/nats.go"
)

// ServerOf returns the URL of a connection's server, without credentials. It returns "" without a server.
func ServerOf(nc *nats.Conn) string {
	server, err := WithoutUser(nc.ConnectedUrl())
	if err != nil {
		return nc.ConnectedAddr()
	}
	return server
}

// WithoutUser returns a server's URL for logs. It removes the user too, because in a URL a token is in the user's
// place.
func WithoutUser(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("not a URL")
	}
	u.User = nil
	return u.String(), nil
}
