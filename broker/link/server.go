package link

import (
	"errors"
	"net/url"

	"github.com/nats-io/nats.go"
)

// ServerOf returns the URL of a connection's server, without credentials. It returns "" if the connection is down.
func ServerOf(nc *nats.Conn) string {
	server, err := StripUser(nc.ConnectedUrl())
	if err != nil {
		return nc.ConnectedAddr()
	}
	return server
}

// StripUser returns a server's URL without password and user, for logs. A token has the place of the user in a URL, so
// the user may be a secret.
func StripUser(server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New("not a URL")
	}
	u.User = nil
	return u.String(), nil
}
