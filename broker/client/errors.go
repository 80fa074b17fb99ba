package client

import "errors"

// What is wrong with a request. It was not published: the broker would have made it a dead letter. The error's text
// says what to change.
var (
	// ErrBadTarget is returned when the target is empty, has a wildcard, is too long, or lies where a broker delivers to
	// nobody.
	ErrBadTarget = errors.New("bad target")
	// ErrBadTime is returned when a level cannot be read, a time is the zero time or cannot be written, and when Until
	// falls before the end of the level.
	ErrBadTime = errors.New("bad time")
	// ErrBadKey is returned when the key of a timer is not one token of printable ASCII.
	ErrBadKey = errors.New("bad key")
	// ErrTooFar is returned when the message would be due later than Config.MaxDelay allows.
	ErrTooFar = errors.New("too far ahead")
	// ErrBadOption is returned when an option has a value that means nothing, or does not go with the others.
	ErrBadOption = errors.New("bad option")
	// ErrBadHeaders is returned when a header would not reach the target: its name is reserved, or there are too many.
	ErrBadHeaders = errors.New("bad headers")
)

// What became of a request that was published. It is not stored, unless the error is ErrUnanswered or ErrForeign.
var (
	// ErrNoBroker is returned when no stream takes the request: no broker with Config.Prefix has made its streams in this
	// account, or JetStream has no leader for them at the moment.
	ErrNoBroker = errors.New("no broker's stream takes it")
	// ErrTooLarge is returned when the message is larger than the stream, or the server, takes. Publish less.
	ErrTooLarge = errors.New("too large")
	// ErrConflict is returned when a timer is not what was expected: it has fired, was replaced or cancelled, or there is
	// one where none was expected. Perhaps by an earlier call whose answer was lost: look at it with Client.Timer.
	ErrConflict = errors.New("the timer is another one by now")
	// ErrFull is returned when the stream, the account or the server has no room. Try again later.
	ErrFull = errors.New("no room")
	// ErrUnanswered is returned when no answer came in time, or the connection was lost. Whether the message is stored is
	// not known: publish it again, with its ID. A server that does not let this user publish there answers nothing either;
	// if it said so on the connection, the error wraps nats.ErrPermissionViolation too.
	ErrUnanswered = errors.New("no answer")
	// ErrForeign is returned when something answered that is no stream of a broker's. Look who else listens on the
	// subject.
	ErrForeign = errors.New("the answer is not a broker's")
)

var (
	// ErrConfig is returned by New for a field of Config that cannot be used.
	ErrConfig = errors.New("configuration of the client")
	// ErrClosed is returned by a Publisher that was closed. The message was not published.
	ErrClosed = errors.New("the publisher is closed")
	// ErrGone is returned by Look when the message is not in its first stream any more: it has moved on, or has arrived.
	ErrGone = errors.New("the message has moved on")
)
