package link

import (
	"errors"
	"net/url"

	"github.com/nats-io/nats.go"
)

// ServerOf is where a connection leads, without credentials. It is empty while there is none.
func ServerOf(nc *nats.Conn) string {
	server, err := WithoutUser(nc.ConnectedUrl())
	if err != nil {
		return nc.ConnectedAddr()
	}
	return server
}

// WithoutUser is a server's URL for logs. A token stands where a user would, so the user is left out too.
func WithoutUser(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("not a URL")
	}
	u.User = nil
	return u.String(), nil
}
