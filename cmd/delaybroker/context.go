package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// contextFile is a context of the NATS CLI: a named way to reach a server. What the broker cannot honour is read too,
// because leaving it out would reach something else, or somebody else's account.
type contextFile struct {
	URL         string `json:"url"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	TLSFirst    bool   `json:"tls_first"`
	JSDomain    string `json:"jetstream_domain"`
	APIPrefix   string `json:"jetstream_api_prefix"`
	InboxPrefix string `json:"inbox_prefix"`

	NSC        string `json:"nsc"`
	UserJWT    string `json:"user_jwt"`
	UserSeed   string `json:"user_seed"`
	SocksProxy string `json:"socks_proxy"`
}

// takeContext fills the settings that the environment left open from the context that NATS_CONTEXT names, and returns
// the context for what has no setting. Which context is *selected* does not matter: it is a choice for a person's
// terminal, not for a service.
func (s *settings) takeContext(p *problems) contextFile {
	if s.NATSContext == "" {
		return contextFile{}
	}
	c, err := readContext(s.NATSContext)
	if err != nil {
		p.refuse("NATS_CONTEXT", s.NATSContext, "%w", err)
	}
	for _, k := range []struct{ key, value string }{
		{"nsc", c.NSC}, {"user_jwt", c.UserJWT}, {"user_seed", c.UserSeed}, {"socks_proxy", c.SocksProxy},
	} {
		if k.value != "" {
			p.refuse("NATS_CONTEXT", s.NATSContext, "the key %s is not supported", k.key)
		}
	}
	if c.JSDomain != "" && c.APIPrefix != "" {
		p.refuse("NATS_CONTEXT", s.NATSContext, "jetstream_domain and jetstream_api_prefix exclude each other")
	}
	for _, fill := range []struct {
		setting *string
		value   string
	}{
		{&s.NATSURL, c.URL}, {&s.NATSURL, "nats://127.0.0.1:4222"}, // as the CLI does
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
func readContext(name string) (contextFile, error) {
	var c contextFile
	path := name
	if !strings.HasSuffix(name, ".json") {
		if strings.ContainsAny(name, `/\`) {
			return c, fmt.Errorf("want a name, or a path that ends in .json")
		}
		home, err := configHome()
		if err != nil {
			return c, err
		}
		path = filepath.Join(home, "nats", "context", name+".json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("decode %s: %w", path, err)
	}
	return c, nil
}

// configHome is where the NATS CLI keeps its files, on every system.
func configHome() (string, error) {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".config"), err
}
