package lease

import "errors"

// ErrNameInUse is passed to Config.Fail when an older live instance has the same name. Give each instance a
// unique name, or give none of them a name.
var ErrNameInUse = errors.New("another instance has the same name")

var (
	// errConflict is returned when the last message of a subject is not the message that the write should replace, or
	// when another message of the subject is being stored.
	errConflict = errors.New("another message was stored first")
	// errFull is returned when a leader has no room in the stream, the account, the server's memory or its disk. The
	// leader then also refuses the writes of all other instances.
	errFull = errors.New("no room")
	// errCutOff is returned when the connection's state changes during a request.
	errCutOff = errors.New("the state of the connection changed")
)
