package main

import (
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// Bounds of settings. The broker has them too; here they come with the name of the variable and together with all other
// problems. A test keeps them equal.
const (
	minDedupWindow, maxDedupWindow = time.Second, 24 * time.Hour
	minMaxDelay, maxMaxDelay       = time.Second, 10 * 366 * 24 * time.Hour
	minAttempts, maxAttempts       = 1, 1_000_000
	minReply, maxReply             = time.Millisecond, maxGrace * 3 / 4
	minReplicas, maxReplicas       = 1, 5 // of nats-server
	minOwners, maxOwners           = 1, broker.MaxMaxOwners
	maxInstance                    = 64

	// Less grace than a second breaks off healthy acknowledgements; more than an hour is a mistake.
	minGrace, maxGrace = time.Second, time.Hour
)

// config is what the settings mean.
type config struct {
	broker   broker.Config     // all but its Log
	access   access            // without a URL when the server is embedded
	apart    map[string]access // of the links that have a context of their own, by name
	embed    *embedConfig      // nil when the server is external
	httpAddr string            // empty means no HTTP
	log      logConfig
}

type logConfig struct {
	level  slog.Level
	format string // auto, text or json
}

// readConfig reads the environment and reports all problems at once, wrapping errConfig.
func readConfig() (config, error) {
	s, err := readSettings()
	if err != nil {
		return config{}, err
	}
	var p problems
	c := s.config(&p)
	return c, p.err()
}

func (s settings) config(p *problems) config {
	var c config
	from := s.takeContext(p, "NATS_CONTEXT", nats.DefaultURL)
	if s.NATSURL == "" {
		c.embed = s.embedConfig(p)
	} else {
		s.refuseEmbedded(p)
		c.access = s.access(p, from)
		c.apart = s.accessApart(p, from)
	}
	c.access.options = append(c.access.options, s.inbox(p, from)...)
	c.broker = s.brokerConfig(p, c.embed != nil)
	if c.broker.JSDomain == "" {
		c.broker.APIPrefix = from.JSAPIPrefix
	}
	if s.HTTPAddr != "off" {
		c.httpAddr = s.HTTPAddr
		p.address("DELAY_HTTP_ADDR", s.HTTPAddr)
	}
	c.log.format = p.oneOf("DELAY_LOG_FORMAT", s.LogFormat, "auto", "text", "json")
	if err := c.log.level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		p.refuse("DELAY_LOG_LEVEL", s.LogLevel, "want one of debug, info, warn, error")
	}
	return c
}

func (s settings) brokerConfig(p *problems, embedded bool) broker.Config {
	c := broker.Config{
		Prefix:        s.Prefix,
		Attempts:      p.number("DELAY_ATTEMPTS", s.Attempts, minAttempts, maxAttempts),
		DedupWindow:   p.duration("DELAY_DEDUP_WINDOW", s.DedupWindow, minDedupWindow, maxDedupWindow),
		MaxDelay:      p.duration("DELAY_MAX_DELAY", s.MaxDelay, minMaxDelay, maxMaxDelay),
		ReplyTimeout:  p.duration("DELAY_REPLY_TIMEOUT", s.ReplyTimeout, minReply, maxReply),
		ShutdownGrace: p.duration("DELAY_SHUTDOWN_GRACE", s.ShutdownGrace, minGrace, maxGrace),

		MaxPending:      p.count("DELAY_MAX_PENDING", s.MaxPending),
		MaxPendingBytes: p.bytes("DELAY_MAX_PENDING_BYTES", s.MaxPendingBytes),
		Targets:         list(s.Targets),
		HeaderTargets:   list(s.HeaderTargets),
		JSDomain:        s.JSDomain,
		Secrets:         list(s.Secret),
	}
	for i, secret := range c.Secrets {
		if len(secret) < message.MinSecret {
			p.refuseSecret("DELAY_SECRET", "number %d of %d has %d bytes; want at least %d: take the output of openssl rand -hex 16", i+1, len(c.Secrets), len(secret), message.MinSecret)
		}
	}
	c.HoldBytes = p.memory("DELAY_MEMORY", s.Memory, readMemory(), embedded)
	var err error
	if _, err = message.NewNames(s.Prefix); err != nil {
		p.refuse("DELAY_PREFIX", s.Prefix, "%w", err)
	}
	if c.Ladder, err = levels.Parse(s.Levels); err != nil {
		p.refuse("DELAY_LEVELS", s.Levels, "%w", err)
	}
	if longest := broker.AnswersWithin(c.ShutdownGrace); !p.has("DELAY_REPLY_TIMEOUT") && !p.has("DELAY_SHUTDOWN_GRACE") && c.ReplyTimeout > longest {
		p.refuse("DELAY_REPLY_TIMEOUT", s.ReplyTimeout, "want at most %s, three quarters of DELAY_SHUTDOWN_GRACE, or a clean stop would repeat what is being answered", levels.FormatDuration(longest))
	}
	if c.RetryLadder, err = levels.Parse(s.Retry); err != nil {
		p.refuse("DELAY_RETRY", s.Retry, "%w", err)
	}
	if c.Deliver, err = deliver.ParseModes(s.Deliver); err != nil {
		p.refuse("DELAY_DELIVER", s.Deliver, "%w", err)
	}
	if c.Rates, err = deliver.ParseRates(s.Rate); err != nil {
		p.refuse("DELAY_RATE", s.Rate, "%w", err)
	}
	// The broker knows what a pattern is. It is asked about each setting alone, so that the variable can be named.
	for _, e := range []struct {
		name, value string
		config      broker.Config
	}{
		{"DELAY_TARGETS", s.Targets, broker.Config{Targets: c.Targets}},
		{"DELAY_HEADER_TARGETS", s.HeaderTargets, broker.Config{HeaderTargets: c.HeaderTargets}},
		{"DELAY_DELIVER", s.Deliver, broker.Config{Deliver: deliver.Modes{Rules: c.Deliver.Rules}}},
		{"DELAY_RATE", s.Rate, broker.Config{Rates: c.Rates}},
	} {
		if err := e.config.Validate(); err != nil && !p.has(e.name) {
			p.refuse(e.name, e.value, "%w", err)
		}
	}
	if s.StreamReplicas != "auto" {
		c.Replicas = p.replicas(s.StreamReplicas, embedded)
	}
	c.Provision = s.provision(p, embedded)
	c.MaxOwners, c.Instance = p.number("DELAY_MAX_OWNERS", s.MaxOwners, minOwners, maxOwners), s.Instance
	if len(s.Instance) > maxInstance {
		p.refuse("DELAY_INSTANCE", s.Instance, "want at most %d bytes", maxInstance)
	}
	switch {
	case s.JSDomain != "" && embedded:
		p.refuse("DELAY_JS_DOMAIN", s.JSDomain, "the embedded server has no domain; set NATS_URL or leave it out")
	default:
		p.domain(s.JSDomain)
	}
	return c
}

func (p *problems) domain(value string) {
	if strings.ContainsAny(value, ".*> \t\r\n") {
		p.refuse("DELAY_JS_DOMAIN", value, "want one token: no dots, wildcards or spaces")
	}
}

// provision says whether missing streams are created. Where the server is somebody else's it takes a decision: a laptop
// that happens to point at production must not leave three dozen streams there.
func (s settings) provision(p *problems, embedded bool) bool {
	if s.Provision == "" {
		return embedded
	}
	return p.oneOf("DELAY_PROVISION", s.Provision, "create", "verify") == "create"
}

func (p *problems) replicas(value string, embedded bool) int {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil || n < minReplicas || n > maxReplicas:
		p.refuse("DELAY_STREAM_REPLICAS", value, "want auto, or a whole number from %d to %d", minReplicas, maxReplicas)
	case n > 1 && embedded:
		p.refuse("DELAY_STREAM_REPLICAS", value, "the embedded server is alone; set NATS_URL to use a cluster")
	}
	return n
}

// address checks host:port. The host may be empty (every interface) and the port 0 (any that is free).
func (p *problems) address(name, value string) (host string, port int) {
	host, text, err := net.SplitHostPort(value)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		p.refuse(name, value, "want host:port, such as 127.0.0.1:8422 or :8422")
	}
	return host, port
}

// embedConfig reads the settings of the embedded server, and refuses those of an external one.
func (s settings) embedConfig(p *problems) *embedConfig {
	for _, name := range []string{
		"NATS_CREDS", "NATS_NKEY", "NATS_USER", "NATS_PASSWORD", "NATS_TOKEN", "NATS_CERT", "NATS_KEY", "NATS_CA",
	} {
		if isSet(name) {
			p.refuseSecret(name, "set without NATS_URL or NATS_CONTEXT, so a server would be embedded, which has no use for it")
		}
	}
	for _, l := range s.linkContexts() {
		if l.context != "" {
			p.refuse(l.variable, l.context, "set without NATS_URL or NATS_CONTEXT, so a server would be embedded, which has no users")
		}
	}
	c := &embedConfig{dir: s.EmbeddedDir}
	c.host, c.port = p.address("DELAY_EMBEDDED_LISTEN", s.EmbeddedListen)
	if s.EmbeddedSync == "always" {
		c.syncAlways = true
	} else {
		c.sync = p.duration("DELAY_EMBEDDED_SYNC", s.EmbeddedSync, minSync, maxSync)
	}
	return c
}

// refuseEmbedded is for settings of the embedded server next to an external one: somebody believes in a store that is
// not there.
func (s settings) refuseEmbedded(p *problems) {
	external := "NATS_URL"
	if !isSet(external) {
		external = "NATS_CONTEXT"
	}
	for _, e := range []struct{ name, value string }{
		{"DELAY_EMBEDDED_LISTEN", s.EmbeddedListen},
		{"DELAY_EMBEDDED_DIR", s.EmbeddedDir},
		{"DELAY_EMBEDDED_SYNC", s.EmbeddedSync},
	} {
		if isSet(e.name) {
			p.refuse(e.name, e.value, "there is no embedded server when %s is set; leave one of them out", external)
		}
	}
}
