package settings

import (
	"strings"

	"github.com/nats-io/nats.go"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/doctor"
	"delaybroker/broker/message"
	"delaybroker/broker/web/page"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/levels"
)

// Config is the configuration of a broker's process, and of the commands of its operators.
type Config struct {
	Broker     broker.Config           // without the fields that package process sets, such as Log and Place
	Access     links.Access            // the address of an embedded server is known only when it runs
	LinkAccess map[string]links.Access // of the links with their own context, by the name of the link
	Embedded   *embedded.Config        // nil if the server is external
	HTTPAddr   string                  // empty means no HTTP
	Page       page.Access
	Log        Log
}

// Read reads the environment and reports all problems together, wrapping ErrConfig.
func Read() (Config, error) {
	var p problems
	c := readSettings().config(&p)
	return c, p.err()
}

// Host returns what the checks of doctor need to know of a process with these settings.
func (c Config) Host(version string) doctor.Host {
	return doctor.Host{
		Version: version, Memory: ReadMemory(), Sync: c.Embedded.Durability(),
		ExposedAddress: c.Embedded.ExposedAddress(), LoginSetting: c.Access.LoginAdvice,
	}
}

func (s settings) config(p *problems) Config {
	var c Config
	cliContext := s.takeContext(p, "NATS_CONTEXT", nats.DefaultURL)
	if s.NATSURL == "" {
		var tls []nats.Option
		c.Embedded, tls = s.embedConfig(p)
		c.Access = s.embeddedAccess(p).access(p, cliContext)
		c.Access.LoginAdvice = loginEmbedded
		c.Access.Options = append(c.Access.Options, tls...)
	} else {
		s.refuseEmbedded(p)
		c.Access = s.access(p, cliContext)
		c.LinkAccess = s.linkAccess(p, cliContext)
	}
	c.Access.Options = append(c.Access.Options, s.inbox(p, cliContext)...)
	c.Broker = s.brokerConfig(p, cliContext, c.Embedded != nil)
	if s.HTTPAddr != wordOff {
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

// brokerConfig reads the settings of a broker.Config, and lets the broker check them. After a problem, the result is
// incomplete.
func (s settings) brokerConfig(p *problems, cliContext natsContext, embedded bool) broker.Config {
	c := broker.Config{
		Prefix:        s.Prefix,
		DedupWindow:   p.duration("DELAY_DEDUP_WINDOW", s.DedupWindow),
		MaxDelay:      p.duration("DELAY_MAX_DELAY", s.MaxDelay),
		Slack:         p.durationOrOff("DELAY_SLACK", s.Slack),
		ReplyTimeout:  p.duration("DELAY_REPLY_TIMEOUT", s.ReplyTimeout),
		ShutdownGrace: p.duration("DELAY_SHUTDOWN_GRACE", s.ShutdownGrace),

		MaxPending:      p.count("DELAY_MAX_PENDING", s.MaxPending),
		MaxPendingBytes: p.bytesOrNone("DELAY_MAX_PENDING_BYTES", s.MaxPendingBytes),
		Storage:         p.bytesOrNone("DELAY_STORAGE", s.Storage),
		Journal:         p.durationOrOff("DELAY_JOURNAL", s.Journal),
		JournalBytes:    p.bytes("DELAY_JOURNAL_BYTES", s.JournalBytes, wantBytes),
		HoldBytes:       p.memory("DELAY_MEMORY", s.Memory, ReadMemory(), embedded),
		ReplyPrefixes:   message.SplitList(s.ReplyPrefixes),
		Targets:         p.words("DELAY_TARGETS", s.Targets),
		HeaderTargets:   p.words("DELAY_HEADER_TARGETS", s.HeaderTargets),
		Schedules:       message.ParseScheduleRules(s.Schedules, message.SplitList(s.HeaderTargets)),
		JSDomain:        s.JSDomain,
		Secrets:         message.SplitList(s.Secret),
		Provision:       p.oneOf("DELAY_PROVISION", s.Provision, "create", "verify") == "create",
		Instance:        s.Instance,
		Timers:          p.oneOf("DELAY_TIMERS", s.Timers, "auto", "on", "off") != "off",
		TimersOptional:  s.Timers == "auto",
		TimerHistory:    -1,
	}
	if s.TimerHistory != "none" {
		c.TimerHistory = p.duration("DELAY_TIMER_HISTORY", s.TimerHistory)
	}
	if s.JSDomain == "" {
		c.APIPrefix = strings.TrimSuffix(cliContext.JSAPIPrefix, ".")
	}
	if s.StreamReplicas != "auto" {
		c.Replicas = number(s.StreamReplicas)
	}
	s.parseRules(p, &c)
	if embedded && s.JSDomain != "" {
		p.refuse("DELAY_JS_DOMAIN", s.JSDomain, "the embedded server has no domain; set NATS_URL, or remove DELAY_JS_DOMAIN")
	}
	p.checkBroker(c, s.byField())
	if embedded && c.Replicas > 1 && !p.has("DELAY_STREAM_REPLICAS") {
		p.refuse("DELAY_STREAM_REPLICAS", s.StreamReplicas,
			"the embedded server is a single one; set NATS_URL to use a cluster")
	}
	return c
}

// parseRules parses the settings with their own syntax: the levels, and rules by target.
func (s settings) parseRules(p *problems, c *broker.Config) {
	var err error
	c.Ladder = parseSetting(p, "DELAY_LEVELS", s.Levels, levels.Parse)
	c.Deliver = parseSetting(p, "DELAY_DELIVER", s.Deliver, deliver.ParseModes)
	c.Rates = parseSetting(p, "DELAY_RATE", s.Rate, deliver.ParseRates)
	c.RatesByKey = parseSetting(p, "DELAY_RATE_BY_KEY", s.RateByKey, deliver.ParseRates)
	c.InProgress = parseSetting(p, "DELAY_IN_PROGRESS", s.InProgress, deliver.ParseMaxima)
	c.InProgressByKey = parseSetting(p, "DELAY_IN_PROGRESS_BY_KEY", s.InProgressByKey, deliver.ParseMaxima)
	if c.RetryRules, c.RetryLadder, c.RetryJitter, err = config.ParseRetryWaits(s.Retry); err != nil {
		p.refuse("DELAY_RETRY", s.Retry, "%w", err)
	}
	if c.AttemptRules, c.Attempts, err = parseAttempts(s.Attempts); err != nil {
		p.refuse("DELAY_ATTEMPTS", s.Attempts, "%w", err)
	}
}

// words splits a list. It refuses an empty word, which may be a forgotten name or an empty variable of a template.
func (p *problems) words(name, value string) []string {
	for part := range strings.SplitSeq(value, ",") {
		if value != "" && strings.TrimSpace(part) == "" {
			p.refuse(name, value, "an empty word beside a comma; remove the comma, or add the word")
			break
		}
	}
	return message.SplitList(value)
}

// parseAttempts returns the rules for targets, and the number of attempts for all other targets. If the text does not
// have the latter number, it returns zero, which means the default. For an unparsable number, it returns refusedValue.
func parseAttempts(s string) (config.RetryLimits, int, error) {
	rules, fallback, err := config.ParseRetryLimits(s)
	if fallback == "" {
		return rules, 0, err
	}
	return rules, number(fallback), err
}
