package inspect

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/fault"
	"delaybroker/broker/jsapi"
	"delaybroker/broker/message"
	"delaybroker/broker/streams"
	"delaybroker/broker/timer/entry"
)

const (
	// A stream or an account that uses FullShare of its limit counts as full: the server may refuse the next large
	// message.
	FullShare = 0.98
	// minOverdue is the minimum lateness of an overdue message. A message with less lateness may be delivered
	// already, because a broker removes messages some time after their delivery.
	minOverdue = time.Second
)

// State is the state of a lane's stream.
type State string

// The states of a stream.
const (
	Serving  State = "serving"
	Retiring State = "retiring" // not in the configuration
	Missing  State = "missing"
	Foreign  State = "foreign"      // the stream with this name does not belong to this broker
	Broken   State = "broken marks" // the stream's metadata is invalid
	Full     State = "full"
	Silent   State = "no answer"
	TooNew   State = "waits for a newer broker" // the lane's owner cannot read some of its messages
)

// newerMessage is the error of a lane whose first message needs a newer broker.
const newerMessage = "the first message was written by a newer broker, and waits for one"

// Lane describes a stream of a broker at the time of a snapshot.
type Lane struct {
	Stream  string       `json:"stream"`
	Kind    streams.Kind `json:"kind"`
	Level   string       `json:"level,omitempty"`
	Delay   float64      `json:"delay_seconds"`
	Pending uint64       `json:"pending"`
	Bytes   uint64       `json:"bytes"`

	// Of the first message:
	HeadDue      time.Time `json:"head_due,omitzero"`
	HeadDeadCode string    `json:"head_dead_letter,omitempty"` // code of the dead letter that the message will become
	// Overdue is the time since the most overdue message should have left, as its owner reports it. Without an owner's
	// report it is that of the first message, which may be delivered, and zero below minOverdue.
	Overdue float64 `json:"overdue_seconds"`

	// Of the instance that reads the lane; zero if unknown:
	Owner         Owner        `json:"owner,omitempty"`
	Instance      string       `json:"instance,omitempty"` // the owner
	Format        int          `json:"format,omitempty"`   // the newest format that the owner reads; zero if it is unknown
	Fault         *fault.Fault `json:"fault,omitempty"`    // why the messages of the lane wait; nil if they do not
	NewerMessages int          `json:"newer,omitempty"`    // messages in the owner's memory with a newer format
	Held          int          `json:"held"`               // messages in the owner's memory
	LastRead      uint64       `json:"read"`               // the last sequence that the owner read
	ResumesAt     time.Time    `json:"resumes_at,omitzero"`

	InRate  *float64 `json:"in_per_second,omitempty"`  // arrivals since the previous snapshot, or nil
	OutRate *float64 `json:"out_per_second,omitempty"` // departures since the previous snapshot, or nil
	State   State    `json:"state"`
	Error   string   `json:"error,omitempty"` // the reason for unknown fields

	Info       *jetstream.StreamInfo `json:"-"` // nil if the stream is missing or foreign, or did not answer
	UnknownKey bool                  `json:"-"` // this program lacks the secret that sealed the first message

	spec    streams.Spec
	arrived uint64 // the owner has delivered or moved all messages up to this sequence
	format  int    // format of the first message; zero if it is a client's message, or unknown
}

func newLane(s streams.Spec, state State) Lane {
	return Lane{Stream: s.Stream, Kind: s.Kind, Level: s.Name, Delay: s.Delay.Seconds(), State: state, spec: s}
}

// fill requests the state of a lane's stream from its leader.
func (i *Inspector) fill(ctx context.Context, l *Lane) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Timeout)
	defer cancel()
	s, err := i.JetStream.Stream(ctx, l.Stream)
	if err != nil {
		l.State, l.Error = Silent, err.Error()
		return
	}
	l.Info = s.CachedInfo()
	l.Pending, l.Bytes = l.Info.State.Msgs, l.Info.State.Bytes
	if l.Kind == streams.Timers && l.Pending > 0 {
		if _, err := i.api.Last(ctx, l.Stream, i.names.TimersCursor()); err == nil {
			l.Pending-- // the cursor of the timers' owner is no message
		}
	}
	if l.State == Serving && IsFull(l.Info) {
		l.State = Full
	}
	if l.Kind == streams.Paused {
		l.Pending -= min(l.Pending, i.pauseRecords(ctx, s))
	}
	if l.needsOwner() && l.Pending > 0 {
		if err := i.fillHead(ctx, l); err != nil {
			l.Error = err.Error()
		}
	}
}

// needsOwner reports whether an instance should read the lane.
func (l Lane) needsOwner() bool {
	return l.Kind != streams.Dead && l.Kind != streams.Paused && l.State != Broken
}

// unreadable reports whether the owner of the lane cannot read a message of this format. Without a known owner,
// unreadable assumes the newest format of this program.
func (l Lane) unreadable(format int) bool { return format > cmp.Or(l.Format, message.Format) }

// formatOf returns the format of a broker's message. It returns zero for a client's message, or without a format.
func (i *Inspector) formatOf(in message.Incoming) int {
	if !i.names.Parse(in.Subject).StoredByBroker() {
		return 0
	}
	return message.ClaimOf(in.Header).Format
}

func (i *Inspector) pauseRecords(ctx context.Context, s jetstream.Stream) uint64 {
	subject := i.names.PausesRecord()
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 1 // after the first pause, the stream usually has one record
	}
	return info.State.Subjects[subject]
}

// IsFull reports whether a stream has reached FullShare of one of its own limits.
func IsFull(info *jetstream.StreamInfo) bool {
	limit := info.Config.MaxMsgs
	return limit > 0 && float64(info.State.Msgs) >= FullShare*float64(limit) || IsFullOfBytes(info)
}

// IsFullOfBytes reports whether a stream has reached FullShare of its byte limit.
func IsFullOfBytes(info *jetstream.StreamInfo) bool {
	limit := info.Config.MaxBytes
	return limit > 0 && float64(info.State.Bytes) >= FullShare*float64(limit)
}

// fillHead reads the first message of a lane, unless the message has left the lane in the meantime.
func (i *Inspector) fillHead(ctx context.Context, l *Lane) error {
	in, err := i.Message(ctx, l.Stream, l.Info.State.FirstSeq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.Kind == streams.Timers {
		i.fillTimer(l, in)
		return nil
	}
	departure := in.At
	in.KeysCurrent = false // the brokers may have a secret that these settings lack
	switch request, problem := entry.ParseAny(i.Policy(), in); {
	case problem == nil:
		l.HeadDue, l.format = request.NextAttempt(), i.formatOf(in)
		departure = i.streams.Config().Ladder.LeaveTime(in.At.Add(l.spec.Delay), request.NextAttempt())
	case problem.Code == message.NewerFormat:
		l.Error, l.format = newerMessage, i.formatOf(in)
		departure = in.At.Add(l.spec.Delay)
	case problem.Code == message.UnknownKey:
		l.UnknownKey, l.Error = true, problem.Sentence
		return nil
	default:
		l.HeadDeadCode = string(problem.Code)
	}
	if late := l.Info.TimeStamp.Sub(departure); late >= minOverdue {
		l.Overdue = late.Seconds()
	}
	return nil
}

// fillTimer describes the oldest entry in the stream of the timers. Another timer may fire earlier.
func (i *Inspector) fillTimer(l *Lane, in message.Incoming) {
	e := entry.Parse(i.Policy(), in)
	switch {
	case e.Kind == entry.Set && e.Problem != nil:
		l.HeadDeadCode = string(e.Problem.Code)
	case e.Kind == entry.Set || e.Kind == entry.Fired && e.Problem == nil:
		l.HeadDue = e.Request.NextAttempt()
		if late := l.Info.TimeStamp.Sub(l.HeadDue); late >= minOverdue {
			l.Overdue = late.Seconds()
		}
	}
}

// Idle reports whether a lane is empty and has neither traffic nor a problem. It is always false for the intake.
func (l Lane) Idle() bool {
	return l.Pending == 0 && l.State == Serving && l.Error == "" && l.Kind != streams.Intake &&
		(l.Owner == OwnerReads || l.Owner == OwnerWaits || l.Kind == streams.Dead || l.Kind == streams.Paused) &&
		(l.InRate == nil || *l.InRate == 0 && *l.OutRate == 0)
}
