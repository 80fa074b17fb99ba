package inspect

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/message"
	"delaybroker/broker/text"
	"delaybroker/broker/timer/entry"
)

// Whereabouts describes the state of one message.
type Whereabouts struct {
	ID       string    `json:"id"`
	Found    bool      `json:"found"`
	Answer   string    `json:"answer"` // a sentence
	Stream   string    `json:"stream,omitempty"`
	Sequence uint64    `json:"sequence,omitempty"`
	Accepted time.Time `json:"accepted,omitzero"`
	Due      time.Time `json:"due,omitzero"`
	Target   string    `json:"target,omitempty"`

	Attempts    int       `json:"attempts"` // deliveries refused so far
	Allowed     int       `json:"attempts_allowed,omitempty"`
	LastError   string    `json:"last_error,omitempty"` // reason of the last refusal
	LastFailure time.Time `json:"last_failure,omitzero"`
	// Refusals are the refused deliveries, the oldest first: the latest Attempts, or fewer.
	Refusals []message.Refusal `json:"refusals,omitempty"`
	Deferred string            `json:"deferred,omitempty"` // the reason for the wait until RetryAt; empty after a refusal
	RetryAt  time.Time         `json:"retry_at,omitzero"`

	Paused string    `json:"paused,omitempty"` // a sentence about the pause of the message's target
	Code   string    `json:"code,omitempty"`   // the dead-letter code
	Reason string    `json:"reason,omitempty"`
	Dead   time.Time `json:"dead_since,omitzero"`

	// Of the journal's record of a delivery. If the record is that of a dead letter, only Instance is set.
	Delivered time.Time `json:"delivered_at,omitzero"`
	Late      float64   `json:"late_seconds,omitempty"`
	Instance  string    `json:"instance,omitempty"` // the instance that wrote the record

	Searched uint64 `json:"searched"` // messages whose headers were read
}

// describe returns the common fields of a found message.
func (s *search) describe(in message.Incoming, accepted, due time.Time, target string) Whereabouts {
	return Whereabouts{
		ID: s.ID.String(), Found: true, Stream: in.Stream, Sequence: in.Sequence, Searched: s.searched,
		Accepted: accepted, Due: due, Target: target,
	}
}

func (s *search) describeStored(in message.Incoming, v Lanes) Whereabouts {
	now := v.Time
	if in.Stream == s.names.TimersStream() {
		if e := entry.Parse(s.Policy(), in); e.Kind != entry.Set {
			return s.describeEntry(in, e)
		}
	}
	r, problem := entry.ParseAny(s.Policy(), in)
	w := s.describe(in, r.Accepted, r.Due, r.Target)
	w.Attempts, w.Allowed, w.Refusals = r.Attempts, r.AllowedRefusals, r.Refusals()
	w.LastError, w.LastFailure, w.Deferred, w.RetryAt = r.LastError, r.LastFailure, r.DeferralReason, r.RetryAt
	paused := v.pauseOf(s.names.Parse(in.Subject), r.Target)
	switch wait := r.NextAttempt().Sub(now); {
	case (problem == nil || problem.Code == message.NewerFormat) && v.lane(in.Stream).unreadable(s.formatOf(in)):
		w.Answer = v.lane(in.Stream).explainNewer(s.formatOf(in))
	case problem != nil && problem.Code == message.NewerFormat: // the owner can read it, and this program cannot
		w.Answer = "in " + in.Stream + ", in a format that only a newer version of this program can show"
	case problem != nil:
		w.Due = time.Time{} // without a valid request, the due time is unknown
		w.Code, w.Reason = string(problem.Code), problem.Sentence
		w.Answer = "about to become a dead letter"
	case paused != "" && wait <= 0:
		w.Answer, w.Paused = "waiting: "+paused, paused
	case wait > 0 && r.DeferralReason != "":
		w.Answer = fmt.Sprintf("deferred, next attempt in %s", text.Span(wait))
	case wait > 0 && r.Attempts > 0:
		w.Answer = fmt.Sprintf("refused, next attempt in %s", text.Span(wait))
	case wait > 0:
		w.Answer = fmt.Sprintf("waiting, due in %s", text.Span(wait))
		if said := r.Summary(); said != "" {
			w.Answer += "; " + said
		}
	default:
		w.Answer = fmt.Sprintf("overdue by %s: %s", text.Span(-wait), v.explainOverdue(in))
	}
	if paused != "" && w.Paused == "" && problem == nil {
		w.Answer, w.Paused = w.Answer+"; "+paused, paused
	}
	if l := v.lane(in.Stream); l.Owner == NoOwner && problem == nil && r.NextAttempt().After(now) {
		w.Answer += "; no instance reads its lane now"
	}
	return w
}

func (l Lane) explainNewer(format int) string {
	if l.Format == 0 {
		return fmt.Sprintf("waiting for a newer broker: the message has format %d", format)
	}
	return fmt.Sprintf("waiting for a newer broker: %s owns its lane and reads formats up to %d;"+
		" the message has format %d", l.Instance, l.Format, format)
}

// pauseOf returns a text about the pause that holds a message back, or an empty string. For a message in the lane of a
// pause, it is that pause, even if the message's target has another pause now.
func (v Lanes) pauseOf(addr message.Address, target string) string {
	id, _ := v.list.PauseOf(target, "")
	if addr.Form == message.FormPaused {
		id = addr.Token
	}
	for _, p := range v.Paused {
		if p.ID == id {
			return "its target " + p.predicate()
		}
	}
	if addr.Form == message.FormPaused {
		return "its target was paused, and the message is leaving the lane of the pause"
	}
	return ""
}

// describeEntry describes an entry of any kind except Set.
func (s *search) describeEntry(in message.Incoming, e entry.Entry) Whereabouts {
	w := s.describe(in, e.Request.Accepted, e.Request.Due, e.Request.Target)
	switch e.Kind {
	case entry.Cancel:
		w.Answer = "a cancel"
	case entry.Paused:
		w.Answer = "a series that is paused: " + e.Summary()
	case entry.Fired:
		w.Answer = "fired by " + e.Instance + ", not yet delivered"
	case entry.Over:
		w.Accepted, w.Answer = s.ID.At, "ended: "+string(e.Outcome)
	case entry.Cursor:
		w.Answer = "the cursor of the broker, and no timer"
	default:
		w.Answer = "an entry without a valid seal of a broker"
	}
	return w
}

// explainOverdue explains the presence of a due message in its lane.
func (v Lanes) explainOverdue(in message.Incoming) string {
	const uncertain = "being delivered, or delivered and not yet removed"
	switch l := v.lane(in.Stream); {
	case l.Owner == NoOwner:
		return "no instance reads its lane"
	case l.Owner == OwnerStopped && l.Fault != nil:
		return fmt.Sprintf("%s cannot work its lane now: %s", l.Instance, l.Fault)
	case l.Owner == OwnerStopped:
		return fmt.Sprintf("%s cannot work its lane now", l.Instance)
	case l.LastRead >= in.Sequence:
		return uncertain
	case l.LastRead > 0:
		return fmt.Sprintf("%s has not read it yet", l.Instance)
	}
	return uncertain + ", or not read yet"
}

// describeLetter describes a dead letter, without the fields that are unreadable in the headers.
func (s *search) describeLetter(in message.Incoming) Whereabouts {
	l, _ := s.names.ParseLetter(in)
	if !l.DueKnown() {
		l.Due = time.Time{} // without a known due time, ParseLetter returns the time of acceptance as Due
	}
	w := s.describe(in, s.ID.At, l.Due, l.Target)
	w.Attempts, w.LastFailure, w.Refusals = l.Attempts, l.LastFailure, l.Refusals()
	w.Code, w.Reason, w.Dead = string(l.Code), l.Sentence, in.At
	w.Answer = "a dead letter since " + text.Moment(in.At)
	return w
}

// explainAbsence explains a search without a result. Origin is the stream that should have accepted the message.
func (s *search) explainAbsence(origin *jetstream.StreamInfo, records journalRecords) string {
	const nowhere = "neither in a lane nor a dead letter: "
	switch {
	case s.cut:
		return fmt.Sprintf("not among the first %d messages; raise --most to search more", s.searched)
	case len(s.silentStreams) > 0:
		return "not found, but these streams did not answer, and may have it: " + text.ShortList(s.silentStreams)
	case origin == nil:
		return nowhere + fmt.Sprintf("never accepted here: the stream %s does not exist,"+
			" or was deleted with its messages", s.ID.Stream)
	case !s.Partial && origin.Created.After(s.ID.At):
		return nowhere + fmt.Sprintf("the stream %s is newer than the id", s.ID.Stream)
	case origin.State.LastSeq < s.ID.Sequence:
		return nowhere + fmt.Sprintf("never accepted: the last sequence of %s is %d",
			s.ID.Stream, origin.State.LastSeq)
	}
	if s.ID.Stream == s.names.TimersStream() {
		return nowhere + "the timer has fired, or was cancelled or replaced," +
			" unless the stream was purged or the id is invented"
	}
	return nowhere + records.absence()
}
