package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/conf"
	"delaybroker/broker/inspect"
	"delaybroker/broker/message"
)

// clientConfig is what the settings mean to a verb that only publishes or subscribes.
type clientConfig struct {
	access    access
	names     message.Names
	policy    message.Policy // what the broker grants, if it has the same settings
	apiPrefix string
}

// readClientConfig reads the environment and reports all problems at once, wrapping errConfig. It looks only at the
// settings that say how to reach the broker's subjects: the others may be wrong.
func readClientConfig() (clientConfig, error) {
	s, err := readSettings()
	if err != nil {
		return clientConfig{}, err
	}
	var p problems
	from := s.takeContext(&p, "NATS_CONTEXT", nats.DefaultURL)
	var others problems
	var login string
	var tls []nats.Option
	if s.NATSURL == "" {
		s, login = s.toEmbedded(&p), loginEmbedded
		if s.EmbeddedConfig != "" {
			tls = others.embeddedFile(s.EmbeddedConfig).Options()
		}
	}
	c := clientConfig{access: s.access(&p, from)}
	c.access.login = login
	c.access.options = append(c.access.options, tls...)
	c.access.options = append(c.access.options, s.inbox(&p, from)...)
	b := s.brokerConfig(&others, from, false)
	p = append(p, others.of("DELAY_PREFIX", "DELAY_MAX_DELAY", "DELAY_JS_DOMAIN")...)
	if err := p.err(); err != nil {
		return c, err
	}
	if c.names, err = message.NewNames(b.Prefix); err != nil {
		return c, err
	}
	c.policy = message.Policy{Names: c.names, Targets: b.Targets, HeaderTargets: b.HeaderTargets, MaxDelay: b.MaxDelay}
	if !others.has("DELAY_ATTEMPTS") {
		c.policy.Attempts = func(target string) int {
			return b.AttemptRules.For(target, cmp.Or(b.Attempts, conf.DefaultAttempts))
		}
	}
	c.apiPrefix = cmp.Or(b.APIPrefix, conf.APIPrefix(b.JSDomain))
	return c, nil
}

// serverOfServe is the URL of the server that serve embeds, when it has the same settings.
func serverOfServe(listen string) string { return "nats://" + dialable(listen) }

// dialable turns an address to listen on into one of the same program to connect to: ":8422" and "0.0.0.0:8422" are
// 127.0.0.1:8422.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// connect connects to a server, and tells the person who waits when the connection is lost and when it is back.
func (a *app) connect(ctx context.Context, to access) (*nats.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	options := []nats.Option{
		nats.Name(fmt.Sprintf("delaybroker %s client", readBuild().name())),
		nats.MaxReconnects(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil when it was us
				text := fmt.Sprintf("disconnected from NATS, and trying to get back: %v", err)
				fmt.Fprintln(a.stderr, inspect.Printable(text, maxCell))
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			fmt.Fprintln(a.stderr, "connected to NATS again, at "+inspect.ServerOf(nc))
		}),
	}
	nc, err := nats.Connect(to.url, append(options, to.options...)...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w", withoutUsers(to.url), to.explain(err))
	}
	return nc, nil
}

// withoutUsers removes users and passwords from a list of servers, for messages to people.
func withoutUsers(servers string) string {
	var shown []string
	for server := range strings.SplitSeq(servers, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		if plain, err := inspect.WithoutUser(server); err == nil {
			shown = append(shown, plain)
		}
	}
	return strings.Join(shown, ",")
}

// connectClient connects for verbs that publish or subscribe. The caller closes the session.
func (a *app) connectClient(ctx context.Context, c clientConfig) (*inspect.Session, error) {
	nc, err := a.connect(ctx, c.access)
	if err != nil {
		return nil, err
	}
	s, err := inspect.NewSession(nc, c.apiPrefix)
	if err != nil {
		nc.Close()
	}
	return s, err
}

// open connects with the broker's settings. The prefix and the levels are read off the streams, where the environment
// does not set them. The caller closes the inspector.
func (a *app) open(ctx context.Context, cfg config) (*inspect.Inspector, error) {
	i, err := a.openBySettings(ctx, cfg)
	if err != nil {
		return nil, err
	}
	given := inspect.Given{Prefix: isSet("DELAY_PREFIX"), Levels: isSet("DELAY_LEVELS"), Retry: isSet("DELAY_RETRY")}
	adopted, err := i.Adopt(ctx, given)
	if adopted.Prefix != "" {
		fmt.Fprintf(a.stderr, "using the prefix %s: the streams here are of that one, and DELAY_PREFIX is not set\n",
			adopted.Prefix)
	}
	if len(adopted.Choices) > 0 {
		names := inspect.Printable(strings.Join(adopted.Choices, ", "), 600)
		fmt.Fprintln(a.stderr, "there are streams of several prefixes here: set DELAY_PREFIX to one of "+names)
	}
	if err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// openBySettings connects for provision, which goes by the settings alone. The caller closes the inspector.
func (a *app) openBySettings(ctx context.Context, cfg config) (*inspect.Inspector, error) {
	a.warnOfNames()
	nc, err := a.connect(ctx, cfg.reach)
	if err != nil {
		return nil, err
	}
	i, err := inspect.Open(nc, cfg.broker)
	if err != nil {
		nc.Close()
	}
	return i, err
}

// openConfigured reads the settings and opens an inspector with them.
func (a *app) openConfigured(ctx context.Context) (*inspect.Inspector, error) {
	cfg, err := readConfig()
	if err != nil {
		return nil, err
	}
	return a.open(ctx, cfg)
}
