package link

import (
	"errors"
	"net/url"

	"github.com/nats-io/nats.go"
)

// ServerOf returns the server of a connection, without credentials. It is empty if there is none.
func ServerOf(nc *nats.Conn) string {
	server, err := WithoutUser(nc.ConnectedUrl())
	if err != nil {
		return nc.ConnectedAddr()
	}
	return server
}

// WithoutUser returns a server's URL for logs. A token is in the place of a user, so the user is removed too.
func WithoutUser(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("not a URL")
	}
	u.User = nil
	return u.String(), nil
}
