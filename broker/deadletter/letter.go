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
	At       time.Time        // when it became one, by the server's clock
	Address  string           // its own subject, delaydead.<code>[.<target…>]
	Size     int              // bytes of the payload
	Data     []byte           // nil if only the headers were read
	Problem  *message.Problem // the part that cannot be read; nil if there is none
	// Unproven is the reason to doubt that a broker wrote it; nil when that is proven. Without the body, only the headers
	// are checked.
	Unproven *message.Problem
}

// newLetter reads a stored message. HeadersOnly says that it has no body.
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

// Marker reports whether the letter is from a named timer's marker whose seal could not be proven. A marker is no
// message: it has no body, and a token of ours in place of a target. An empty message to a target of that name looks
// the same if nobody could prove it either.
func (l Letter) Marker(n message.Names) bool {
	addr := n.Parse(l.Subject)
	return l.Code == message.BadInternal && l.Size == 0 && addr.Form == message.FormHop &&
		addr.Target == message.MarkerTarget
}

// Again returns the request as which a letter would be resent, or an ErrStays with the reason why it stays. It is a
// pure function; now is the server's time. The stream may still refuse, and the broker looks at the policy again.
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
