package settings

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"delaybroker/broker"
	"delaybroker/broker/config"
	"delaybroker/broker/deliver"
	"delaybroker/broker/message"
	"delaybroker/levels"
)

// step is the smallest difference of a duration from its bound.
const step = time.Millisecond

func window(d time.Duration) broker.Config { return broker.Config{DedupWindow: d} }

func longest(d time.Duration) broker.Config { return broker.Config{MaxDelay: d} }

func ladder(names string) levels.Ladder {
	l, err := levels.Parse(names)
	if err != nil {
		panic(err)
	}
	return l
}

func limit(pattern string, n int) config.RetryLimits {
	return config.RetryLimits{{Pattern: pattern, Value: n}}
}

func waits(pattern, names string) config.RetryWaits {
	return config.RetryWaits{{Pattern: pattern, Value: ladder(names)}}
}

func mode(pattern string, m message.Mode) deliver.Modes {
	return deliver.Modes{Rules: message.Rules[message.Mode]{{Pattern: pattern, Value: m}}}
}

// bounds are values at a bound, and just beyond it.
var bounds = []struct {
	variable, value string
	config          broker.Config
	good            bool
}{
	{"DELAY_DEDUP_WINDOW", levels.FormatDuration(time.Second), window(time.Second), true},
	{"DELAY_DEDUP_WINDOW", levels.FormatDuration(time.Second - step), window(time.Second - step), false},
	{"DELAY_DEDUP_WINDOW", levels.FormatDuration(24 * time.Hour), window(24 * time.Hour), true},
	{"DELAY_DEDUP_WINDOW", levels.FormatDuration(24*time.Hour + step), window(24*time.Hour + step), false},
	{"DELAY_MAX_DELAY", levels.FormatDuration(time.Second), longest(time.Second), true},
	{"DELAY_MAX_DELAY", levels.FormatDuration(time.Second - step), longest(time.Second - step), false},
	{"DELAY_MAX_DELAY", levels.FormatDuration(10 * 366 * 24 * time.Hour), longest(10 * 366 * 24 * time.Hour), true},
	{"DELAY_MAX_DELAY", levels.FormatDuration(10*366*24*time.Hour + step), longest(10*366*24*time.Hour + step), false},
	{"DELAY_ATTEMPTS", "1", broker.Config{Attempts: 1}, true},
	{"DELAY_ATTEMPTS", "1000000", broker.Config{Attempts: 1_000_000}, true},
	{"DELAY_ATTEMPTS", "1000001", broker.Config{Attempts: 1_000_001}, false},
	{"DELAY_SHUTDOWN_GRACE", "1h", broker.Config{ShutdownGrace: time.Hour}, true},
	{"DELAY_SHUTDOWN_GRACE", "999ms",
		broker.Config{ShutdownGrace: 999 * time.Millisecond, ReplyTimeout: time.Millisecond}, false},
	{"DELAY_ATTEMPTS", "shop.mail=5,20", broker.Config{Attempts: 20, AttemptRules: limit("shop.mail", 5)}, true},
	{"DELAY_ATTEMPTS", "shop.mail=0", broker.Config{AttemptRules: limit("shop.mail", 0)}, false},
	{"DELAY_ATTEMPTS", "shop.>.x=1", broker.Config{AttemptRules: limit("shop.>.x", 1)}, false},
	{"DELAY_RETRY", "shop.mail=1s,1m;5s",
		broker.Config{RetryRules: waits("shop.mail", "1s,1m"), RetryLadder: ladder("5s")}, true},
	{"DELAY_RETRY", "5s ~100%",
		broker.Config{RetryLadder: ladder("5s"), RetryJitter: config.RetryJitter{{Pattern: ">", Value: 100}}}, true},
	{"DELAY_RETRY", "5s ~101%", broker.Config{RetryJitter: config.RetryJitter{{Pattern: ">", Value: 101}}}, false},
	{"DELAY_RETRY", "shop.>.x=1s;5s", broker.Config{RetryRules: waits("shop.>.x", "1s")}, false},
	{"DELAY_RETRY", "shop.mail=60s;1m",
		broker.Config{RetryRules: waits("shop.mail", "60s"), RetryLadder: ladder("1m")}, false},
	{"DELAY_ATTEMPTS", "-1", broker.Config{Attempts: -1}, false}, // zero is the broker's default
	{"DELAY_SLACK", "250ms", broker.Config{Slack: 250 * time.Millisecond}, true},
	{"DELAY_SLACK", "251ms", broker.Config{Slack: 251 * time.Millisecond}, false},
	{"DELAY_REPLY_TIMEOUT", "1ms", broker.Config{ReplyTimeout: time.Millisecond}, true},
	{"DELAY_REPLY_TIMEOUT", "7500ms", broker.Config{ReplyTimeout: 7500 * time.Millisecond}, true},
	{"DELAY_REPLY_TIMEOUT", "7501ms", broker.Config{ReplyTimeout: 7501 * time.Millisecond}, false},
	{"DELAY_TIMERS", "on", broker.Config{Timers: true}, true},
	{"DELAY_TIMERS", "auto", broker.Config{Timers: true, TimersOptional: true}, true},
	{"DELAY_TIMER_HISTORY", "5m", broker.Config{TimerHistory: 5 * time.Minute}, true},
	{"DELAY_REPLY_PREFIXES", "_INBOX_orders,_INBOX_eu.mail",
		broker.Config{ReplyPrefixes: []string{"_INBOX_orders", "_INBOX_eu.mail"}}, true},
	{"DELAY_SCHEDULES", "plans.a.>=orders.>, plans.b.>=mail.x,plans.a.>=mail.>", broker.Config{Timers: true,
		Schedules: message.ScheduleRules{
			{Subjects: "plans.a.>", Targets: []string{"orders.>", "mail.>"}},
			{Subjects: "plans.b.>", Targets: []string{"mail.x"}},
		}}, true},
	{"DELAY_SCHEDULES", "plans.>",
		broker.Config{Timers: true, Schedules: message.ScheduleRules{{Subjects: "plans.>"}}}, false},
	{"DELAY_SCHEDULES", "delay.>=orders.>", broker.Config{Timers: true, Schedules: message.ScheduleRules{
		{Subjects: "delay.>", Targets: []string{"orders.>"}}}}, false},
	{"DELAY_REPLY_PREFIXES", "$JS.API", broker.Config{ReplyPrefixes: []string{"$JS.API"}}, false},
	{"DELAY_REPLY_PREFIXES", "delaysys", broker.Config{ReplyPrefixes: []string{"delaysys"}}, false},
	{"DELAY_REPLY_PREFIXES", "_INBOX.>", broker.Config{ReplyPrefixes: []string{"_INBOX.>"}}, false},
	{"DELAY_TIMER_HISTORY", "1ms", broker.Config{TimerHistory: time.Millisecond}, false},
	{"DELAY_MAX_PENDING", "1", broker.Config{MaxPending: 1}, true},
	{"DELAY_MAX_PENDING_BYTES", "1KiB", broker.Config{MaxPendingBytes: 1 << 10}, true},
	{"DELAY_MAX_PENDING", "-1", broker.Config{MaxPending: -1}, false},
	{"DELAY_RATE", "shop.>=1", broker.Config{Rates: deliver.Rates{{Pattern: "shop.>", Value: 1}}}, true},
	{"DELAY_RATE", "shop.>=0", broker.Config{Rates: deliver.Rates{{Pattern: "shop.>", Value: 0}}}, false},
	{"DELAY_RATE", "shop.>.x=1", broker.Config{Rates: deliver.Rates{{Pattern: "shop.>.x", Value: 1}}}, false},
	{"DELAY_RATE_BY_KEY", "shop.>=1", broker.Config{RatesByKey: deliver.Rates{{Pattern: "shop.>", Value: 1}}}, true},
	{"DELAY_RATE_BY_KEY", "shop.>=0", broker.Config{RatesByKey: deliver.Rates{{Pattern: "shop.>", Value: 0}}}, false},
	{"DELAY_IN_PROGRESS", "svc.*=1", broker.Config{InProgress: deliver.Maxima{{Pattern: "svc.*", Value: 1}}}, true},
	{"DELAY_IN_PROGRESS", "svc.*=0", broker.Config{InProgress: deliver.Maxima{{Pattern: "svc.*", Value: 0}}}, false},
	{"DELAY_IN_PROGRESS", "svc.>.x=1", broker.Config{InProgress: deliver.Maxima{{Pattern: "svc.>.x", Value: 1}}}, false},
	{"DELAY_IN_PROGRESS_BY_KEY", "svc.*=" + strconv.Itoa(deliver.MaxInProgress), broker.Config{
		InProgressByKey: deliver.Maxima{{Pattern: "svc.*", Value: deliver.MaxInProgress}}}, true},
	{"DELAY_IN_PROGRESS_BY_KEY", "svc.*=" + strconv.Itoa(deliver.MaxInProgress+1), broker.Config{
		InProgressByKey: deliver.Maxima{{Pattern: "svc.*", Value: deliver.MaxInProgress + 1}}}, false},
	{"DELAY_DELIVER", "shop.>.x=core", broker.Config{Deliver: mode("shop.>.x", message.ModeCore)}, false},
	{"DELAY_INSTANCE", strings.Repeat("x", 64), broker.Config{Instance: strings.Repeat("x", 64)}, true},
	{"DELAY_INSTANCE", strings.Repeat("x", 64+1), broker.Config{Instance: strings.Repeat("x", 64+1)}, false},
	{"DELAY_STREAM_REPLICAS", strconv.Itoa(config.MaxReplicas), broker.Config{Replicas: config.MaxReplicas}, true},
	{"DELAY_STREAM_REPLICAS", strconv.Itoa(config.MaxReplicas + 1),
		broker.Config{Replicas: config.MaxReplicas + 1}, false},
}

// The broker defines the bounds: the command accepts the same values.
func TestBoundsMatchTheBroker(t *testing.T) {
	for _, test := range bounds {
		setEnv(t, "NATS_URL", "nats://127.0.0.1:4222", test.variable, test.value)
		_, commandErr := Read()
		_, brokerErr := test.config.Complete()
		if (commandErr == nil) != test.good || (brokerErr == nil) != test.good {
			t.Errorf("%s=%s: got %v here and %v in the broker, want both valid: %t",
				test.variable, test.value, commandErr, brokerErr, test.good)
		}
	}
}
