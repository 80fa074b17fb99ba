package broker

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// answersWaiting is how many questions may wait to be answered; others are dropped, and asked again by who cares.
	answersWaiting = 16
	// answerPause is the least time between two answers, so that who asks all the time costs next to nothing.
	answerPause = 5 * time.Millisecond
)

// Answer is what a running instance says of itself to an operator who asks on message.Names.StatusCall. It is for
// display: in an account where others may publish below StatusAnswers, they may have written it.
type Answer struct {
	Instance string       `json:"instance"` // unique among those that run
	Ready    bool         `json:"ready"`
	Draining bool         `json:"draining,omitempty"`
	Lanes    []LaneAnswer `json:"lanes"` // those it owns
}

// LaneAnswer is a lane as its owner sees it.
type LaneAnswer struct {
	Stream    string    `json:"stream"`
	Live      bool      `json:"live"`                // its consumer is believed alive
	InDoubt   bool      `json:"in_doubt,omitempty"`  // it is not certain to be the owner still, and delivers nothing until it is
	Read      uint64    `json:"read"`                // the last sequence read; zero before the first
	Held      int       `json:"held"`                // messages in memory
	Full      bool      `json:"full,omitempty"`      // it holds all it may, and reads on when something leaves
	ResumesAt time.Time `json:"resumes_at,omitzero"` // it rests until then, since nothing further is due before
	Overdue   float64   `json:"overdue_seconds"`     // how long ago the oldest should have left
}

// Answer is what this instance says of itself.
func (b *Broker) Answer() Answer {
	s := b.Status()
	a := Answer{Instance: b.id, Ready: s.Ready, Draining: s.Draining, Lanes: []LaneAnswer{}}
	for _, l := range s.Lanes {
		if l.Owned {
			a.Lanes = append(a.Lanes, LaneAnswer{
				Stream: l.Stream, Live: l.Live, InDoubt: l.InDoubt, Read: l.Read, Held: l.Held, Full: l.Full,
				ResumesAt: l.ResumesAt, Overdue: l.Overdue.Seconds(),
			})
		}
	}
	return a
}

// answer answers those who ask on the control link, until ctx ends. Without the right to, the instance works all the same.
//
// The subject to answer on is the asker's choice, and this connection may publish on subjects that the asker may not, such
// as the JetStream API: a purge would take our answer for a request. So only what lies below StatusAnswers is answered,
// where nobody takes anything for more than it is.
func (b *Broker) answer(ctx context.Context) {
	asked := make(chan string, answersWaiting)
	sub, err := b.conns.Control.Subscribe(b.streams.names.StatusCall(), func(m *nats.Msg) {
		if !strings.HasPrefix(m.Reply, b.streams.names.StatusAnswers()) {
			return
		}
		select {
		case asked <- m.Reply:
		default:
		}
	})
	if err != nil {
		b.log.Warn("nobody can ask this instance how it is", "err", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails when the connection is closed
	for {
		select {
		case <-ctx.Done():
			return
		case subject := <-asked:
			if err := b.tell(subject); err != nil {
				b.log.Debug("answering an operator", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(answerPause):
		}
	}
}

func (b *Broker) tell(subject string) error {
	body, err := json.Marshal(b.Answer())
	if err != nil {
		return err
	}
	return b.conns.Control.Publish(subject, body)
}
