package settings

import (
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/broker/web/page"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/levels"
)

// Config is the configuration of the program.
type Config struct {
	Broker   broker.Config           // all but its Log and its Place
	Access   links.Access            // where the server is embedded, its address is known when it runs
	Apart    map[string]links.Access // of the links that have a context of their own, by name
	Embedded *embedded.Config        // nil when the server is external
	HTTPAddr string                  // empty means no HTTP
	Page     page.Access             // access to the page
	Log      Log
}

// Read reads the environment and reports all problems at once, wrapping ErrConfig.
func Read() (Config, error) {
	s, err := readSettings()
	if err != nil {
		return Config{}, err
	}
	var p problems
	c := s.config(&p)
	return c, p.err()
}

func (s settings) config(p *problems) Config {
	var c Config
	from := s.takeContext(p, "NATS_CONTEXT", nats.DefaultURL)
	if s.NATSURL == "" {
		var tls []nats.Option
		c.Embedded, tls = s.embedConfig(p)
		c.Access = s.toEmbedded(p).access(p, from)
		c.Access.Login = loginEmbedded
		c.Access.Options = append(c.Access.Options, tls...)
	} else {
		s.refuseEmbedded(p)
		c.Access = s.access(p, from)
		c.Apart = s.accessApart(p, from)
	}
	c.Access.Options = append(c.Access.Options, s.inbox(p, from)...)
	c.Broker = s.brokerConfig(p, from, c.Embedded != nil)
	if s.HTTPAddr != "off" {
		c.HTTPAddr = s.HTTPAddr
		p.address("DELAY_HTTP_ADDR", s.HTTPAddr, "127.0.0.1:8422 or :8422")
	}
	c.Page = s.pageAccess(p)
	c.Log.Format = p.oneOf("DELAY_LOG_FORMAT", s.LogFormat, "auto", "text", "json")
	if err := c.Log.Level.UnmarshalText([]byte(s.LogLevel)); err != nil {
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
		Slack:         p.durationOrOff("DELAY_SLACK", s.Slack),
		ReplyTimeout:  p.duration("DELAY_REPLY_TIMEOUT", s.ReplyTimeout),
		ShutdownGrace: p.duration("DELAY_SHUTDOWN_GRACE", s.ShutdownGrace),

		MaxPending:      p.count("DELAY_MAX_PENDING", s.MaxPending),
		MaxPendingBytes: p.bytes("DELAY_MAX_PENDING_BYTES", s.MaxPendingBytes),
		Journal:         p.durationOrOff("DELAY_JOURNAL", s.Journal),
		JournalBytes:    p.bytes("DELAY_JOURNAL_BYTES", s.JournalBytes),
		HoldBytes:       p.memory("DELAY_MEMORY", s.Memory, ReadMemory(), embedded),
		ReplyPrefixes:   message.Words(s.ReplyPrefixes),
		Targets:         p.words("DELAY_TARGETS", s.Targets),
		HeaderTargets:   p.words("DELAY_HEADER_TARGETS", s.HeaderTargets),
		Schedules:       message.ParseGrounds(s.Schedules, message.Words(s.HeaderTargets)),
		JSDomain:        s.JSDomain,
		Secrets:         message.Words(s.Secret),
		Provision:       p.oneOf("DELAY_PROVISION", s.Provision, "create", "verify") == "create",
		MaxOwners:       number(s.MaxOwners),
		Instance:        s.Instance,
		Timers:          p.oneOf("DELAY_TIMERS", s.Timers, "auto", "on", "off") != "off",
		TimersSpare:     s.Timers == "auto",
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
	s.byTarget(p, &c)
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

// byTarget parses the settings that have a grammar of their own: the levels, and rules for targets.
func (s settings) byTarget(p *problems, c *broker.Config) {
	for _, parse := range []struct {
		name, value string
		into        func(value string) error
	}{
		{"DELAY_LEVELS", s.Levels, func(v string) (err error) { c.Ladder, err = levels.Parse(v); return err }},
		{"DELAY_RETRY", s.Retry, func(v string) (err error) {
			c.RetryRules, c.RetryLadder, c.RetryJitter, err = config.ParseRetryWaits(v)
			return err
		}},
		{"DELAY_ATTEMPTS", s.Attempts, func(v string) (err error) {
			c.AttemptRules, c.Attempts, err = parseAttempts(v)
			return err
		}},
		{"DELAY_DELIVER", s.Deliver, func(v string) (err error) { c.Deliver, err = deliver.ParseModes(v); return err }},
		{"DELAY_RATE", s.Rate, func(v string) (err error) { c.Rates, err = deliver.ParseRates(v); return err }},
		{"DELAY_RATE_BY_KEY", s.RateByKey, func(v string) (err error) {
			c.RatesByKey, err = deliver.ParseRates(v)
			return err
		}},
	} {
		if err := parse.into(parse.value); err != nil {
			p.refuse(parse.name, parse.value, "%w", err)
		}
	}
}

// words splits a list. An empty word may be a name that somebody forgot to write, or a variable that is empty.
func (p *problems) words(name, value string) []string {
	for part := range strings.SplitSeq(value, ",") {
		if value != "" && strings.TrimSpace(part) == "" {
			p.refuse(name, value, "an empty word beside a comma; remove the comma, or write what is missing")
			break
		}
	}
	return message.Words(value)
}

// parseAttempts returns zero attempts, the default, if the text gives no number for all targets. A number that cannot
// be parsed becomes one that the broker refuses.
func parseAttempts(s string) (config.RetryLimits, int, error) {
	rules, otherwise, err := config.ParseRetryLimits(s)
	if otherwise == "" {
		return rules, 0, err
	}
	return rules, number(otherwise), err
}

// A variable sets a field of broker.Config.
type variable struct {
	name, value string
	word        string // a word that is allowed beside the broker's values; empty for none
	secret      bool   // the value must not be shown
}

// variables maps the names of fields to the variables that set them.
func (s settings) variables() map[string]variable {
	return map[string]variable{
		"Prefix":          {name: "DELAY_PREFIX", value: s.Prefix},
		"AttemptRules":    {name: "DELAY_ATTEMPTS", value: s.Attempts},
		"RetryRules":      {name: "DELAY_RETRY", value: s.Retry},
		"RetryJitter":     {name: "DELAY_RETRY", value: s.Retry},
		"Attempts":        {name: "DELAY_ATTEMPTS", value: s.Attempts},
		"Secrets":         {name: "DELAY_SECRET", secret: true},
		"Replicas":        {name: "DELAY_STREAM_REPLICAS", value: s.StreamReplicas, word: "auto"},
		"DedupWindow":     {name: "DELAY_DEDUP_WINDOW", value: s.DedupWindow},
		"MaxDelay":        {name: "DELAY_MAX_DELAY", value: s.MaxDelay},
		"Targets":         {name: "DELAY_TARGETS", value: s.Targets},
		"HeaderTargets":   {name: "DELAY_HEADER_TARGETS", value: s.HeaderTargets},
		"Schedules":       {name: "DELAY_SCHEDULES", value: s.Schedules},
		"Deliver":         {name: "DELAY_DELIVER", value: s.Deliver},
		"Slack":           {name: "DELAY_SLACK", value: s.Slack, word: off},
		"ReplyTimeout":    {name: "DELAY_REPLY_TIMEOUT", value: s.ReplyTimeout},
		"Rates":           {name: "DELAY_RATE", value: s.Rate},
		"RatesByKey":      {name: "DELAY_RATE_BY_KEY", value: s.RateByKey},
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
		"Timers":          {name: "DELAY_TIMERS", value: s.Timers},
		"TimerHistory":    {name: "DELAY_TIMER_HISTORY", value: s.TimerHistory, word: "none"},
	}
}
