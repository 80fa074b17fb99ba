package client

import "errors"

// Errors of a request that was not published, since it would become a dead letter. The error's text names the change
// that repairs the request.
var (
	// ErrBadTarget is returned when the target is empty, has a wildcard, is too long, or is a subject to which brokers do
	// not deliver.
	ErrBadTarget = errors.New("bad target")
	// ErrBadTime is returned when the broker would not find a valid delay or time in the subject, a time is zero, or Until
	// is before the end of the level.
	ErrBadTime = errors.New("bad time")
	// ErrBadKey is returned when the key of a timer is invalid: see Key.
	ErrBadKey = errors.New("bad key")
	// ErrTooFar is returned when the message would be due later than Config.MaxDelay allows.
	ErrTooFar = errors.New("too far ahead")
	// ErrBadOption is returned when an option or a parameter is invalid, or not possible for this message or timer.
	ErrBadOption = errors.New("bad option")
	// ErrBadHeaders is returned when a header would not reach the target: its name is reserved or not safe, or the headers
	// are too many or too large.
	ErrBadHeaders = errors.New("bad headers")
)

// Errors of a publish or a request. The message is not stored, unless the error is ErrUnanswered or ErrForeign.
var (
	// ErrNoBroker is returned for a publish when no stream listens on the subject: no broker with Config.Prefix has
	// created its streams in this account, or the stream has no leader. It is returned for a request to a broker when no
	// broker runs, or the broker does not find the stream.
	ErrNoBroker = errors.New("no broker found")
	// ErrTooLarge is returned when the message is larger than the stream or the server allows.
	ErrTooLarge = errors.New("too large")
	// ErrConflict is returned when a timer does not have the expected generation: it has fired, was replaced or cancelled,
	// or exists unexpectedly. An earlier call with a lost answer may be the cause: call Client.Timer.
	ErrConflict = errors.New("conflict")
	// ErrFull is returned when the stream, the account or the server has no room. Try again later.
	ErrFull = errors.New("no room")
	// ErrBusy is returned when too many requests wait at the broker, or JetStream does not answer the broker. The request
	// has changed nothing. Try again a second later.
	ErrBusy = errors.New("busy")
	// ErrUnanswered is returned when no answer came before the timeout, the end of the context or the loss of the
	// connection. The message may be stored: publish it again, with its ID. The server also does not answer a user without
	// permission to publish to the subject. If the connection has reported the missing permission, the error also wraps
	// nats.ErrPermissionViolation.
	ErrUnanswered = errors.New("no answer")
	// ErrForeign is returned when the answer does not come from a broker's stream: another stream or subscriber listens
	// on the subject.
	ErrForeign = errors.New("the answer is not from a broker")
)

var (
	// ErrConfig is returned by New when a field of Config is invalid.
	ErrConfig = errors.New("bad client configuration")
	// ErrClosed is returned when the Publisher is closed. The message was not published.
	ErrClosed = errors.New("the publisher is closed")
	// ErrGone is returned by Lookup when the message is not in its first stream, for example after its delivery.
	ErrGone = errors.New("the message is no longer in its first stream")
)
