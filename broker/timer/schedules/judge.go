package schedules

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"delaybroker/broker/message"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/timetable"
	"delaybroker/levels"
)

// The headers of nats-server that are read here, in its spelling: the server ignores any other spelling.
const (
	hSchedule = "Nats-Schedule"
	hZone     = "Nats-Schedule-Time-Zone"
	hTTL      = "Nats-Schedule-TTL"
	hRollup   = "Nats-Schedule-Rollup"
	hTarget   = "Nats-Schedule-Target"
	hSource   = "Nats-Schedule-Source"

	hScheduler = "Nats-Scheduler"
	hNext      = "Nats-Schedule-Next"
	nextPurge  = "purge"

	hOwnTTL    = "Nats-TTL"
	hOwnRollup = "Nats-Rollup"
	hMsgID     = "Nats-Msg-Id"
	hIncr      = "Nats-Incr"
	hBatch     = "Nats-Batch-Id"
	hSourced   = "Nats-Stream-Source"

	hStream     = "Nats-Expected-Stream"
	hLastSeq    = "Nats-Expected-Last-Sequence"
	hLastMsgID  = "Nats-Expected-Last-Msg-Id"
	hSubjectSeq = "Nats-Expected-Last-Subject-Sequence"
	hSubjectOf  = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// Request is a message on a schedule's subject.
type Request struct {
	Subject string
	Header  message.Header
	Body    []byte
}

// Change is the change that a request asks for.
type Change struct {
	Cancel   bool // otherwise it sets the schedule
	Schedule entry.Schedule
	Expected *uint64        // the sequence of the schedule that it may replace or end; nil for any
	Also     message.Header // further conditions, which the stream checks
}

// get returns a header as the server reads it: the first value in its spelling, without leading spaces.
func get(h message.Header, name string) (value string, given bool) {
	values, given := h[name]
	if len(values) == 0 {
		return "", false
	}
	return strings.TrimLeft(values[0], " "), given
}

// Judge decides about a request as nats-server would (server/stream.go, processJetStreamMsg), and in its order: first
// the headers of every message, then the schedule. Stream is the answering stream. The grounds determine the allowed
// targets.
func Judge(all message.Grounds, stream string, r Request, now time.Time) (Change, *Refusal) {
	w := Change{Schedule: entry.Schedule{Subject: r.Subject}}
	if refused := w.expectations(stream, r); refused != nil {
		return w, refused
	}
	ground, _ := all.Of(r.Subject)
	pattern, _ := get(r.Header, hSchedule)
	zone, zoned := get(r.Header, hZone)
	if refused := w.times(pattern, zone, zoned); refused != nil {
		return w, refused
	}
	if pattern != "" {
		if refused := w.options(all, ground, r); refused != nil {
			return w, refused
		}
	}
	if refused := w.purges(ground, r); refused != nil {
		return w, refused
	}
	if _, given := get(r.Header, hSourced); given {
		return w, &sourced
	}
	if refused := w.life(r, now); refused != nil {
		return w, refused
	}
	if of, _ := get(r.Header, hSubjectOf); w.Expected != nil && cmp.Or(of, r.Subject) != w.Schedule.Subject {
		return w, badExpected.because("only of the schedule that it is about")
	}
	if pattern == "" {
		w.Cancel = true
		if len(r.Body) > 0 {
			return w, badPattern.because("there is none, and an ordinary message is kept nowhere here; an empty one cancels")
		}
	}
	return w, nil
}

// expectations reads the headers of every message, and its conditions on the stream.
func (w *Change) expectations(stream string, r Request) *Refusal {
	if _, given := get(r.Header, hBatch); given {
		return &noBatches
	}
	if incr, given := get(r.Header, hIncr); given && incr != "" {
		if _, err := strconv.ParseInt(incr, 10, 64); err != nil {
			return &badCounter
		}
		return &noCounters
	}
	if want, _ := get(r.Header, hStream); want != "" && want != stream {
		return &otherStream
	}
	seq, _ := get(r.Header, hSubjectSeq)
	of, _ := get(r.Header, hSubjectOf)
	switch {
	case seq == "" && of != "":
		return &badExpected
	case seq != "":
		n, err := strconv.ParseUint(seq, 10, 63)
		if err != nil {
			n = math.MaxUint64
		}
		w.Expected = &n
	}
	w.Also = make(message.Header)
	for _, name := range []string{hLastSeq, hLastMsgID} {
		if v, _ := get(r.Header, name); v != "" {
			w.Also[name] = []string{v}
		}
	}
	w.Schedule.MsgID, _ = get(r.Header, hMsgID)
	return nil
}

// times reads its time or its table.
func (w *Change) times(pattern, zone string, zoned bool) *Refusal {
	if zoned {
		if _, err := time.LoadLocation(zone); err != nil || zone == "" {
			return &badZone
		}
	}
	at, isAt := strings.CutPrefix(pattern, "@at ")
	every, isEvery := strings.CutPrefix(pattern, "@every ")
	bare, err := time.Parse(time.RFC3339, pattern) // from NATS CLIs until 0.4.0
	switch {
	case pattern == "":
		return nil
	case err == nil:
		w.Schedule.At = bare
	case isAt:
		if w.Schedule.At, err = time.Parse(time.RFC3339, at); err != nil {
			return &badPattern
		}
	case isEvery:
		if w.Schedule.Every, err = time.ParseDuration(every); err != nil || w.Schedule.Every < time.Second {
			return &badPattern
		}
	default:
		if w.Schedule.Cron, err = parseCron(pattern); err != nil {
			return &badPattern
		}
		_, err := timetable.Parse(timetable.Words{Cron: w.Schedule.Cron, Zone: zone})
		if wrong, ok := errors.AsType[*timetable.Error](err); ok && wrong.Word == "zone" {
			return badZone.because("%s", wrong.Sentence)
		}
		if err != nil { // it never fires
			return &badPattern
		}
		w.Schedule.Zone = zone
		return nil
	}
	if zoned {
		return &badPattern // a zone is only for cron
	}
	return nil
}

// options reads the other options of a schedule.
func (w *Change) options(all message.Grounds, ground message.Ground, r Request) *Refusal {
	if v, _ := get(r.Header, hTTL); v != "" {
		var ok bool
		if w.Schedule.TTL, w.Schedule.TTLEver, ok = parseTTL(v); !ok {
			return &badTTL
		}
		if w.Schedule.TTL > message.MaxTTL {
			return badTTL.because("at most %s, or never", levels.FormatDuration(message.MaxTTL))
		}
	}
	switch v, _ := get(r.Header, hRollup); v {
	case "":
	case "sub":
		w.Schedule.Rollup = true
	default:
		return &badRollup
	}
	target, _ := get(r.Header, hTarget)
	_, plans := all.Of(target)
	switch {
	case !literal(target) || target == r.Subject:
		return &badTarget
	case plans:
		return badTarget.because("it is the subject of a schedule")
	case !ground.Allows(target):
		return badTarget.because("none of those that schedules here may have (DELAY_SCHEDULES)")
	}
	w.Schedule.Target = target
	if source, _ := get(r.Header, hSource); source != "" {
		if source == target || source == r.Subject || !literal(source) {
			return &badSource
		}
		return badSource.because("this broker delivers the body of the request")
	}
	if v, _ := get(r.Header, hOwnRollup); v != "" && !strings.EqualFold(v, "sub") {
		return &badRollup
	}
	return nil
}

// purges reads whether the message ends another schedule. The server would store that message; here it is not stored.
func (w *Change) purges(ground message.Ground, r Request) *Refusal {
	next, _ := get(r.Header, hNext)
	scheduler, _ := get(r.Header, hScheduler)
	switch {
	case next == "" && scheduler == "":
		return nil
	case next != nextPurge, scheduler == r.Subject, !literal(scheduler):
		return &badScheduler
	case !message.Match(ground.Subjects, scheduler):
		// With the server, both are in one stream. Clients of this ground may not end the schedules of others.
		return badScheduler.because("it is none of %s, as the subject of this request is", ground.Subjects)
	case r.Header[hSchedule] != nil:
		return badScheduler.because("it sets one schedule and ends another: send two")
	case len(r.Body) > 0:
		return badScheduler.because("the broker does not store this message: leave the body out")
	}
	w.Cancel, w.Schedule.Subject = true, scheduler
	return nil
}

// life reads when a schedule ends.
func (w *Change) life(r Request, now time.Time) *Refusal {
	v, _ := get(r.Header, hOwnTTL)
	if v == "" {
		return nil
	}
	ttl, _, ok := parseTTL(v)
	switch {
	case !ok:
		return &badOwnTTL
	case ttl > 0:
		w.Schedule.Until = now.Add(ttl)
		if w.Schedule.At.After(w.Schedule.Until) {
			return badOwnTTL.because("it would be forgotten before it fires")
		}
	}
	return nil
}

// parseTTL parses a time to live as the server does: whole seconds, a Go duration of at least one second, or never. It
// reduces a longer time to the maximum of a Duration.
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

// literal reports whether the server would accept a publish on a subject.
func literal(subject string) bool {
	return message.ValidPattern(subject) && !strings.ContainsAny(subject, "*>")
}
