package acks

import (
	"errors"
	"time"

	"github.com/nats-io/nats.go"
)

var (
	// ErrTimeout is returned when no answer came in time. The message may or may not have arrived.
	ErrTimeout = errors.New("no answer in time")
	// ErrDisconnected is returned when the connection was lost before the answer. The message may or may not have arrived.
	ErrDisconnected = errors.New("disconnected before the answer")
	// ErrSilent is returned by PublishListening when the server has taken the message, and no answer has come for a while.
	// The function may ask to be called again. The error is a [*Silence], which has the time of the server's confirmation.
	ErrSilent = errors.New("taken by the server, and nobody answered")
	// ErrClosed is returned when the inbox closes before the answer.
	ErrClosed = errors.New("closed before the answer")
)

// Silence is an ErrSilent with the time at which the server confirmed that it had taken the message.
type Silence struct {
	Taken time.Time // local
}

func (s *Silence) Error() string { return ErrSilent.Error() }

// Unwrap returns ErrSilent.
func (s *Silence) Unwrap() error { return ErrSilent }

// Offline reports whether a publish failed because there was no connection. Then the caller can repeat it as soon as
// there is one.
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
