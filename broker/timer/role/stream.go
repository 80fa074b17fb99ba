package role

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
	"delaybroker/broker/lane"
	"delaybroker/broker/message"
	"delaybroker/broker/timer"
	"delaybroker/broker/timer/entry"
	"delaybroker/broker/timer/store"
	"delaybroker/broker/timer/timetable"
)

// Config is the configuration of a Stream.
type Config struct {
	Instance string // the id of this instance, which firings contain
	Policy   message.Policy
	History  time.Duration // the time for which an outcome or a cancel is kept; zero if none is kept
	Reserve  int           // the number of bytes that a set must stay below the stream's max_msg_size: see TooLargeToFire

	API jsapi.Client
	// Copies reads from any replica, on a separate connection. If its Conn is nil, all reads go to the leader.
	Copies jsapi.Client
	Sample func(ctx context.Context, stream string) (lane.Sample, error) // returns the stream's state from its leader
	// Publish publishes a message into the stream, and returns the stream's answer. It ignores an answer that does not
	// name the stream: any subscriber could have sent that answer.
	Publish func(context.Context, *nats.Msg) jsapi.Reply
	Scan    lane.Scan // has the connection and the API prefix of the sweep's scans
	// ClaimTimeout returns for how long this instance leaves a firing to the instance that has stored the firing.
	ClaimTimeout func(instance string) time.Duration
	ReadKeys     func(local time.Time) // makes the broker read its secrets again soon
}

// Stream is the stream of named timers. All workers of an instance share one Stream. It is safe for concurrent use.
type Stream struct {
	Config
	claims        // the firings of this process
	settledRounds // the rounds whose earlier rounds are settled

	copiesBackoff copiesBackoff
}

// NewStream returns a Stream. It sends no request.
func NewStream(cfg Config) *Stream { return &Stream{Config: cfg} }

// Name returns the name of the stream.
func (s *Stream) Name() string { return s.Policy.Names.TimersStream() }

// Entries returns a reader of the stream's entries.
func (s *Stream) Entries() store.Entries {
	return store.Entries{API: s.API, Policy: s.Policy, Sample: s.Sample}
}

// MarkerAlarm returns the alarm of a marker that a level's lane has read. The caller must have verified the marker's
// seal.
func (s *Stream) MarkerAlarm(m entry.Marker) *Alarm {
	id, err := message.ParseID(m.ID)
	if err != nil {
		panic("bug: a sealed marker has an invalid id: " + m.ID)
	}
	return &Alarm{
		Subject: m.Timer(s.Policy.Names), key: m.Key,
		Generation: id.Sequence, At: id.At, Size: m.Size, Stage: Doubt,
		Fresh: true, unread: m.Origin().Series > 0, cleared: true,
	}
}

// EntryAlarm returns the alarm of an entry that the timers' lane has read.
func (s *Stream) EntryAlarm(e entry.Entry, in message.Incoming) *Alarm {
	a := &Alarm{
		Subject: in.Subject, key: s.Policy.Names.Parse(in.Subject).Token, Generation: in.Sequence, At: in.At,
		Size: len(in.Data), First: e.First, cleared: e.First,
		Removal: Removal{OnlyEntry: !entry.ValidSubject(s.Policy, in.Subject)},
	}
	a.TakeEntry(e)
	switch e.Kind {
	case entry.Set, entry.Unproven: // the worker examines an Unproven entry, whose seal has an unknown key, later
	case entry.Paused:
		a.Stage, a.Entry, a.Keep = Settled, in.Sequence, true
	case entry.Cancel:
		a.Stage, a.Entry, a.Keep = Settled, in.Sequence, s.history(in.Subject) > 0
		a.Cancelled = e.Cancelled
	default: // a firing, an outcome or the cursor: nothing is to be done here
		a.Stage = Settled
	}
	return a
}

// FiringAlarm returns the alarm of a firing; nil if the entry is not a firing, or has an invalid id. The worker needs
// that alarm only if the firing was stored before this instance owned the lane. A crash may have come between the
// removal of the set and the removal of the firing, or a client may have published over the firing. The worker examines
// this alarm like the alarm of a marker. The sweep would find the firing too, but so late that the target's stream
// would not recognise a duplicate.
func (s *Stream) FiringAlarm(e entry.Entry, in message.Incoming) *Alarm {
	if e.Kind != entry.Fired {
		return nil
	}
	id, err := message.ParseID(e.Request.ID)
	if err != nil {
		return nil
	}
	return &Alarm{
		Subject: in.Subject, Generation: e.Generation, At: id.At, Size: len(in.Data), Stage: Doubt,
	}
}

// history returns the time for which the last entry of a finished timer is kept on its subject.
func (s *Stream) history(subject string) time.Duration {
	if entry.IsExtra(s.Policy.Names, subject) {
		return max(s.History, entry.ExtraTime)
	}
	return s.History
}

// Deadline returns the deadline of an entry: if the entry still exists sweepLate later, the sweep must handle the
// entry. The deadline is zero for an entry that may stay.
func (s *Stream) Deadline(e entry.Entry, subject string, stored time.Time) time.Time {
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

// TooLargeToFire returns the problem of a set whose firing would be too large for the stream.
func (s *Stream) TooLargeToFire(a *Alarm, size int) *message.Problem {
	return message.Problemf(message.TooLarge,
		"a body of %d bytes with its headers is too large to be fired: the stream's max_msg_size must leave %d bytes "+
			"free for the broker's headers (generation %d, which has replaced any earlier entry)",
		size, s.Reserve, a.Generation)
}

// Firing returns the entry to store when a timer is due. That entry records the firing and, for a series, sets the next
// round, if there is one. If a missed round does not fire, the entry only sets the next round. If such a round is the
// last of its series, Firing returns nil: the timer is settled.
func (s *Stream) Firing(a *Alarm, r message.Request, body []byte, now time.Time) *nats.Msg {
	a.firing = lastFiring
	t := a.pending(r)
	if t.Series == nil {
		return s.sealed(a.Subject, t.FiredHeader(a.Generation, s.Instance), body)
	}
	series, round := t.Round()
	d := t.Series.Table.Decide(series, round, now)
	a.Skipped = d.Skipped
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

// ContinueFiring continues a firing that this or another instance has stored. It returns the request of the fired
// message.
func (a *Alarm) ContinueFiring(state timer.State) message.Request {
	e := state.Entry
	if a.firing = lastFiring; e.Kind != entry.Fired {
		a.firing = nextRound
	}
	a.token = e.Token
	a.FiringStored(state.Sequence)
	return e.Fired()
}

// HasOutcome reports whether an entry must record the timer's outcome before the other entries are removed.
func (s *Stream) HasOutcome(a *Alarm) bool {
	return s.history(a.Subject) > 0 && !a.OnlyEntry && a.Outcome != ""
}

// OutcomeEntry returns the entry that records the outcome of a timer.
func (s *Stream) OutcomeEntry(a *Alarm, r message.Request) *nats.Msg {
	return s.sealed(a.Subject, a.pending(r).OverHeader(a.Generation, a.Entry, a.Outcome), nil)
}

func (s *Stream) sealed(subject string, header message.Header, body []byte) *nats.Msg {
	s.Policy.Keys.SealMessage(subject, header, body, time.Now())
	return &nats.Msg{Subject: subject, Header: nats.Header(header), Data: body}
}
