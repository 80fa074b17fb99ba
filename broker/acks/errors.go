package acks

import (
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

var (
	// ErrTimeout means that no answer ended the publish in time. The message may or may not have arrived.
	ErrTimeout = errors.New("no answer in time")
	// ErrDisconnected means that the connection was lost before the answer. The message may or may not have arrived.
	ErrDisconnected = errors.New("the connection was lost before the answer")
	// ErrSilent means that the server took the message at least 50 ms ago, and no answer has ended the publish. Only
	// PublishReportingSilence reports it. The error is a [*Silence].
	ErrSilent = errors.New("the server took the message, and nobody answered")
	// ErrClosed means that Run ended before the answer.
	ErrClosed = errors.New("the inbox was closed before the answer")
)

// Silence is an ErrSilent with the time at which the server confirmed that it took the message.
type Silence struct {
	ConfirmedAt time.Time // by this host's clock
}

func (s *Silence) Error() string { return ErrSilent.Error() }

// Unwrap returns ErrSilent.
func (s *Silence) Unwrap() error { return ErrSilent }

// Offline reports whether a publish failed because there was no connection, or because it was lost before the answer.
func Offline(err error) bool {
	return slices.ContainsFunc([]error{
		ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, nats.ErrDisconnected,
		nats.ErrConnectionClosed,
	}, func(target error) bool { return errors.Is(err, target) })
}
