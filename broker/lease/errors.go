package lease

import (
	"errors"
	"fmt"

	"delaybroker/broker/jsapi"
)

// ErrNamesake is passed to SharedConfig.Fail when an elder instance lives that has the name the operator gave to this
// one. Give each instance a name of its own, or none.
var ErrNamesake = errors.New("another instance has the same name")

var (
	// errConflict is returned when the message that was to be replaced is no longer the last of its subject.
	errConflict = errors.New("another instance was faster")
	// errStale is returned when an answer does not show a message that was stored before the question.
	errStale = errors.New("a server answered from the past")
	// errCutOff is returned when the connection changed its state during a question.
	errCutOff = errors.New("the connection was lost")
)

// refusal is returned when the stream's leader refuses a write.
type refusal struct{ jsapi.Ack }

func (r refusal) Error() string { return fmt.Sprintf("refused: %s (%d)", r.Description, r.Code) }

// isFull reports whether a leader refused a write for want of room: of the account, the server, its memory, its disk or
// the stream. It refuses those of all other instances, too.
func isFull(err error) bool {
	r := refusal{}
	return errors.As(err, &r) && r.Full()
}
