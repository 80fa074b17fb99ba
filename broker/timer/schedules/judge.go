package schedules

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// The headers of nats-server that Judge reads, in addition to those of package jetstream. All names are case-sensitive,
// as in the server.
const (
	headerIncr   = "Nats-Incr"
	headerBatch  = "Nats-Batch-Id"
	headerSource = "Nats-Stream-Source"

	nextPurge = "purge" // the value of jetstream.ScheduleNextHeader if the schedule does not fire again
)

// Instruction is the change that a request asks for.
type Instruction struct {
	Cancel     bool // true if the request ends the schedule, false if the request sets the schedule
	Schedule   entry.Schedule
	Expected   *uint64        // the sequence of the schedule to replace or end; zero if none may exist, nil for any
	Conditions message.Header // headers with further conditions, which the timers' stream checks
}

// get returns the first value of a header, without leading spaces, as the server does; an empty string if the header is
// missing.
func get(h message.Header, name string) string {
	values := h[name]
	if len(values) == 0 {
		return ""
	}
	return strings.TrimLeft(values[0], " ")
}

// Judge decides about a request as nats-server would (server/stream.go, processJetStreamMsg). It keeps the server's
// order of checks. Stream is the only stream that a request may expect (Nats-Expected-Stream). The rules determine the
// allowed targets.
func Judge(rules message.ScheduleRules, stream string, r message.Incoming, now time.Time) (Instruction, *refusal) {
	c := Instruction{Schedule: entry.Schedule{Subject: r.Subject}}
	if r.Undecodable {
		return c, badPattern.withReason("the headers cannot be decoded: each line is \"Name: value\" ended by CRLF")
	}
	rule, _ := rules.Lookup(r.Subject)
	pattern := get(r.Header, jetstream.ScheduleHeader)
	if refusal := cmp.Or(
		c.parseConditions(stream, r), c.parseTimes(pattern, r), c.parseOptions(pattern, rules, rule, r),
		c.parsePurge(rule, r), c.parseEnd(r, now),
	); refusal != nil {
		return c, refusal
	}
	subject := get(r.Header, jetstream.ExpectedLastSubjSeqSubjHeader)
	if c.Expected != nil && cmp.Or(subject, r.Subject) != c.Schedule.Subject {
		return c, badExpected.withReason("%s must be the schedule's subject", jetstream.ExpectedLastSubjSeqSubjHeader)
	}
	if pattern == "" {
		c.Cancel = true
		if len(r.Data) > 0 {
			return c, badPattern.withReason("Nats-Schedule is missing, and ordinary messages are not stored here; " +
				"an empty message cancels")
		}
	}
	return c, nil
}

// parseConditions reads the Nats-Expected headers and the message id, and refuses batches and counters.
func (c *Instruction) parseConditions(stream string, r message.Incoming) *refusal {
	if len(r.Header[headerBatch]) > 0 {
		return &noBatches
	}
	if incr := get(r.Header, headerIncr); incr != "" {
		if _, err := strconv.ParseInt(incr, 10, 64); err != nil {
			return &badCounter
		}
		return &noCounters
	}
	if want := get(r.Header, jetstream.ExpectedStreamHeader); want != "" && want != stream {
		return &otherStream
	}
	seq := get(r.Header, jetstream.ExpectedLastSubjSeqHeader)
	subject := get(r.Header, jetstream.ExpectedLastSubjSeqSubjHeader)
	switch {
	case seq == "" && subject != "":
		return &badExpected
	case seq != "":
		n, err := strconv.ParseUint(seq, 10, 63)
		if err != nil {
			n = math.MaxUint64 // as with the server, an invalid number never matches
		}
		c.Expected = &n
	}
	c.Conditions = make(message.Header)
	for _, name := range []string{jetstream.ExpectedLastSeqHeader, jetstream.ExpectedLastMsgIDHeader} {
		if v := get(r.Header, name); v != "" {
			c.Conditions[name] = []string{v}
		}
	}
	c.Schedule.MsgID = get(r.Header, jetstream.MsgIDHeader)
	return nil
}

// parseTimes reads the time of a schedule, or its interval or cron expression.
func (c *Instruction) parseTimes(pattern string, r message.Incoming) *refusal {
	zone, zoned := get(r.Header, jetstream.ScheduleTimeZoneHeader), len(r.Header[jetstream.ScheduleTimeZoneHeader]) > 0
	if zoned {
		if _, err := time.LoadLocation(zone); err != nil || zone == "" {
			return &badZone
		}
	}
	at, isAt := strings.CutPrefix(pattern, "@at ")
	every, isEvery := strings.CutPrefix(pattern, "@every ")
	plainTime, err := time.Parse(time.RFC3339, pattern) // from NATS CLIs until 0.4.0
	switch {
	case pattern == "":
		return nil
	case err == nil:
		c.Schedule.At = plainTime
	case isAt:
		if c.Schedule.At, err = time.Parse(time.RFC3339, at); err != nil {
			return &badPattern
		}
	case isEvery:
		if c.Schedule.Every, err = time.ParseDuration(every); err != nil || c.Schedule.Every < time.Second {
			return &badPattern
		}
	default:
		if c.Schedule.Cron, err = timetable.FromServer(pattern); err != nil {
			return &badPattern
		}
		_, err := timetable.Parse(timetable.Settings{Cron: c.Schedule.Cron, Zone: zone})
		if wrong, ok := errors.AsType[*timetable.Error](err); ok && wrong.Setting == "zone" {
			return badZone.withReason("%s", wrong.Sentence)
		}
		if err != nil { // for example, the expression never matches
			return &badPattern
		}
		c.Schedule.Zone = zone
		return nil
	}
	if zoned {
		return &badPattern // only a cron expression may have a zone
	}
	return nil
}

// parseOptions reads the other options of a schedule.
func (c *Instruction) parseOptions(
	pattern string, rules message.ScheduleRules, rule message.ScheduleRule, r message.Incoming,
) *refusal {
	if pattern == "" {
		return nil
	}
	if v := get(r.Header, jetstream.ScheduleTTLHeader); v != "" {
		switch ttl, never, ok := parseTTL(v); {
		case !ok:
			return &badTTL
		case ttl > message.MaxTTL:
			return badTTL.withReason("at most %s, or never", levels.FormatDuration(message.MaxTTL))
		case never:
			c.Schedule.TTL = "never"
		case ttl > 0:
			c.Schedule.TTL = strconv.FormatInt(int64(ttl/time.Second), 10) + "s"
		}
	}
	switch v := get(r.Header, jetstream.ScheduleRollupHeader); v {
	case "":
	case "sub":
		c.Schedule.Rollup = true
	default:
		return &badRollup
	}
	target := get(r.Header, jetstream.ScheduleTargetHeader)
	_, isSchedule := rules.Lookup(target)
	switch {
	case !isLiteral(target) || target == r.Subject:
		return &badTarget
	case isSchedule:
		return badTarget.withReason("it is the subject of a schedule")
	case !rule.Allows(target):
		return badTarget.withReason("DELAY_SCHEDULES does not allow it for this subject")
	}
	c.Schedule.Target = target
	if source := get(r.Header, jetstream.ScheduleSourceHeader); source != "" {
		if source == target || source == r.Subject || !isLiteral(source) {
			return &badSource
		}
		return badSource.withReason("the broker always delivers the body of the request")
	}
	if v := get(r.Header, jetstream.MsgRollup); v != "" && !strings.EqualFold(v, "sub") {
		return &badRollup
	}
	return nil
}

// parsePurge reads the headers with which a message ends another schedule. The server stores such a message, but the
// broker does not.
func (c *Instruction) parsePurge(rule message.ScheduleRule, r message.Incoming) *refusal {
	next := get(r.Header, jetstream.ScheduleNextHeader)
	scheduler := get(r.Header, jetstream.SchedulerHeader)
	switch {
	case next == "" && scheduler == "":
		return nil
	case next != nextPurge, scheduler == r.Subject, !isLiteral(scheduler):
		return &badScheduler
	case !message.Match(rule.Subjects, scheduler):
		// With the server, both subjects are in one stream. So a client of one rule may not end a schedule of another rule.
		return badScheduler.withReason("the subject of this request matches %s, and the subject in the header does not",
			rule.Subjects)
	case r.Header[jetstream.ScheduleHeader] != nil:
		return badScheduler.withReason("the message sets one schedule and ends another: send two messages")
	case len(r.Data) > 0:
		return badScheduler.withReason("the broker does not store this message: leave the body out")
	}
	c.Cancel, c.Schedule.Subject = true, scheduler
	return nil
}

// parseEnd computes the end of the schedule from Nats-TTL. Before that, as the server does, it refuses a message that
// says it comes from another stream.
func (c *Instruction) parseEnd(r message.Incoming, now time.Time) *refusal {
	if len(r.Header[headerSource]) > 0 {
		return &sourced
	}
	v := get(r.Header, jetstream.MsgTTLHeader)
	if v == "" {
		return nil
	}
	ttl, _, ok := parseTTL(v)
	switch {
	case !ok:
		return &badOwnTTL
	case ttl > 0:
		c.Schedule.Until = now.Add(ttl)
		if c.Schedule.At.After(c.Schedule.Until) {
			return badOwnTTL.withReason("the schedule would end before it fires")
		}
	}
	return nil
}

// parseTTL parses a time to live as the server does: a number of seconds, a Go duration of at least one second, or the
// word never. A number of seconds above the maximum of a Duration becomes that maximum.
func parseTTL(v string) (ttl time.Duration, never, ok bool) {
	if strings.EqualFold(v, "never") {
		return 0, true, true
	}
	if d, err := time.ParseDuration(v); err == nil {
		return d.Truncate(time.Second), false, d >= time.Second
	}
	n, err := strconv.ParseInt(v, 10, 64)
	return time.Duration(min(n, math.MaxInt64/int64(time.Second))) * time.Second, false, err == nil && n >= 0
}

// isLiteral reports whether a subject is valid and has no wildcards.
func isLiteral(subject string) bool {
	return message.ValidPattern(subject) && !strings.ContainsAny(subject, "*>")
}
