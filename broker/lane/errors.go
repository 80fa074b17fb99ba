package lane

import "errors"

// Results of comparing a stream with the known history. The engine also compares before each commit.
var (
	// ErrHistory is returned when the stream is not the one that was read: its sequences belong to other messages.
	ErrHistory = errors.New("the stream has another history")
	// ErrUnsure is returned when the stream looks older or shorter than what was read from it, and its leader may have
	// been deposed. Which stream it is cannot be determined at the moment. Ask again.
	ErrUnsure = errors.New("the stream seems to be older than what was read from it: cut back, or its leader was deposed")
)

// Reasons to replace a consumer. After each of them the reader begins an epoch at the message after the last one it
// read.
var (
	// errUnproven is returned when the consumer shows a message that the leader does not have.
	errUnproven = errors.New("the consumer shows what the leader does not have")
	// errLost is returned when a message between the last one and the next one is missing.
	errLost = errors.New("a message was lost on the wire, or the server made the consumer anew")
	// errSilent is returned when the consumer was silent for two and a half heartbeats.
	errSilent = errors.New("no heartbeat from the consumer")
	// errOffline is returned when the connection is lost during a request.
	errOffline = errors.New("the connection was lost")
	// errBehind is returned when the consumer has lacked a message of the leader for behindFor.
	errBehind = errors.New("the consumer's replica is behind the leader")
	// errTooSmall is returned when the next message is larger than the largest permitted request.
	errTooSmall = errors.New("the next message is larger than the stream allowed when reading began")
)

// Reasons why a scan ends.
var (
	// errUnanswered is returned when a scan gets no answer for scanTimeout.
	errUnanswered = errors.New("its consumer did not answer; try again")
	// errNobody is returned when, for scanTimeout, no server knows the consumer of a request.
	errNobody = errors.New("its consumer did not answer (503 no responders); try again")
)
