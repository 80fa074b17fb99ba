package link

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// Users returns the names of the connections' users, sorted and without duplicates. It returns nil if the name of a
// user is unknown. For example, a name is unknown if the connection uses a token, or if the server has no
// authentication.
func (l Links) Users() []string {
	var names []string
	for _, nc := range []*nats.Conn{l.Read, l.Write, l.Deliver, l.Control} {
		user := UserOf(nc)
		if user == "" {
			return nil
		}
		names = append(names, user)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// UserOf returns the name or the public key of a connection's user, or "" if it is unknown.
func UserOf(nc *nats.Conn) string {
	user := cmp.Or(nc.Opts.User, nc.Opts.Nkey)
	if user == "" && nc.Opts.UserInfo != nil {
		user, _ = nc.Opts.UserInfo()
	}
	if user == "" && nc.Opts.UserJWT != nil {
		if token, err := nc.Opts.UserJWT(); err == nil {
			user = subjectOf(token)
		}
	}
	if server, err := url.Parse(nc.ConnectedUrl()); user == "" && err == nil {
		if _, ok := server.User.Password(); ok { // without a password, the user part is a token
			user = server.User.Username()
		}
	}
	return user
}

// subjectOf returns the subject of a JWT, or "". It does not verify the JWT: the server has done so.
func subjectOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	claims := struct {
		Subject string `json:"sub"`
	}{}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(body, &claims) != nil {
		return ""
	}
	return claims.Subject
}
