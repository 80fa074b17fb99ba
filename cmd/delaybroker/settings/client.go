package settings

import (
	"cmp"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/config"
	"delaybroker/broker/message"
	"delaybroker/cmd/delaybroker/links"
)

// Client is the configuration of a command that only publishes or subscribes.
type Client struct {
	Access    links.Access
	Policy    message.Policy // the rules of a broker with the same settings
	APIPrefix string
}

// ReadClient reads the environment and reports all problems together, wrapping ErrConfig. It reports only problems with
// the connection, DELAY_PREFIX, DELAY_MAX_DELAY and DELAY_JS_DOMAIN. Other settings may be invalid, since they are the
// broker's.
func ReadClient() (Client, error) {
	s := readSettings()
	var p problems
	cliContext := s.takeContext(&p, "NATS_CONTEXT", nats.DefaultURL)
	var ignored problems
	var login string
	var tls []nats.Option
	if s.NATSURL == "" {
		s, login = s.embeddedAccess(&p), loginEmbedded
		if s.EmbeddedConfig != "" {
			tls = ignored.embeddedFile(s.EmbeddedConfig).Options
		}
	}
	c := Client{Access: s.access(&p, cliContext)}
	c.Access.LoginAdvice = login
	c.Access.Options = append(c.Access.Options, tls...)
	c.Access.Options = append(c.Access.Options, s.inbox(&p, cliContext)...)
	b := s.brokerConfig(&ignored, cliContext, false)
	p = append(p, ignored.withNames("DELAY_PREFIX", "DELAY_MAX_DELAY", "DELAY_JS_DOMAIN")...)
	if err := p.err(); err != nil {
		return c, err
	}
	names, _ := message.NewNames(b.Prefix) // checked above
	c.Policy = message.Policy{Names: names, Targets: b.Targets, HeaderTargets: b.HeaderTargets, MaxDelay: b.MaxDelay}
	if !ignored.has("DELAY_ATTEMPTS") {
		c.Policy.Attempts = func(target string) int {
			return b.AttemptRules.Lookup(target, cmp.Or(b.Attempts, config.DefaultAttempts))
		}
	}
	c.APIPrefix = cmp.Or(b.APIPrefix, config.APIPrefix(b.JSDomain))
	return c, nil
}
