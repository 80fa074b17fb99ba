package role

import (
	"context"
	"sync/atomic"
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
	Instance string // the instance's id in firings
	Policy   message.Policy
	History  time.Duration // how long the outcome of a timer is kept; zero for not at all
	Reserve  int           // the bytes that the stream's max_msg_size leaves for our headers

	API jsapi.Client
	// Copies reads from any replica, on a connection of its own. Without a connection, the leader answers all reads.
	Copies jsapi.Client
	Sample func(ctx context.Context, stream string) (lane.Sample, error) // returns the stream's state from its leader
	// Publish publishes on the stream, and returns its answer. It ignores an answer that the stream has not written.
	Publish      func(context.Context, *nats.Msg) jsapi.Reply
	Scan         lane.Scan                           // with the connection to read on
	ClaimTimeout func(instance string) time.Duration // the time for which the firings of an instance are left to it
	ReadKeys     func(local time.Time)               // has the secrets read soon
}

// Stream is the stream of named timers. All workers of an instance share it. It is safe for concurrent use.
type Stream struct {
	Config
	claims  timer.Claims  // in this process
	settled timer.Settled // likewise

	leaderOnly atomic.Int64 // Unix time in nanoseconds until which replicas are not asked
}

// NewStream returns a Stream, and asks nothing.
func NewStream(cfg Config) *Stream { return &Stream{Config: cfg} }

// Name returns the name of the stream.
func (s *Stream) Name() string { return s.Policy.Names.TimersStream() }

// Entries returns a reader of the stream's entries.
func (s *Stream) Entries() store.Entries {
	return store.Entries{API: s.API, Policy: s.Policy, Sample: s.Sample}
}

// Take claims the firing of a timer within this process, and reports whether this alarm has it.
func (s *Stream) Take(a *Alarm) bool { return s.claims.Take(a.Generation, a) }

// Release releases the firing.
func (s *Stream) Release(a *Alarm) { s.claims.Release(a.Generation, a) }

// OfMarker returns the alarm of a marker in another lane. The marker's seal vouches for its id.
func (s *Stream) OfMarker(m entry.Marker) *Alarm {
	id, err := message.ParseID(m.ID)
	if err != nil {
		panic("bug: a hop has been read with an id that cannot be: " + m.ID)
	}
	return &Alarm{
		Subject: m.Timer(s.Policy.Names), key: m.Key,
		Generation: id.Sequence, At: id.At, Size: m.Size, Stage: Doubt,
		fresh: true, unread: m.Origin().Series > 0, cleared: true,
	}
}

// OfEntry returns the alarm of an entry that was read.
func (s *Stream) OfEntry(e entry.Entry, in message.Incoming) *Alarm {
	a := &Alarm{
		Subject: in.Subject, key: s.Policy.Names.Parse(in.Subject).Token, Generation: in.Sequence, At: in.At,
		Size: len(in.Data), First: e.First, cleared: e.First,
		Removal: Removal{Alone: !entry.CanName(s.Policy, in.Subject)},
	}
	a.Succeeds(e)
	switch e.Kind {
	case entry.Set, entry.Unproven: // an unproven one, until its key is known
	case entry.Paused:
		a.Stage, a.Entry, a.Keep = Settled, in.Sequence, true
	case entry.Cancel:
		a.Stage, a.Entry, a.Keep = Settled, in.Sequence, s.history(in.Subject) > 0
	default: // ours: the lane of its marker has the timer, or nothing is left to do
		a.Stage = Settled
	}
	return a
}

// LeftBehind returns the alarm of a firing from before this instance owned the lane. The last owner, perhaps this
// instance, may have left it. Its set is not in the stream: so it was delivered, and a crash came before its own entry
// was removed; or a client has put something over it. The alarm examines it as a marker would. The sweep would find it
// too, but later than the target's stream recognises duplicates. For any other entry, LeftBehind returns nil.
func (s *Stream) LeftBehind(e entry.Entry, in message.Incoming) *Alarm {
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

// history returns how long the outcome of a timer is kept on its subject.
func (s *Stream) history(subject string) time.Duration {
	if entry.Repeats(s.Policy.Names, subject) {
		return max(s.History, entry.RepeatTime)
	}
	return s.History
}

// Ends returns when an entry should be gone, by itself or with its timer. It is zero for an entry that may stay.
func (s *Stream) Ends(e entry.Entry, subject string, stored time.Time) time.Time {
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
		"%d bytes and headers are more than can be fired: the stream's max_msg_size must leave %d bytes free for the "+
			"broker's headers (generation %d; what it replaced is gone)", size, s.Reserve, a.Generation)
}

// Firing returns the entry that records the firing of a timer. For a series, it is also the set of the next round; if
// this round was missed, it is only that. It is nil if the last round was missed: then the timer is settled.
func (s *Stream) Firing(a *Alarm, r message.Request, body []byte, now time.Time) *nats.Msg {
	a.ends = over
	t := a.pending(r)
	if t.Recurs == nil {
		return s.sealed(a.Subject, t.FiredHeader(a.Generation, s.Instance), body)
	}
	series, round := t.Round()
	d := t.Recurs.Table.Decide(series, round, now)
	a.Left = d.Left
	next := entry.Next{
		By: s.Instance, Round: d.Next, Wait: d.Wait, Table: t.Recurs.Table, First: series.First, Word: t.Word,
	}
	switch more := d.Next != (timetable.Round{}); {
	case d.Fire && !more:
		return s.sealed(a.Subject, t.FiredHeader(a.Generation, s.Instance), body)
	case d.Fire:
		a.ends = goesOn
	case more:
		a.ends, next.By = passes, ""
	default:
		a.missed(0)
		return nil
	}
	return s.sealed(a.Subject, t.RoundHeader(a.Generation, next), body)
}

// Found takes over the firing of a timer from the entry that records it, and returns its request.
func (a *Alarm) Found(see timer.State) message.Request {
	e := see.Entry
	if a.ends = over; e.Kind != entry.Fired {
		a.ends = goesOn
	}
	a.word = e.Word
	a.Won(see.Sequence)
	return e.Fired()
}

// HasOutcome reports whether an entry must record the outcome of a timer before its entries are removed.
func (s *Stream) HasOutcome(a *Alarm) bool {
	return s.history(a.Subject) > 0 && !a.Alone && a.What != ""
}

// Over returns that entry.
func (s *Stream) Over(a *Alarm, r message.Request) *nats.Msg {
	return s.sealed(a.Subject, a.pending(r).OverHeader(a.Generation, a.Entry, a.What), nil)
}

func (s *Stream) sealed(subject string, header message.Header, body []byte) *nats.Msg {
	s.Policy.Keys.SealMessage(subject, header, body, time.Now())
	return &nats.Msg{Subject: subject, Header: nats.Header(header), Data: body}
}
