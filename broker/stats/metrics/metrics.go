package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"delaybroker/broker/deliver"
	"delaybroker/broker/stats"
)

// Source is the source of the values. Each scrape calls the functions, from any goroutine.
type Source struct {
	Status func() stats.Status
	Ready  func() bool
	// Traces returns the numbers of sent and dropped spans; nil without tracing.
	Traces func() (sent, dropped uint64)
	// The labels of build_info; empty if unknown.
	Version, Revision, GoVersion string
}

// New returns a registry with all metrics of a broker, of the Go runtime and of the process.
func New(s Source) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&collector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// descriptions has the descriptions of all metrics. It does not change after initialization.
var descriptions []*prometheus.Desc

func desc(name, help string, labels ...string) *prometheus.Desc {
	d := prometheus.NewDesc("delaybroker_"+name, help, labels, nil)
	descriptions = append(descriptions, d)
	return d
}

// The metrics of the broker.
var (
	build      = desc("build_info", "Always 1. The labels identify the program.", "version", "revision", "go_version")
	readiness  = desc("ready", "1 if all checks of /readyz pass.")
	linkUp     = desc("link_up", "1 if the connection to NATS is up.", "link")
	reconnects = desc("link_reconnects_total", "Reconnections to NATS.", "link")
	lateness   = desc("lateness_seconds",
		"Time from the due time until the target has the message, by the clock of the leader of the lane's stream. "+
			"For kind retry it includes the waits between refusals. Waits for a rate or a pause do not count.", "kind")
	outcomes = desc("deliveries_total",
		"Attempts to deliver, by outcome: delivered; refused by the target; unknown, because no answer came, and "+
			"then repeated; stalled, because the target does not answer; no_room in JetStream; paced by the target's "+
			"rate; expired. The limit of attempts does not count stalled, no_room and paced.", "outcome")
	ratedDeliveries = desc("rated_deliveries_total",
		"Delivered and refused attempts to deliver to the targets of one pattern of DELAY_RATE.",
		"pattern", "outcome")
	deadLetters = desc("dead_letters_total", "Dead letters stored, by code.", "code")
	duplicates  = desc("duplicates_total",
		"Hops, retries and dead letters that a stream of the broker reported as duplicates. ours: the same message was "+
			"stored before. foreign: another message had its id, so the broker stores it under a new id.", "found")
	unstoredMessages = desc("unstored_total",
		"Hops, retries and dead letters that a stream of the broker refused to store. The message stays in its lane.")
	earlyDeliveries = desc("early_total",
		"Readings of a leader's clock that proved a delivery at least 1 ms before its due time. "+
			"Must stay 0.")
	sweptTimers = desc("timers_swept_total",
		"Overdue timers that only the sweep of their stream found: a level was purged, or lost messages.")
	missedRounds = desc("rounds_missed_total",
		"Missed rounds (of recurring timers) that will not fire. Consecutive missed rounds count as 100 at most.")
	pausedSeries = desc("series_paused_total",
		"Series (recurring timers) that the broker paused after dead letters in a row, by Delay-Pause-After.")
	earlyChecks = desc("early_checks_total",
		"Readings of a leader's clock that could prove an early delivery. Most commits make a reading.")
	journalStored  = desc("journal_records_total", "Records of deliveries and dead letters that the journal has stored.")
	journalDropped = desc("journal_dropped_total",
		"Records of deliveries and dead letters that the journal lost, because its stream stored too little or "+
			"nothing. The messages themselves are not affected.")
	spansSent    = desc("trace_spans_total", "Spans that the OpenTelemetry collector accepted.")
	spansDropped = desc("trace_dropped_total",
		"Spans that were dropped, because the OpenTelemetry collector accepts too few or none. The messages "+
			"themselves are not affected.")
	pausedPatterns = desc("paused_patterns",
		"Patterns of targets that are paused or being resumed, the same on all instances.")
	pausedMessages = desc("paused_messages", "Messages that wait for the end of a pause, the same on all instances.")
)

// A laneMetric is a metric that each lane has.
type laneMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(stats.LaneStatus) (float64, bool) // false if there is no value
}

func newLaneMetric(
	kind prometheus.ValueType, name, help string, value func(stats.LaneStatus) (float64, bool),
) laneMetric {
	return laneMetric{desc("lane_"+name, help, "lane", "kind"), kind, value}
}

func gauge(name, help string, value func(stats.LaneStatus) float64) laneMetric {
	return newLaneMetric(prometheus.GaugeValue, name, help,
		func(l stats.LaneStatus) (float64, bool) { return value(l), l.Owned })
}

func counter(name, help string, value func(stats.LaneStatus) uint64) laneMetric {
	return newLaneMetric(prometheus.CounterValue, name, help, func(l stats.LaneStatus) (float64, bool) {
		return float64(value(l)), l.Owned || value(l) > 0
	})
}

var lanes = []laneMetric{
	newLaneMetric(prometheus.GaugeValue, "owned", "1 if this instance owns the lane.",
		func(l stats.LaneStatus) (float64, bool) { return boolValue(l.Owned), true }),
	gauge("live", "1 if the lane's consumer is probably alive.",
		func(l stats.LaneStatus) float64 { return boolValue(l.Live) }),
	gauge("in_doubt", "1 if the lane's ownership is uncertain. Nothing is delivered from it meanwhile.",
		func(l stats.LaneStatus) float64 { return boolValue(l.InDoubt) }),
	newLaneMetric(prometheus.GaugeValue, "unworked_seconds",
		"Time for which the active instance has had no loop that works the lane; 0 if it has one.",
		func(l stats.LaneStatus) (float64, bool) { return l.Unworked.Seconds(), l.Owned || l.Unworked > 0 }),
	gauge("pending_messages", "Messages not yet moved or delivered.",
		func(l stats.LaneStatus) float64 { return float64(l.Pending) }),
	gauge("overdue_seconds",
		"Time since the oldest message should have left the lane; in a retry lane, since it was due.",
		func(l stats.LaneStatus) float64 { return l.Overdue.Seconds() }),
	gauge("commit_age_seconds",
		"Age of the oldest uncommitted delivery or move, which a crash would repeat.",
		func(l stats.LaneStatus) float64 { return l.CommitAge.Seconds() }),
	gauge("held_messages", "Messages in memory.", func(l stats.LaneStatus) float64 { return float64(l.Held) }),
	gauge("held_bytes", "Size of the messages in memory.",
		func(l stats.LaneStatus) float64 { return float64(l.HeldBytes) }),
	gauge("span_messages", "Sequences from the oldest message that has not left the lane to the last message read.",
		func(l stats.LaneStatus) float64 { return float64(l.Span) }),
	gauge("full", "1 if the lane's memory is full. Reading continues when messages leave.",
		func(l stats.LaneStatus) float64 { return boolValue(l.Full) }),
	gauge("wheel_messages", "Messages in memory that wait for their time, or for the end of a pause.",
		func(l stats.LaneStatus) float64 { return float64(l.WaitingMessages) }),
	newLaneMetric(prometheus.GaugeValue, "next_due_timestamp_seconds",
		"Time of the next entry on the wheel, by the clock of the lane's leader; absent if the wheel is empty.",
		func(l stats.LaneStatus) (float64, bool) {
			return float64(l.NextDue.UnixNano()) / float64(time.Second), l.Owned && !l.NextDue.IsZero()
		}),
	newLaneMetric(prometheus.GaugeValue, "clock_offset_seconds",
		"Lower bound of the leader's clock minus the local clock; absent if the leader has not returned its time for "+
			"ten minutes.",
		func(l stats.LaneStatus) (float64, bool) { return l.ClockOffset.Seconds(), l.Owned && l.ClockKnown }),
	gauge("stream_bytes", "Size of the lane's stream when it was last read.",
		func(l stats.LaneStatus) float64 { return float64(l.Bytes) }),
	newLaneMetric(prometheus.GaugeValue, "stream_max_bytes",
		"Maximum size of the lane's stream; absent if it has no limit of its own.",
		func(l stats.LaneStatus) (float64, bool) { return float64(l.MaxBytes), l.Owned && l.MaxBytes > 0 }),
	counter("delivered_total", "Messages delivered from the lane to their targets.",
		func(l stats.LaneStatus) uint64 { return l.Delivered }),
	counter("hops_total", "Messages moved from the lane into a level, or into the lane of a pause.",
		func(l stats.LaneStatus) uint64 { return l.Hops }),
	counter("retries_total",
		"Messages moved from the lane into a retry lane, because their target refused them, does not answer or has no room.",
		func(l stats.LaneStatus) uint64 { return l.Retries }),
	counter("repeats_total", "Publishes of the lane's messages that were repeated, after no answer or for lack of room.",
		func(l stats.LaneStatus) uint64 { return l.Repeats }),
}

func boolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// collector reads a source at each scrape.
type collector struct{ Source }

// Describe sends the descriptions of all metrics, so that a registry refuses duplicate names.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		out <- d
	}
}

// Collect sends the values of all metrics.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := c.Status()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	send(build, prometheus.GaugeValue, 1, c.Version, c.Revision, c.GoVersion)
	send(readiness, prometheus.GaugeValue, boolValue(c.Ready()))
	for _, l := range s.Links {
		send(linkUp, prometheus.GaugeValue, boolValue(l.Up), l.Name)
		send(reconnects, prometheus.CounterValue, float64(l.Reconnects), l.Name)
	}
	for kind, h := range s.Lateness {
		buckets := make(map[float64]uint64, len(h.Buckets))
		for _, b := range h.Buckets {
			buckets[b.Bound.Seconds()] = b.Count
		}
		out <- prometheus.MustNewConstHistogram(lateness, h.Count, h.Sum.Seconds(), buckets, string(kind))
	}
	for outcome, n := range s.Outcomes {
		send(outcomes, prometheus.CounterValue, float64(n), outcome)
	}
	for _, r := range s.Rates {
		send(ratedDeliveries, prometheus.CounterValue, float64(r.Delivered), r.Pattern, deliver.Delivered.String())
		send(ratedDeliveries, prometheus.CounterValue, float64(r.Refused), r.Pattern, deliver.Refused.String())
	}
	for code, n := range s.DeadLetters {
		send(deadLetters, prometheus.CounterValue, float64(n), string(code))
	}
	send(duplicates, prometheus.CounterValue, float64(s.OwnDuplicates), "ours")
	send(duplicates, prometheus.CounterValue, float64(s.ForeignDuplicates), "foreign")
	send(unstoredMessages, prometheus.CounterValue, float64(s.Unstored))
	send(earlyDeliveries, prometheus.CounterValue, float64(s.EarlyReadings))
	send(sweptTimers, prometheus.CounterValue, float64(s.SweptTimers))
	send(missedRounds, prometheus.CounterValue, float64(s.MissedRounds))
	send(pausedSeries, prometheus.CounterValue, float64(s.PausedSeries))
	send(earlyChecks, prometheus.CounterValue, float64(s.EarlyChecks))
	send(journalStored, prometheus.CounterValue, float64(s.Journal.Stored))
	send(journalDropped, prometheus.CounterValue, float64(s.Journal.Dropped))
	if c.Traces != nil {
		sent, dropped := c.Traces()
		send(spansSent, prometheus.CounterValue, float64(sent))
		send(spansDropped, prometheus.CounterValue, float64(dropped))
	}
	send(pausedPatterns, prometheus.GaugeValue, float64(len(s.Pauses)))
	send(pausedMessages, prometheus.GaugeValue, float64(s.PausedMessages))
	for _, l := range s.Lanes {
		for _, m := range lanes {
			if value, ok := m.value(l); ok {
				send(m.desc, m.kind, value, l.Stream, l.Kind)
			}
		}
	}
}
