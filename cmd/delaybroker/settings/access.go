package settings

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/doctor"
	"delaybroker/cmd/delaybroker/links"
)

// access converts the NATS_* settings to options. It applies each option with a file once, as a test. So an unusable
// file is reported immediately, with the name of its setting. Without the test, the broker would try to connect for
// ever.
func (s settings) access(p *problems, cliContext natsContext) links.Access {
	a := links.Access{URL: trimServers(s.NATSURL)}
	try := func(name, value string, option nats.Option, err error) {
		if err == nil {
			err = option(&nats.Options{})
		}
		if err != nil {
			p.refuse(cliContext.sourceName(name), value, "%w", err)
			return
		}
		a.Options = append(a.Options, option)
	}

	p.servers(cliContext.sourceName("NATS_URL"), a.URL)
	switch {
	case s.NATSUser == "" && s.NATSPassword != "":
		p.refuseSecret(cliContext.sourceName("NATS_PASSWORD"), "set without NATS_USER")
	case s.NATSUser != "" && s.NATSPassword == "":
		// As in the CLI, a user without a password is a token.
		a.Options = append(a.Options, nats.TokenHandler(func() string { return s.withCurrentLogin(cliContext).NATSUser }))
	case s.NATSUser != "":
		a.Options = append(a.Options, nats.UserInfoHandler(func() (user, password string) {
			current := s.withCurrentLogin(cliContext)
			return current.NATSUser, current.NATSPassword
		}))
	}
	if s.NATSToken != "" {
		a.Options = append(a.Options, nats.TokenHandler(func() string { return s.withCurrentLogin(cliContext).NATSToken }))
	}
	if s.NATSCreds != "" && s.NATSNKey != "" {
		p.refuse(cliContext.sourceName("NATS_CREDS"), s.NATSCreds, "set together with NATS_NKEY; remove one of the two")
	}
	if s.NATSCreds != "" {
		path := expandHome(s.NATSCreds)
		_, err := os.ReadFile(path) // the option would read the file only when connecting
		try("NATS_CREDS", s.NATSCreds, nats.UserCredentials(path), err)
	}
	if s.NATSNKey != "" {
		option, err := nats.NkeyOptionFromSeed(expandHome(s.NATSNKey))
		if cliContext.UserJwt != "" {
			option = cliContext.withToken(option)
		}
		try("NATS_NKEY", s.NATSNKey, option, err)
	} else if cliContext.UserJwt != "" {
		a.Options = append(a.Options, cliContext.withToken(nil))
	}
	switch {
	case s.NATSCert != "" && s.NATSKey != "":
		try("NATS_CERT", s.NATSCert, nats.ClientCert(expandHome(s.NATSCert), expandHome(s.NATSKey)), nil)
	case s.NATSCert != "":
		p.refuse(cliContext.sourceName("NATS_CERT"), s.NATSCert, "set without NATS_KEY")
	case s.NATSKey != "":
		p.refuse(cliContext.sourceName("NATS_KEY"), s.NATSKey, "set without NATS_CERT")
	}
	if s.NATSCA != "" {
		try("NATS_CA", s.NATSCA, nats.RootCAs(expandHome(s.NATSCA)), nil)
	}
	if p.oneOf("NATS_TLS_FIRST", cmp.Or(s.NATSTLSFirst, wordOff), "on", wordOff) == "on" || cliContext.TLSFirst {
		a.Options = append(a.Options, nats.TLSHandshakeFirst())
	}
	if cliContext.proxy != nil {
		a.Options = append(a.Options, nats.SetCustomDialer(cliContext.proxy))
	}
	return a
}

// trimServers removes a comma at the end of a list of servers, as nats.go does.
func trimServers(servers string) string { return strings.TrimRight(servers, ", ") }

// inbox returns the option for the inbox prefix. It is not part of access, because DELAY_INBOX_PREFIX also applies to a
// link whose own context has no inbox prefix.
func (s settings) inbox(p *problems, cliContext natsContext) []nats.Option {
	if s.InboxPrefix == "" {
		return nil
	}
	option := nats.CustomInboxPrefix(s.InboxPrefix)
	if err := option(&nats.Options{}); err != nil {
		p.refuse(cliContext.sourceName("DELAY_INBOX_PREFIX"), s.InboxPrefix, "%w", err)
	}
	return []nats.Option{option}
}

// linkAccess returns the access of the links with their own context. The NATS_* settings belong to another user. So a
// link takes only two values from the settings: the servers with NATS_TLS_FIRST, if its context names none, and
// DELAY_INBOX_PREFIX, if its context has no inbox prefix.
func (s settings) linkAccess(p *problems, control natsContext) map[string]links.Access {
	accesses := make(map[string]links.Access)
	for _, v := range s.contexts() {
		name := *v.value
		if name == "" {
			continue
		}
		link := settings{NATSContext: name}
		cliContext := link.takeContext(p, v.name(), links.StripUsers(trimServers(s.NATSURL)))
		if cliContext.URL == "" {
			link.NATSTLSFirst = s.NATSTLSFirst
		}
		// All links use the same JetStream: the engine has one API prefix.
		if link.JSDomain != "" && link.JSDomain != s.JSDomain {
			p.refuseVariable(v, "jetstream_domain is %q, and %q for the other links; remove the key",
				link.JSDomain, s.JSDomain)
		}
		if cliContext.JSAPIPrefix != "" && cliContext.JSAPIPrefix != control.JSAPIPrefix {
			p.refuseVariable(v, "jetstream_api_prefix is %q, and %q for the other links; remove the key",
				cliContext.JSAPIPrefix, control.JSAPIPrefix)
		}
		a := link.access(p, cliContext)
		if link.InboxPrefix != "" || !isSet("DELAY_INBOX_PREFIX") {
			a.Options = append(a.Options, link.inbox(p, cliContext)...)
		} else {
			a.Options = append(a.Options, s.inbox(new(problems), control)...) // the problems of this prefix are already reported
		}
		accesses[v.Get("link")] = a
	}
	return accesses
}

// servers checks a list of URLs. It shows neither the URLs nor the errors of net/url, since both may contain passwords.
func (p *problems) servers(name, value string) {
	for i, server := range strings.Split(value, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		if u, err := url.Parse(server); err != nil || u.Hostname() == "" ||
			strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
			p.refuseSecret(name, "number %d is not a URL; write nats://host:4222,nats://other:4222,"+
				" and in a password %%40 for @, %%2F for /, %%3A for :", i+1)
		}
	}
}

// expandHome replaces a leading ~. No shell expands the values in a context.
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

// LinksWithContext returns the links with their own context, for checks of the permissions of each user. It leaves out
// the page, which reports its missing permissions itself.
func (c Config) LinksWithContext() []doctor.Link {
	var result []doctor.Link
	for _, v := range new(settings).contexts() {
		link := v.Get("link")
		if access, found := c.LinkAccess[link]; found && link != "page" {
			options := append([]nats.Option{nats.Name("delaybroker doctor")}, access.Options...)
			connect := func() (*nats.Conn, error) { return nats.Connect(access.URL, options...) }
			result = append(result, doctor.Link{Name: link, Setting: v.name(), Connect: connect})
		}
	}
	return result
}
