package lane

import "errors"

// What a look at a stream may say of the history that is known. The engine compares before each commit, too.
var (
	// ErrHistory is returned when the stream is not the one that was read: its sequences belong to other messages.
	ErrHistory = errors.New("the stream has another history")
	// ErrUnsure is returned when the stream looks older or shorter than what was read from it, and its leader may have
	// been deposed. It cannot be told at the moment which stream it is. Ask again.
	ErrUnsure = errors.New("the stream seems to be older than what was read from it: cut back, or its leader was deposed")
)

// Why a consumer is replaced. After each of these the reader begins an epoch, at the message after the last it read.
var (
	// errUnproven is returned when the consumer shows a message that the leader does not have.
	errUnproven = errors.New("the consumer shows what the leader does not have")
	// errLost is returned when a message between the last and the next is missing.
	errLost = errors.New("a message was lost on the wire, or the server made the consumer anew")
	// errSilent is returned when two and a half heartbeats did not come.
	errSilent = errors.New("no heartbeat from the consumer")
	// errOffline is returned when the connection is lost in the middle of something.
	errOffline = errors.New("the connection was lost")
	// errBehind is returned when the consumer has lacked for behindFor what the leader has.
	errBehind = errors.New("the consumer's replica is behind the leader")
	// errTooSmall is returned when no request that the consumer may make can hold the next message.
	errTooSmall = errors.New("the next message is larger than the stream allowed when reading began")
)

// Why a scan ends.
var (
	// errUnanswered is returned when a scan gets no answer for scanTimeout.
	errUnanswered = errors.New("its consumer did not answer; try again")
	// errNobody is returned when the servers know of no consumer to pass a request to, for scanTimeout.
	errNobody = errors.New("its consumer did not answer (503 no responders); try again")
)
