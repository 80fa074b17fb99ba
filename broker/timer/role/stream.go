package role

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/timetable"
)

// Config is the configuration of a Stream.
type Config struct {
	Instance string // the id of this instance, which firings contain
	Policy   message.Policy
	History  time.Duration // the time for which an outcome or a cancel is kept; zero if none is kept
	Reserve  int           // the number of bytes that a set must stay below the stream's max_msg_size: see tooLargeToFire

	API jsapi.Client
	// Copies reads from any replica, on a separate connection. If its Conn is nil, all reads go to the leader.
	Copies jsapi.Client
	Sample func(ctx context.Context, stream string) (lane.Sample, error) // returns the stream's state from its leader
	// Publish publishes a message into the stream, and returns the stream's answer. It ignores an answer that does not
	// name the stream: any subscriber could have sent that answer.
	Publish  func(context.Context, *nats.Msg) jsapi.Reply
	Scan     lane.Scan             // has the connection and the API prefix of the sweep's scans
	ReadKeys func(local time.Time) // makes the broker read its secrets again soon
}

// Stream is the stream of named timers. All workers of an instance share one Stream. It is safe for concurrent use.
type Stream struct {
	Config
	claims        // the firings of this process
	settledRounds // the rounds whose earlier rounds are settled
	changes       change.Timers

	copiesBackoff copiesBackoff
}

// NewStream returns a Stream. It sends no request.
func NewStream(cfg Config) *Stream {
	s := &Stream{Config: cfg}
	s.changes.Policy, s.changes.API, s.changes.Publish = cfg.Policy, cfg.API, cfg.Publish
	s.changes.Reader = s.entries().Reader
	return s
}

// Name returns the name of the stream.
func (s *Stream) Name() string { return s.Policy.Names.TimersStream() }

// entries returns a reader of the stream's entries.
func (s *Stream) entries() change.Entries {
	return change.Entries{
		Reader: sampledReader{change.JetStream{API: s.API, Stream: s.Name()}, s.Sample},
		Policy: s.Policy,
	}
}

// sampledReader is a Reader that takes the end of the stream from a sample.
type sampledReader struct {
	change.JetStream
	sample func(context.Context, string) (lane.Sample, error)
}

func (r sampledReader) End(ctx context.Context, _ string) (change.End, error) {
	s, err := r.sample(ctx, r.Stream)
	return change.End{LastSeq: s.LastSeq, Created: s.Created, ServerTime: s.ServerTime, Quorate: s.Quorate}, err
}

// history returns the time for which the last entry of a finished timer is kept on its subject.
func (s *Stream) history(subject string) time.Duration {
	if entry.IsExtra(s.Policy.Names, subject) {
		return max(s.History, entry.ExtraTime)
	}
	return s.History
}

// deadline returns the deadline of an entry: if the entry still exists sweepLate later, the sweep must handle the
// entry. The deadline is zero for an entry that may stay.
func (s *Stream) deadline(e entry.Entry, subject string, stored time.Time) time.Time {
	switch e.Kind {
	case entry.Set:
		return e.Request.Due
	case entry.Fired:
		return stored
	case entry.Cancel, entry.Over:
		return stored.Add(s.history(subject) - sweepLate)
	}
	return time.Time{}
}

// tooLargeToFire returns the problem of a set whose firing would be too large for the stream.
func (a *Alarm) tooLargeToFire() *message.Problem {
	return message.Problemf(message.TooLarge,
		"a body of %d bytes with its headers is too large to be fired: the stream's max_msg_size must leave %d bytes "+
			"free for the broker's headers (generation %d, which has replaced any earlier entry)",
		a.Size, a.lane.Reserve, a.Generation)
}

// firingEntry returns the entry to store when a timer is due. That entry records the firing and, for a series, sets the
// next round, if there is one. If a missed round does not fire, the entry only sets the next round. If such a round is
// the last of its series, firingEntry returns nil: the timer is settled.
func (a *Alarm) firingEntry(r message.Request, body []byte, now time.Time) *nats.Msg {
	a.firing = lastFiring
	s, t := a.lane.Stream, a.pending(r)
	if t.Series == nil {
		return s.sealed(a.Subject, t.FiredHeader(a.Generation, s.Instance), body)
	}
	series, round := t.Round()
	d := t.Series.Table.Decide(series, round, now)
	a.skipped = d.Skipped
	next := entry.Next{
		Instance: s.Instance, Round: d.Next, Wait: d.Wait, Table: t.Series.Table, First: series.First, Token: t.Token,
	}
	switch hasNext := d.Next != (timetable.Round{}); {
	case d.Fire && !hasNext:
		return s.sealed(a.Subject, t.FiredHeader(a.Generation, s.Instance), body)
	case d.Fire:
		a.firing = nextRound
	case hasNext:
		a.firing, next.Instance = missedRound, ""
	default:
		a.missed(0)
		return nil
	}
	return s.sealed(a.Subject, t.RoundHeader(a.Generation, next), body)
}

func (s *Stream) sealed(subject string, header message.Header, body []byte) *nats.Msg {
	s.Policy.Keys.SealMessage(subject, header, body)
	return &nats.Msg{Subject: subject, Header: nats.Header(header), Data: body}
}
