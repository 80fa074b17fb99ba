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
	Sequence uint64           // in the stream of dead letters
	At       time.Time        // when it became a dead letter, by the server's clock
	Address  string           // its own subject, delaydead.<code>[.<target…>]
	Size     int              // bytes of the payload
	Data     []byte           // nil if only the headers were read
	Problem  *message.Problem // the unreadable part; nil if there is none
	// Unproven is the reason to doubt that a broker wrote the letter; nil if the seal proves it. Without the body, only
	// the headers are checked.
	Unproven *message.Problem
}

// newLetter parses a stored message. HeadersOnly is set if it was read without its body.
func newLetter(policy message.Policy, stream string, m lane.Stored, headersOnly bool) Letter {
	l := Letter{Sequence: m.Sequence, At: m.At, Address: m.Subject, Size: len(m.Data), Data: m.Data}
	if headersOnly {
		l.Size, l.Data = m.BodySize(), nil
	}
	in := m.Incoming(stream)
	in.BodyLeft, in.KeysRead = headersOnly, true
	l.Letter, l.Problem = policy.Names.ParseLetter(in)
	l.Unproven = policy.Unproven(in)
	return l
}

// Marker reports whether the letter is the marker of a named timer without a valid seal. A marker is not a message: it
// has no body, and a token of the broker in place of a target. An unproven empty message to a target with the same name
// looks equal.
func (l Letter) Marker(n message.Names) bool {
	addr := n.Parse(l.Subject)
	return l.Code == message.BadInternal && l.Size == 0 && addr.Form == message.FormHop &&
		addr.Target == message.MarkerTarget
}

// Again returns the request that resends a letter, or an ErrStays with the reason. It is a pure function. Now is the
// server's time. The stream may still refuse the request, and the broker checks its policy again.
func (l Letter) Again(p message.Policy, c Change, now time.Time) (message.Letter, error) {
	again := l.Letter
	if l.Problem != nil {
		return again, fmt.Errorf("%w: %s", ErrUnreadable, l.Problem.Sentence)
	}
	if l.Marker(p.Names) {
		return again, ErrMarker
	}
	if l.Unproven != nil && !c.Unsealed {
		return again, fmt.Errorf("%w: %s", ErrUnproven, l.Unproven.Sentence)
	}
	if c.Target != "" {
		again.Target = c.Target
	}
	if again.Target == "" {
		return again, ErrNoTarget
	}
	if problem := p.CheckTarget(again.Target); problem != nil {
		return again, fmt.Errorf("%w: %s", ErrForbidden, problem.Sentence)
	}
	again, problem := p.Edited(again, c.Edit.HeaderEdit, now)
	if problem != nil {
		return again, fmt.Errorf("%w: %s", ErrEdit, problem.Sentence)
	}
	switch {
	case c.AtOnce && again.Due.After(l.At):
		again.Due = l.At
	case !c.AtOnce && !again.Understood():
		return again, ErrNoTime
	}
	if !again.Expires.IsZero() && now.After(again.Expires) {
		if !c.DropExpiry {
			return again, ErrPastExpiry
		}
		again.Expires = time.Time{}
	}
	return again, nil
}
