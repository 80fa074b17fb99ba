package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"
)

// natsContext is a context of the NATS CLI, and the name of the variable that selected it.
type natsContext struct {
	natscontext.Settings
	variable string
	path     string            // the context's name or path
	proxy    nats.CustomDialer // connects through socks_proxy; nil without one
}

// sourceName returns the source of a setting, for errors: the setting's variable, or the context. For a link with its
// own context, the source is the context.
func (c natsContext) sourceName(name string) string {
	if c.variable == "NATS_CONTEXT" && (isSet(name) || !isSet("NATS_CONTEXT")) {
		return name
	}
	return name + " in " + c.variable
}

// takeContext reads the context in s.NATSContext, and gives its values to the settings without a value. NATSURL becomes
// fallback if the context names no server either. The returned context also has the values for which there is no
// setting. If s.NATSContext is empty, takeContext changes nothing. Variable is the variable whose value is the
// context's name, for errors. The CLI's *selected* context is ignored: it is a choice for a person's terminal, not for
// a service.
//
// takeContext refuses the key nsc, which would run another program to find a user.
func (s *settings) takeContext(p *problems, variable, fallback string) natsContext {
	if s.NATSContext == "" {
		return natsContext{variable: variable}
	}
	c, proxy, err := readContext(s.NATSContext)
	if err != nil {
		p.refuse(variable, s.NATSContext, "%w", err)
	}
	if c.NSCLookup != "" {
		p.refuse(variable, s.NATSContext, "the key nsc is not supported; write the user's file into creds")
	}
	if c.UserJwt != "" && c.Creds != "" {
		p.refuse(variable, s.NATSContext, "user_jwt and creds exclude each other")
	}
	if u, err := url.Parse(c.SocksProxy); err != nil ||
		c.SocksProxy != "" && u.Scheme != "socks5" && u.Scheme != "socks5h" {
		p.refuse(variable, s.NATSContext, "socks_proxy: want socks5://host:1080")
	}
	if c.JSDomain != "" && c.JSAPIPrefix != "" {
		p.refuse(variable, s.NATSContext, "jetstream_domain and jetstream_api_prefix exclude each other")
	}
	for _, fill := range []struct {
		setting *string
		value   string
	}{
		{&s.NATSURL, c.URL}, {&s.NATSURL, fallback},
		{&s.NATSUser, c.User}, {&s.NATSPassword, c.Password}, {&s.NATSToken, c.Token},
		{&s.NATSCreds, c.Creds}, {&s.NATSNKey, c.NKey},
		{&s.NATSCert, c.Cert}, {&s.NATSKey, c.Key}, {&s.NATSCA, c.CA},
		{&s.JSDomain, c.JSDomain}, {&s.InboxPrefix, c.InboxPrefix},
	} {
		if *fill.setting == "" {
			*fill.setting = fill.value
		}
	}
	return natsContext{Settings: c, variable: variable, path: s.NATSContext, proxy: proxy}
}

// withToken returns the option that logs in with the context's user_jwt, which is read again for each login. The
// signature is that of option; with nil there is none, and the server must accept the token as a bearer's.
func (c natsContext) withToken(option nats.Option) nats.Option {
	return func(o *nats.Options) error {
		sign := func([]byte) ([]byte, error) { return nil, nil }
		if option != nil {
			var signing nats.Options
			if err := option(&signing); err != nil {
				return err
			}
			sign = signing.SignatureCB
		}
		return nats.UserJWT(func() (string, error) {
			if current, _, err := readContext(c.path); err == nil && current.UserJwt != "" {
				return current.UserJwt, nil
			}
			return c.UserJwt, nil
		}, sign)(o)
	}
}

// withCurrentLogin reads the context again, and returns the settings with its user, password and token. It is called
// for each login, so a rotated password needs no restart. A value that differs from the one in cliContext is from the
// environment, and stays. If the context cannot be read, all values stay.
func (s settings) withCurrentLogin(cliContext natsContext) settings {
	if s.NATSContext == "" {
		return s
	}
	current, _, err := readContext(s.NATSContext)
	if err != nil {
		return s
	}
	for _, login := range []struct {
		setting        *string
		previous, next string
	}{
		{&s.NATSUser, cliContext.User, current.User},
		{&s.NATSPassword, cliContext.Password, current.Password},
		{&s.NATSToken, cliContext.Token, current.Token},
	} {
		if *login.setting == login.previous {
			*login.setting = login.next
		}
	}
	return s
}

// readContext reads a context by its name, or by its path, which ends in .json. It also returns the dialer of the
// context's socks_proxy, or nil.
//
// The library has no function that only reads a context: it also connects. So it gets a dialer that never dials. A real
// connection by the library would have three faults. The context would override the environment, a missing credentials
// file would be retried for ever, and a user without a password would not count as a token. In the CLI, it does.
func readContext(name string) (c natscontext.Settings, proxy nats.CustomDialer, err error) {
	if strings.HasSuffix(name, ".json") {
		path, err := filepath.Abs(name) // a relative path is a name to the library
		if err != nil {
			return c, nil, err
		}
		name = path
	}
	// The last option replaces all options, so that the library begins a connection and does not complete it.
	replaceOptions := func(o *nats.Options) error {
		proxy = o.CustomDialer
		*o = nats.Options{CustomDialer: noDialer{}, RetryOnFailedConnect: true}
		return nil
	}
	nc, c, err := natscontext.Connect(name, replaceOptions)
	if err != nil {
		return natscontext.Settings{}, nil, fmt.Errorf("read the context: %w", err)
	}
	nc.Close()
	return c, proxy, nil
}

type noDialer struct{}

func (noDialer) Dial(string, string) (net.Conn, error) { return nil, errors.New("not to be dialled") }
