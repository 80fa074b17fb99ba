package lane

// turns is how many lanes at a time may ask one connection for large batches. nats-server cuts off a client to which more
// than max_pending (64 MiB) waits to be sent, and after an outage all of some forty lanes have work at once.
const turns = 4

// Turns are shared by the readers of one connection. A reader that has one asks for large batches, and for the next before
// the last has come. Without one it asks for as much as the largest message takes, and waits for that.
type Turns chan struct{}

// NewTurns makes the turns of one connection.
func NewTurns() Turns { return make(Turns, turns) }

// takeTurn takes a turn if there is one.
func (r *Reader) takeTurn() {
	if r.turn {
		return
	}
	select {
	case r.turns <- struct{}{}:
		r.turn = true
	default:
	}
}

// yieldTurn lets another lane have it.
func (r *Reader) yieldTurn() {
	if r.turn {
		<-r.turns
		r.turn = false
	}
}
