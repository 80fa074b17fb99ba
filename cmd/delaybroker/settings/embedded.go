package settings

import (
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/cmd/delaybroker/embedded"
)

// minSync and maxSync are the bounds of DELAY_EMBEDDED_SYNC. For a shorter interval there is "always". The upper bound
// is nats-server's default.
const minSync, maxSync = 10 * time.Millisecond, 2 * time.Minute

// loginEmbedded names the settings for a user that the embedded server accepts.
const loginEmbedded = "set DELAY_EMBEDDED_USER and DELAY_EMBEDDED_PASSWORD to a user of the embedded server" +
	" (or, with DELAY_EMBEDDED_CONFIG, NATS_CREDS, NATS_NKEY or NATS_TOKEN), or NATS_URL to another server"

// bcryptHash matches a hash of a password in nats-server's format.
var bcryptHash = regexp.MustCompile(`^\$2[abxy]\$\d{2}\$`)

// embedConfig reads the settings of the embedded server, and the options of its clients. It refuses the settings of an
// external server.
func (s settings) embedConfig(p *problems) (*embedded.Config, []nats.Option) {
	c := &embedded.Config{Dir: s.EmbeddedDir, User: s.EmbeddedUser, Password: s.EmbeddedPassword, File: s.EmbeddedConfig}
	s.refuseExternal(p)
	c.Host, c.Port = p.address("DELAY_EMBEDDED_LISTEN", s.EmbeddedListen, "127.0.0.1:4222")
	if s.EmbeddedSync == "always" {
		c.SyncAlways = true
	} else {
		c.Sync = p.durationWithin("DELAY_EMBEDDED_SYNC", s.EmbeddedSync, minSync, maxSync)
	}
	if bcryptHash.MatchString(s.EmbeddedPassword) {
		p.refuseSecret("DELAY_EMBEDDED_PASSWORD", "want the password instead of its hash, which the broker cannot log in "+
			"with; a user with a hash belongs in DELAY_EMBEDDED_CONFIG")
	}
	c.Anonymous = s.EmbeddedUser == ""
	if s.EmbeddedConfig == "" {
		return c, nil
	}
	f := p.embeddedFile(s.EmbeddedConfig)
	c.OpenListener = f.OpenListener(s.EmbeddedUser != "")
	if f.HasUsers {
		c.Anonymous = !f.RequiresUser
	}
	if f.RequiresCertificate {
		c.Anonymous = false
		if s.NATSCert == "" {
			p.refuse("DELAY_EMBEDDED_CONFIG", s.EmbeddedConfig,
				"tls.verify is set: set NATS_CERT and NATS_KEY to a certificate for the broker's own connections")
		}
	}
	return c, f.Options
}

// embeddedFile reads the file in DELAY_EMBEDDED_CONFIG, and notes its problems.
func (p *problems) embeddedFile(path string) embedded.File {
	f, errs := embedded.ReadFile(path)
	for _, problem := range errs {
		p.refuse("DELAY_EMBEDDED_CONFIG", path, "%s", problem)
	}
	return f
}

// refuseExternal refuses settings of an external server. With DELAY_EMBEDDED_CONFIG, the settings of a user and of TLS
// are allowed, except NATS_USER and NATS_PASSWORD: for these, there are DELAY_EMBEDDED_USER and
// DELAY_EMBEDDED_PASSWORD. The contexts of links are refused.
func (s settings) refuseExternal(p *problems) {
	for _, name := range []string{
		"NATS_CREDS", "NATS_NKEY", "NATS_TOKEN", "NATS_CERT", "NATS_KEY", "NATS_CA", "NATS_TLS_FIRST",
	} {
		if isSet(name) && s.EmbeddedConfig == "" {
			p.refuseSecret(name, "set without NATS_URL or NATS_CONTEXT, so a server would be embedded,"+
				" which cannot use it without DELAY_EMBEDDED_CONFIG")
		}
	}
	for _, name := range []string{"NATS_USER", "NATS_PASSWORD"} {
		if isSet(name) {
			p.refuseSecret(name, "set without NATS_URL or NATS_CONTEXT, so a server would be embedded,"+
				" whose user is DELAY_EMBEDDED_USER with DELAY_EMBEDDED_PASSWORD")
		}
	}
	for _, v := range s.contexts() {
		if *v.value != "" {
			p.refuseVariable(v, "set without NATS_URL or NATS_CONTEXT, so a server would be embedded, "+
				"where the broker is one user")
		}
	}
}

// embeddedAccess returns the settings for a connection to the embedded server, on this host.
func (s settings) embeddedAccess(p *problems) settings {
	switch {
	case s.EmbeddedUser != "" && s.EmbeddedPassword == "":
		p.refuse("DELAY_EMBEDDED_USER", s.EmbeddedUser, "set without DELAY_EMBEDDED_PASSWORD")
	case s.EmbeddedUser == "" && s.EmbeddedPassword != "":
		p.refuseSecret("DELAY_EMBEDDED_PASSWORD", "set without DELAY_EMBEDDED_USER")
	case s.EmbeddedUser != "":
		s.NATSUser, s.NATSPassword = s.EmbeddedUser, s.EmbeddedPassword
	}
	s.NATSURL = "nats://" + dialAddress(s.EmbeddedListen)
	return s
}

// refuseEmbedded refuses settings of the embedded server if an external one is used: the user expects data in a
// directory, and no data would be written there.
func (s settings) refuseEmbedded(p *problems) {
	external := "NATS_URL"
	if !isSet(external) {
		external = "NATS_CONTEXT"
	}
	for _, v := range s.variables() {
		if strings.HasPrefix(v.name(), "DELAY_EMBEDDED_") && isSet(v.name()) {
			p.refuseVariable(v, "there is no embedded server if %s is set; remove one of the two", external)
		}
	}
}
