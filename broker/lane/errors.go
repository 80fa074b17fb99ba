package lane

import "errors"

// Results of the comparison of a stream with the known history. The reader compares before each epoch, and the engine
// before each commit.
var (
	// ErrOtherHistory is returned when the stream has another history: its sequences belong to other messages.
	ErrOtherHistory = errors.New("the stream has another history")
	// ErrUnsureHistory is returned when the stream appears older or shorter than when it was read. Either the stream has
	// another history, or a deposed leader answered. The caller takes another sample later.
	ErrUnsureHistory = errors.New("the stream appears older than when read: truncated, or a deposed leader answered")
)

// Reasons to replace a consumer. After each error the reader begins an epoch at the last message that it read.
var (
	// errUnproven is returned when the consumer shows a message, and the leader has no message in the gap or after it.
	errUnproven = errors.New("the consumer shows a message that the leader does not have")
	// errLost is returned when a consumer sequence or the leader shows that the reader has missed a message.
	errLost = errors.New("a message was lost on the wire, or the server created the consumer again")
	// ErrSilent is returned when the consumer was silent for two and a half heartbeats.
	ErrSilent = errors.New("no heartbeat from the consumer")
	// ErrOffline is returned when the connection was lost.
	ErrOffline = errors.New("the connection was lost")
	// ErrBehind is returned when the consumer has lacked a message of the leader for lagTimeout.
	ErrBehind = errors.New("the consumer's replica is behind the leader")
	// ErrPaused is returned in place of ErrBehind if an operator has paused the consumer.
	ErrPaused = errors.New("the consumer is paused")
	// ErrEnded is returned when the server ended the consumer or refused a request. The error has the server's reason.
	ErrEnded = errors.New("the server ended the consumer")
	// errTooSmall is returned when the largest request has no room for the next message.
	errTooSmall = errors.New("the next message is larger than the stream allowed when the consumer was created")
)

// Reasons why a scan ends.
var (
	// errUnanswered is returned when a scan gets no answer for scanTimeout.
	errUnanswered = errors.New("the consumer of the scan did not answer; try again")
	// errNoServer is returned when scanTimeout passes, and the last answer was that no server knows the consumer.
	errNoServer = errors.New("the consumer of the scan did not answer (503 no responders); try again")
)
