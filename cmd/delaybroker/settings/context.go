package settings

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"
)

// natsContext is a context of the NATS CLI, and the name of the variable that selected it.
type natsContext struct {
	natscontext.Settings
	variable string
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
// takeContext refuses three keys that [settings.access] does not apply. A connection without such a key would reach
// another server or another account.
func (s *settings) takeContext(p *problems, variable, fallback string) natsContext {
	if s.NATSContext == "" {
		return natsContext{variable: variable}
	}
	c, err := readContext(s.NATSContext)
	if err != nil {
		p.refuse(variable, s.NATSContext, "%w", err)
	}
	for _, k := range []struct{ key, value string }{
		{"nsc", c.NSCLookup}, {"user_jwt", c.UserJwt}, {"socks_proxy", c.SocksProxy},
	} {
		if k.value != "" {
			p.refuse(variable, s.NATSContext, "the key %s is not supported", k.key)
		}
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
	return natsContext{c, variable}
}

// withCurrentLogin reads the context again, and returns the settings with its user, password and token. It is called
// for each login, so a rotated password needs no restart. A value that differs from the one in cliContext is from the
// environment, and stays. If the context cannot be read, all values stay.
func (s settings) withCurrentLogin(cliContext natsContext) settings {
	if s.NATSContext == "" {
		return s
	}
	current, err := readContext(s.NATSContext)
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

// readContext reads a context by its name, or by its path, which ends in .json.
//
// The library has no function that only reads a context: it also connects. So it gets a dialer that never dials. A real
// connection by the library would have three faults. The context would override the environment, a missing credentials
// file would be retried for ever, and a user without a password would not count as a token. In the CLI, it does.
func readContext(name string) (natscontext.Settings, error) {
	if strings.HasSuffix(name, ".json") {
		path, err := filepath.Abs(name) // a relative path is a name to the library
		if err != nil {
			return natscontext.Settings{}, err
		}
		name = path
	}
	nc, c, err := natscontext.Connect(name, replaceOptions)
	if err != nil {
		return natscontext.Settings{}, fmt.Errorf("read the context: %w", err)
	}
	nc.Close()
	return c, nil
}

// replaceOptions replaces all options, so that the library begins a connection and does not complete it.
func replaceOptions(o *nats.Options) error {
	*o = nats.Options{CustomDialer: noDialer{}, RetryOnFailedConnect: true}
	return nil
}

type noDialer struct{}

func (noDialer) Dial(string, string) (net.Conn, error) { return nil, errors.New("not to be dialled") }
