package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"delaybroker/broker/deliver"
	"delaybroker/broker/stats"
)

// Source is the source of the figures. The functions are called at each scrape, from any goroutine.
type Source struct {
	Status func() stats.Status
	Ready  func() bool
	// Traces returns how many spans were sent and dropped; nil if there are no traces.
	Traces func() (sent, dropped uint64)
	// Labels of build_info. Empty means unknown.
	Version, Revision, GoVersion string
}

// New returns a registry with all metrics of a broker, of the Go runtime and of the process.
func New(s Source) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// described holds the descriptions of all metrics. It does not change after the package's initialization.
var described []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("delaybroker_"+name, help, labels, nil)
	described = append(described, d)
	return d
}

// The metrics of the broker.
var (
	build      = desc("build_info", "Always 1; the labels say what was built.", "version", "revision", "go_version")
	ready      = desc("ready", "1 when /readyz says ok: connected, every lane of ours being read, not stopping.")
	linkUp     = desc("link_up", "1 when the connection to NATS is up.", "link")
	reconnects = desc("link_reconnects_total", "Times that a connection to NATS came back.", "link")
	lateness   = desc("lateness_seconds",
		"From when a message was due until its target had it, by the clock of the lane's leader; "+
			"by the kind of lane it was delivered from. In retry, the waits between refusals are in it.", "kind")
	outcomes = desc("deliveries_total",
		"Attempts to deliver, by outcome: delivered; refused by the target; unknown, for want of an answer, and repeated; "+
			"put off, as no attempt, because the target answers nothing (stalled), JetStream has no room (no_room) or the "+
			"target's rate gives it a later turn (paced); expired while it waited for its target.", "outcome")
	rated = desc("rated_deliveries_total",
		"Attempts to deliver to the targets that have their rate by a pattern of DELAY_RATE, delivered and refused.",
		"pattern", "outcome")
	deadLetters = desc("dead_letters_total", "Dead letters stored, by the code that they carry.", "code")
	duplicates  = desc("duplicates_total",
		"Hops, retries and dead letters that a stream of ours answered to have already: found ours, the same message; "+
			"found foreign, another one under its id, so that it was stored again under a fresh one.", "found")
	unstored = desc("unstored_total",
		"Hops, retries and dead letters that a stream of ours refused to store; the message stays where it is.")
	early = desc("early_total",
		"Looks at a leader's clock that proved a delivery just before to have been sent 1 ms or more before it was due. "+
			"Must stay 0.")
	swept = desc("timers_swept_total",
		"Overdue timers that nothing but a pass through their stream has found: a level was purged, or lost messages.")
	missed = desc("rounds_missed_total",
		"Rounds of timers that recur which were left out because they were missed. A gap counts as 100 at most.")
	earlyChecks = desc("early_checks_total",
		"Looks at a leader's clock that could have proved that; most commits make one.")
	journalStored  = desc("journal_records_total", "Records of deliveries and dead letters that the journal has stored.")
	journalDropped = desc("journal_dropped_total",
		"Records of deliveries and dead letters that are missing in the journal, because its stream took nothing or too "+
			"little. The messages themselves were delivered.")
	spansSent    = desc("trace_spans_total", "Spans of messages that the OpenTelemetry collector has taken.")
	spansDropped = desc("trace_dropped_total",
		"Spans of messages that were dropped, because the OpenTelemetry collector takes none or too few. The messages "+
			"themselves are not affected.")
	pausedPatterns = desc("paused_patterns",
		"Patterns of targets that are paused or being resumed, the same on all instances.")
	pausedMessages = desc("paused_messages", "Messages that wait for them, the same on all instances.")
)

// A laneMetric is a metric that each lane has.
type laneMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(stats.LaneStatus) (float64, bool) // false if there is no value
}

func perLane(kind prometheus.ValueType, name, help string, value func(stats.LaneStatus) (float64, bool)) laneMetric {
	return laneMetric{desc("lane_"+name, help, "lane", "kind"), kind, value}
}

func gauge(name, help string, value func(stats.LaneStatus) float64) laneMetric {
	return perLane(prometheus.GaugeValue, name, help,
		func(l stats.LaneStatus) (float64, bool) { return value(l), l.Owned })
}

func counter(name, help string, value func(stats.LaneStatus) uint64) laneMetric {
	return perLane(prometheus.CounterValue, name, help, func(l stats.LaneStatus) (float64, bool) {
		return float64(value(l)), l.Owned || value(l) > 0
	})
}

var lanes = []laneMetric{
	perLane(prometheus.GaugeValue, "owned", "1 when this instance works the lane.",
		func(l stats.LaneStatus) (float64, bool) {
			return number(l.Owned), true
		}),
	gauge("live", "1 when the consumer by which the lane is read is believed alive.",
		func(l stats.LaneStatus) float64 { return number(l.Live) }),
	gauge("in_doubt", "1 when it is not certain that the lane is ours still: nothing is delivered from it until it is.",
		func(l stats.LaneStatus) float64 { return number(l.InDoubt) }),
	gauge("pending_messages", "Messages that have not been moved on or delivered.",
		func(l stats.LaneStatus) float64 { return float64(l.Pending) }),
	gauge("overdue_seconds",
		"How long ago the oldest message should have left the lane; in a retry lane, how long ago it was due.",
		func(l stats.LaneStatus) float64 { return l.Overdue.Seconds() }),
	gauge("commit_age_seconds",
		"How long something that was moved on or delivered has waited to be committed. A crash repeats it.",
		func(l stats.LaneStatus) float64 { return l.CommitAge.Seconds() }),
	gauge("held_messages", "Messages in memory.", func(l stats.LaneStatus) float64 { return float64(l.Held) }),
	gauge("held_bytes", "Memory that they are accounted with.",
		func(l stats.LaneStatus) float64 { return float64(l.HeldBytes) }),
	gauge("span_messages", "Messages from the oldest that has not left to the last one read.",
		func(l stats.LaneStatus) float64 { return float64(l.Span) }),
	gauge("full", "1 when the lane holds all it may and is not read until something leaves.",
		func(l stats.LaneStatus) float64 { return number(l.Full) }),
	gauge("wheel_messages", "Messages on the timing wheel.",
		func(l stats.LaneStatus) float64 { return float64(l.Waiting) }),
	perLane(prometheus.GaugeValue, "next_due_timestamp_seconds",
		"When the wheel has something to do next, by the clock of the lane's leader; absent when it is empty.",
		func(l stats.LaneStatus) (float64, bool) {
			return float64(l.NextDue.UnixNano()) / float64(time.Second), l.Owned && !l.NextDue.IsZero()
		}),
	perLane(prometheus.GaugeValue, "clock_offset_seconds",
		"By how much the clock of the lane's leader is ahead of this machine's, less the way of an answer; absent when it "+
			"has not said its time for ten minutes.",
		func(l stats.LaneStatus) (float64, bool) {
			return l.ClockOffset.Seconds(), l.Owned && l.ClockKnown
		}),
	gauge("stream_bytes", "Size of the lane's stream when it was last looked at.",
		func(l stats.LaneStatus) float64 { return float64(l.Bytes) }),
	perLane(prometheus.GaugeValue, "stream_max_bytes",
		"Size that the lane's stream may have; absent when it has no limit of its own.",
		func(l stats.LaneStatus) (float64, bool) {
			return float64(l.MaxBytes), l.Owned && l.MaxBytes > 0
		}),
	counter("delivered_total", "Messages delivered from the lane to their targets.",
		func(l stats.LaneStatus) uint64 { return l.Delivered }),
	counter("hops_total", "Messages moved from the lane into a level, or into the lane of a pause.",
		func(l stats.LaneStatus) uint64 { return l.Hops }),
	counter("retries_total",
		"Messages moved from the lane into a retry lane, because their target refused them, answers nothing or has no room.",
		func(l stats.LaneStatus) uint64 { return l.Retries }),
	counter("repeats_total", "Publishes of a message of the lane that got no answer, or found no room, and are repeated.",
		func(l stats.LaneStatus) uint64 { return l.Repeats }),
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// collector reads a source at each scrape.
type collector struct{ Source }

// Describe names all metrics, so that a registry refuses two of one name.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range described {
		out <- d
	}
}

// Collect reads the status once, so that all figures of a scrape are from one moment.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.Status()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	send(build, prometheus.GaugeValue, 1, c.Version, c.Revision, c.GoVersion)
	send(ready, prometheus.GaugeValue, number(c.Ready()))
	for _, l := range s.Links {
		send(linkUp, prometheus.GaugeValue, number(l.Up), l.Name)
		send(reconnects, prometheus.CounterValue, float64(l.Reconnects), l.Name)
	}
	for kind, h := range s.Lateness {
		buckets := make(map[float64]uint64, len(h.Buckets))
		for _, b := range h.Buckets {
			buckets[b.UpTo.Seconds()] = b.Count
		}
		out <- prometheus.MustNewConstHistogram(lateness, h.Count, h.Sum.Seconds(), buckets, string(kind))
	}
	for outcome, n := range s.Outcomes {
		send(outcomes, prometheus.CounterValue, float64(n), outcome)
	}
	for _, r := range s.Rates {
		send(rated, prometheus.CounterValue, float64(r.Delivered), r.Pattern, deliver.Delivered.String())
		send(rated, prometheus.CounterValue, float64(r.Refused), r.Pattern, deliver.Refused.String())
	}
	for code, n := range s.Dead {
		send(deadLetters, prometheus.CounterValue, float64(n), string(code))
	}
	send(duplicates, prometheus.CounterValue, float64(s.Ours), "ours")
	send(duplicates, prometheus.CounterValue, float64(s.Foreign), "foreign")
	send(unstored, prometheus.CounterValue, float64(s.Unstored))
	send(early, prometheus.CounterValue, float64(s.Early))
	send(swept, prometheus.CounterValue, float64(s.Swept))
	send(missed, prometheus.CounterValue, float64(s.Missed))
	send(earlyChecks, prometheus.CounterValue, float64(s.EarlyChecks))
	send(journalStored, prometheus.CounterValue, float64(s.Journal.Stored))
	send(journalDropped, prometheus.CounterValue, float64(s.Journal.Dropped))
	if c.Traces != nil {
		sent, dropped := c.Traces()
		send(spansSent, prometheus.CounterValue, float64(sent))
		send(spansDropped, prometheus.CounterValue, float64(dropped))
	}
	send(pausedPatterns, prometheus.GaugeValue, float64(len(s.Paused)))
	send(pausedMessages, prometheus.GaugeValue, float64(s.Waiting))
	for _, l := range s.Lanes {
		for _, m := range lanes {
			if value, ok := m.value(l); ok {
				send(m.desc, m.kind, value, l.Stream, l.Kind)
			}
		}
	}
}
