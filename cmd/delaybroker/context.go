package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"
)

// takeContext fills the settings that the environment left open from the context of the NATS CLI that NATS_CONTEXT names,
// and returns the context for what has no setting. Which context is *selected* does not matter: it is a choice for a
// person's terminal, not for a service.
//
// What the library does not pass on to a connection is refused, because leaving it out would reach something else, or
// somebody else's account.
func (s *settings) takeContext(p *problems) natscontext.Settings {
	if s.NATSContext == "" {
		return natscontext.Settings{}
	}
	c, err := readContext(s.NATSContext)
	if err != nil {
		p.refuse("NATS_CONTEXT", s.NATSContext, "%w", err)
	}
	for _, k := range []struct{ key, value string }{
		{"nsc", c.NSCLookup}, {"user_jwt", c.UserJwt}, {"socks_proxy", c.SocksProxy},
	} {
		if k.value != "" {
			p.refuse("NATS_CONTEXT", s.NATSContext, "the key %s is not supported", k.key)
		}
	}
	if c.JSDomain != "" && c.JSAPIPrefix != "" {
		p.refuse("NATS_CONTEXT", s.NATSContext, "jetstream_domain and jetstream_api_prefix exclude each other")
	}
	for _, fill := range []struct {
		setting *string
		value   string
	}{
		{&s.NATSURL, c.URL}, {&s.NATSURL, nats.DefaultURL}, // as the CLI does
		{&s.NATSUser, c.User}, {&s.NATSPassword, c.Password}, {&s.NATSToken, c.Token},
		{&s.NATSCreds, c.Creds}, {&s.NATSNKey, c.NKey},
		{&s.NATSCert, c.Cert}, {&s.NATSKey, c.Key}, {&s.NATSCA, c.CA},
		{&s.JSDomain, c.JSDomain}, {&s.InboxPrefix, c.InboxPrefix},
	} {
		if *fill.setting == "" {
			*fill.setting = fill.value
		}
	}
	return c
}

// readContext finds a context by its name, or by its path if that ends in .json.
//
// The library can only connect. It is made to with a dialer that never dials, for the settings alone: connecting by it
// would let the environment not win over the context, try a missing credentials file for ever, and take a user without a
// password for something else than the CLI does.
func readContext(name string) (natscontext.Settings, error) {
	if strings.HasSuffix(name, ".json") {
		path, err := filepath.Abs(name) // a relative path is a name to the library
		if err != nil {
			return natscontext.Settings{}, err
		}
		name = path
	}
	nc, c, err := natscontext.Connect(name, stayHere)
	if err != nil {
		return natscontext.Settings{}, fmt.Errorf("read the context: %w", err)
	}
	nc.Close()
	return c, nil
}

// stayHere undoes the options before it, and makes a connection that begins and gets nowhere.
func stayHere(o *nats.Options) error {
	*o = nats.Options{CustomDialer: noDialer{}, RetryOnFailedConnect: true}
	return nil
}

type noDialer struct{}

func (noDialer) Dial(string, string) (net.Conn, error) { return nil, errors.New("not to be dialled") }
