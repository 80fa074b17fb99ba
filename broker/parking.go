package broker

import "time"

const (
	// parkMost is how many messages of a lane may wait for the answer of a stream for what is paused that has not answered
	// for parkPatience. Further messages wait in a retry lane: a stream without a leader must not fill the lane's memory.
	parkMost     = 256
	parkPatience = time.Second
)

// parking knows whether the stream for what is paused takes a lane's messages. The zero parking believes that it does.
type parking struct {
	open int       // messages that it has not answered
	at   time.Time // local; when it last answered, or the first of them was sent
}

// begin notes that a message is sent there for the first time.
func (p *parking) begin(local time.Time) {
	if p.open == 0 {
		p.at = local
	}
	p.open++
}

// answered notes an answer. Without one, the message is sent again, and stays open.
func (p *parking) answered(a storeAnswer, local time.Time) {
	if a.err != nil {
		return
	}
	p.open, p.at = max(0, p.open-1), local
}

// able reports whether to send another message there.
func (p *parking) able(local time.Time) bool {
	return p.open < parkMost || local.Sub(p.at) < parkPatience
}
