package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	"delaybroker/broker/message"
)

// Resend is the difference between a letter and the message that Resend publishes.
type Resend struct {
	Target     string // the new target; if empty, the message keeps the target of the letter
	DeliverNow bool   // deliver immediately, even if the due time is later or unknown
	DropExpiry bool   // deliver although Delay-Expires has passed
	Unsealed   bool   // deliver although no seal proves that a broker wrote the letter
	Edit       Edit   // other headers or another body
}

// Edit is a change of the headers and the body. The zero Edit changes nothing.
type Edit struct {
	message.HeaderEdit
	Body []byte `json:"body,omitzero"` // the new body; if nil, the message keeps the body of the letter
}

// IsZero reports whether the edit changes nothing.
func (e Edit) IsZero() bool { return len(e.Drop)+len(e.Set) == 0 && e.Body == nil }

// digest returns a digest of the edit for the Nats-Msg-Id of the message, or "" for the zero Edit.
func (e Edit) digest() string {
	if e.IsZero() {
		return ""
	}
	text, _ := json.Marshal(e) // cannot fail for text and bytes
	sum := sha256.Sum256(text)
	return "/edited/" + hex.EncodeToString(sum[:8])
}

// EditableHeader returns the headers that an edit may change: the client's own headers, and the options of the request.
func (l Letter) EditableHeader() message.Header {
	h := maps.Clone(l.User)
	if h == nil {
		h = make(message.Header)
	}
	maps.Copy(h, l.OptionHeader())
	if l.DueKnown() {
		message.PutTime(h, message.HeaderUntil, l.Due)
	}
	message.PutTime(h, message.HeaderExpires, l.Expires) // a duration would count from the time of the edit
	return h
}
