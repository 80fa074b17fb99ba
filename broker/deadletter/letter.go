package deadletter

import (
	"fmt"
	"time"

	"delaybroker/broker/lane"
	"delaybroker/broker/message"
)

// Letter is one dead letter.
type Letter struct {
	message.Letter
	Sequence uint64           // sequence in the stream of dead letters: the letter's number
	At       time.Time        // time at which the stream stored the letter, by the server's clock
	Address  string           // subject of the letter, delaydead.<code>[.<target…>]
	Size     int              // size of the payload in bytes
	Data     []byte           // nil if only the headers were read
	Problem  *message.Problem // the reason why the letter, or a part of it, is unreadable; nil if all is readable
	// Unproven is the reason to doubt that a broker wrote the letter; nil if the seal proves it, or no seal is needed.
	// Without the body, only the headers are checked.
	Unproven *message.Problem
}

// newLetter parses a stored message. HeadersOnly is true if m was read without its body.
func newLetter(policy message.Policy, stream string, m lane.Message, headersOnly bool) Letter {
	l := Letter{Sequence: m.Sequence, At: m.At, Address: m.Subject, Size: len(m.Data), Data: m.Data}
	if headersOnly {
		l.Size, l.Data = m.BodySize(), nil
	}
	in := m.Incoming(stream)
	in.HeadersOnly, in.KeysCurrent = headersOnly, true
	l.Letter, l.Problem = policy.Names.ParseLetter(in)
	l.Unproven = policy.DoubtLetter(in)
	return l
}

// isMarker reports whether the letter is a marker, the message in a level that makes the broker fire a named timer. The
// code of such a letter is bad_internal. A marker has no body, and MarkerTarget in place of a target. isMarker also
// returns true for another message without a body if its code is bad_internal and its target is MarkerTarget.
func (l Letter) isMarker(n message.Names) bool {
	addr := n.Parse(l.Subject)
	return l.Code == message.BadInternal && l.Size == 0 && addr.Form == message.FormHop &&
		addr.Target == message.MarkerTarget
}

// resentMessage returns the message that a resend publishes, or an ErrNotResendable with the reason. Now is the
// server's time. The stream may still refuse the message, and the broker checks its policy again.
func (l Letter) resentMessage(p message.Policy, c Resend, now time.Time) (message.Letter, error) {
	resent := l.Letter
	if l.Problem != nil {
		return resent, fmt.Errorf("%w: %s", ErrUnreadable, l.Problem.Sentence)
	}
	if l.isMarker(p.Names) {
		return resent, ErrMarker
	}
	if l.Unproven != nil && !c.Unsealed {
		return resent, fmt.Errorf("%w: %s", ErrUnproven, l.Unproven.Sentence)
	}
	if l.Unproven != nil || c.Target != "" {
		resent.Request = resent.WithoutRollup()
	}
	if c.Target != "" {
		resent.Target = c.Target
	}
	if resent.Target == "" {
		return resent, ErrNoTarget
	}
	if problem := p.CheckTarget(resent.Target); problem != nil {
		return resent, fmt.Errorf("%w: %s", ErrForbidden, problem.Sentence)
	}
	resent, problem := p.Edit(resent, c.Edit.HeaderEdit, now)
	if problem != nil {
		return resent, fmt.Errorf("%w: %s", ErrEdit, problem.Sentence)
	}
	switch {
	case c.DeliverNow && resent.Due.After(l.At):
		resent.Due = l.At
	case !c.DeliverNow && !resent.DueKnown():
		return resent, ErrNoTime
	}
	if !resent.Expires.IsZero() && now.After(resent.Expires) {
		if !c.DropExpiry {
			return resent, ErrExpired
		}
		resent.Expires = time.Time{}
	}
	return resent, nil
}
