package main

import (
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/attempts"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/cmd/embedded"
	"delaybroker/levels"
)

// config is what the settings mean.
type config struct {
	broker   broker.Config     // all but its Log
	access   access            // of the broker; where the server is embedded, its address is known when it runs
	reach    access            // of the verbs that look at it from outside
	apart    map[string]access // of the links that have a context of their own, by name
	embed    *embedded.Config  // nil when the server is external
	httpAddr string            // empty means no HTTP
	log      logConfig
	spans    func() (sent, dropped uint64) // nil while no spans are made
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
		var tls []nats.Option
		c.embed, tls = s.embedConfig(p)
		c.access = s.toEmbedded(p).access(p, from)
		c.access.login = loginEmbedded
		c.access.options = append(c.access.options, tls...)
	} else {
		s.refuseEmbedded(p)
		c.access = s.access(p, from)
		c.apart = s.accessApart(p, from)
	}
	c.access.options = append(c.access.options, s.inbox(p, from)...)
	c.reach = c.access
	c.broker = s.brokerConfig(p, from, c.embed != nil)
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

// brokerConfig reads the settings that become a broker.Config, and has the broker check them. A value that cannot be
// parsed is noted as a problem and left at its default, or replaced by one that the broker refuses.
func (s settings) brokerConfig(p *problems, from fromContext, embedded bool) broker.Config {
	c := broker.Config{
		Prefix:        s.Prefix,
		DedupWindow:   p.duration("DELAY_DEDUP_WINDOW", s.DedupWindow),
		MaxDelay:      p.duration("DELAY_MAX_DELAY", s.MaxDelay),
		ReplyTimeout:  p.duration("DELAY_REPLY_TIMEOUT", s.ReplyTimeout),
		ShutdownGrace: p.duration("DELAY_SHUTDOWN_GRACE", s.ShutdownGrace),

		MaxPending:      p.count("DELAY_MAX_PENDING", s.MaxPending),
		MaxPendingBytes: p.bytes("DELAY_MAX_PENDING_BYTES", s.MaxPendingBytes),
		Journal:         p.durationOrOff("DELAY_JOURNAL", s.Journal),
		JournalBytes:    p.bytes("DELAY_JOURNAL_BYTES", s.JournalBytes),
		HoldBytes:       p.memory("DELAY_MEMORY", s.Memory, readMemory(), embedded),
		ReplyPrefixes:   message.Words(s.ReplyPrefixes),
		Targets:         message.Words(s.Targets),
		HeaderTargets:   message.Words(s.HeaderTargets),
		JSDomain:        s.JSDomain,
		Secrets:         message.Words(s.Secret),
		Provision:       p.oneOf("DELAY_PROVISION", s.Provision, "create", "verify") == "create",
		MaxOwners:       number(s.MaxOwners),
		Instance:        s.Instance,
		Timers:          p.oneOf("DELAY_TIMERS", s.Timers, "on", "off") == "on",
		TimerHistory:    -1,
	}
	if s.TimerHistory != "none" {
		c.TimerHistory = p.duration("DELAY_TIMER_HISTORY", s.TimerHistory)
	}
	if s.JSDomain == "" {
		c.APIPrefix = strings.TrimSuffix(from.JSAPIPrefix, ".")
	}
	if s.StreamReplicas != "auto" {
		c.Replicas = number(s.StreamReplicas)
	}
	for _, parse := range []struct {
		name, value string
		into        func(value string) error
	}{
		{"DELAY_LEVELS", s.Levels, func(v string) (err error) { c.Ladder, err = levels.Parse(v); return err }},
		{"DELAY_RETRY", s.Retry, func(v string) (err error) {
			c.RetryRules, c.RetryLadder, err = attempts.ParseWaits(v)
			return err
		}},
		{"DELAY_ATTEMPTS", s.Attempts, func(v string) (err error) {
			c.AttemptRules, c.Attempts, err = parseAttempts(v)
			return err
		}},
		{"DELAY_DELIVER", s.Deliver, func(v string) (err error) { c.Deliver, err = deliver.ParseModes(v); return err }},
		{"DELAY_RATE", s.Rate, func(v string) (err error) { c.Rates, err = deliver.ParseRates(v); return err }},
	} {
		if err := parse.into(parse.value); err != nil {
			p.refuse(parse.name, parse.value, "%w", err)
		}
	}
	if embedded && s.JSDomain != "" {
		p.refuse("DELAY_JS_DOMAIN", s.JSDomain, "the embedded server has no domain; set NATS_URL or leave it out")
	}
	p.judge(c, s.variables())
	if embedded && c.Replicas > 1 && !p.has("DELAY_STREAM_REPLICAS") {
		p.refuse("DELAY_STREAM_REPLICAS", s.StreamReplicas,
			"the embedded server is alone; set NATS_URL to use a cluster")
	}
	return c
}

// parseAttempts leaves to the broker what it does not let be a default.
func parseAttempts(s string) (attempts.Limits, int, error) {
	rules, otherwise, err := attempts.ParseLimits(s)
	if otherwise == "" {
		return rules, 0, err
	}
	return rules, number(otherwise), err
}

// A variable is where a field of broker.Config comes from.
type variable struct {
	name, value string
	word        string // that is allowed beside what the broker takes; empty for none
	secret      bool   // the value must not be shown
}

// variables maps the names of fields to the variables that set them.
func (s settings) variables() map[string]variable {
	return map[string]variable{
		"Prefix":          {name: "DELAY_PREFIX", value: s.Prefix},
		"AttemptRules":    {name: "DELAY_ATTEMPTS", value: s.Attempts},
		"RetryRules":      {name: "DELAY_RETRY", value: s.Retry},
		"Attempts":        {name: "DELAY_ATTEMPTS", value: s.Attempts},
		"Secrets":         {name: "DELAY_SECRET", secret: true},
		"Replicas":        {name: "DELAY_STREAM_REPLICAS", value: s.StreamReplicas, word: "auto"},
		"DedupWindow":     {name: "DELAY_DEDUP_WINDOW", value: s.DedupWindow},
		"MaxDelay":        {name: "DELAY_MAX_DELAY", value: s.MaxDelay},
		"Targets":         {name: "DELAY_TARGETS", value: s.Targets},
		"HeaderTargets":   {name: "DELAY_HEADER_TARGETS", value: s.HeaderTargets},
		"Deliver":         {name: "DELAY_DELIVER", value: s.Deliver},
		"ReplyTimeout":    {name: "DELAY_REPLY_TIMEOUT", value: s.ReplyTimeout},
		"Rates":           {name: "DELAY_RATE", value: s.Rate},
		"MaxPending":      {name: "DELAY_MAX_PENDING", value: s.MaxPending},
		"MaxPendingBytes": {name: "DELAY_MAX_PENDING_BYTES", value: s.MaxPendingBytes},
		"Journal":         {name: "DELAY_JOURNAL", value: s.Journal, word: off},
		"JournalBytes":    {name: "DELAY_JOURNAL_BYTES", value: s.JournalBytes},
		"HoldBytes":       {name: "DELAY_MEMORY", value: s.Memory},
		"JSDomain":        {name: "DELAY_JS_DOMAIN", value: s.JSDomain},
		"ShutdownGrace":   {name: "DELAY_SHUTDOWN_GRACE", value: s.ShutdownGrace},
		"MaxOwners":       {name: "DELAY_MAX_OWNERS", value: s.MaxOwners},
		"Instance":        {name: "DELAY_INSTANCE", value: s.Instance},
		"ReplyPrefixes":   {name: "DELAY_REPLY_PREFIXES", value: s.ReplyPrefixes},
		"TimerHistory":    {name: "DELAY_TIMER_HISTORY", value: s.TimerHistory, word: "none"},
	}
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
