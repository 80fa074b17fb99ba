package outbox

import (
	"errors"

	"github.com/nats-io/nats.go"
)

var (
	// ErrTimeout is returned when no answer came in time. The message may or may not have arrived.
	ErrTimeout = errors.New("no answer in time")
	// ErrDisconnected is returned when the connection was lost before the answer. The message may or may not have arrived.
	ErrDisconnected = errors.New("disconnected before the answer")
	// ErrSilent is returned by PublishListening when the server has taken the message, and no answer has come for a while.
	// The function may ask to be called again.
	ErrSilent = errors.New("taken by the server, and nobody answered")
	// ErrClosed is returned when the outbox closes before the answer.
	ErrClosed = errors.New("closed before the answer")
)

// Offline reports whether a publish failed for want of a connection. It is worth repeating as soon as there is one.
func Offline(err error) bool {
	for _, e := range []error{
		ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrDisconnected,
		nats.ErrConnectionClosed,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
