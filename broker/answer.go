package broker

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/message"
	"delaybroker/broker/pause"
	"delaybroker/broker/stats"
)

const (
	// answersWaiting is the maximum number of waiting questions. Further questions are dropped: the operator asks again.
	answersWaiting = 16
	// answerPause is the minimum time between two answers, so that an operator who asks all the time costs next to
	// nothing.
	answerPause = 5 * time.Millisecond
	// morePause is the minimum time between two answers with a history or with targets, which are some thirty kilobytes.
	morePause = 200 * time.Millisecond
)

// Answer is the report of a running instance about itself.
type Answer = stats.Answer

// Headers of a question. HeaderHistory requests a history too, HistoryHour or HistoryDay. HeaderTargets, with any
// value, requests the deliveries to each target too. HeaderExcept names an instance that need not answer: its page asks
// only the others.
const (
	HeaderHistory = "Delay-History"
	HistoryHour   = "1h"
	HistoryDay    = "24h"
	HeaderTargets = "Delay-Targets"
	HeaderExcept  = "Delay-Except"
)

// Asked is what a question requests in addition to the state of the instance. The zero value requests nothing more.
type Asked struct {
	History string // HistoryHour or HistoryDay
	Targets bool
	Except  string // the instance that need not answer; empty for none
}

// Header returns the headers of a question.
func (a Asked) Header() nats.Header {
	h := nats.Header{}
	if a.History != "" {
		h.Set(HeaderHistory, a.History)
	}
	if a.Targets {
		h.Set(HeaderTargets, "true")
	}
	if a.Except != "" {
		h.Set(HeaderExcept, a.Except)
	}
	return h
}

// question is a question of an operator.
type question struct {
	reply string
	Asked
}

// Instance is the name under which this instance answers.
func (b *Broker) Instance() string { return b.id }

// Answer returns this instance's report about itself.
func (b *Broker) Answer() Answer { return b.AnswerOf(b.Status()) }

// AnswerOf is Answer with a status that the caller has just read.
func (b *Broker) AnswerOf(s Status) Answer {
	return Answer{
		Instance: b.id, Ready: s.Ready, Draining: s.Draining, Journal: s.Journal.Kept, Alone: b.cfg.MaxOwners == 0,
		Version: b.cfg.Version, Format: b.cfg.Format, Users: b.users, Refused: b.refused.Lately(time.Now()),
		Writer: b.records.Load().State(),
		Lanes:  s.LaneAnswers(),
		Totals: s.Totals(b.started),
		Pauses: &stats.PausesAnswer{Applied: b.pauses.Applied(), Record: b.pauses.Record()},
	}
}

// answer replies to operators who ask on the control link, until ctx ends. An instance without the right to reply works
// all the same.
//
// The operator chooses the subject of the reply. Our connection may publish on subjects that the operator may not use,
// such as those of the JetStream API: the server would take a reply there for a request, for example to purge a stream.
// So a reply is sent only below StatusAnswers, where nobody acts on messages.
func (b *Broker) answer(ctx context.Context) {
	asked := make(chan question, answersWaiting)
	sub, err := b.conns.Control.Subscribe(b.names.StatusCall(), func(m *nats.Msg) {
		if len(m.Data) > 0 {
			b.pauses.Hear(pause.Announced(m))
		}
		if !strings.HasPrefix(m.Reply, b.names.StatusAnswers()) || m.Header.Get(HeaderExcept) == b.id {
			return
		}
		more := Asked{History: m.Header.Get(HeaderHistory), Targets: m.Header.Get(HeaderTargets) != ""}
		select {
		case asked <- question{m.Reply, more}:
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
		case q := <-asked:
			if err := b.tell(q); err != nil {
				b.log.Debug("answering an operator", "err", err)
			}
			rest := answerPause
			if q.Asked != (Asked{}) {
				rest = morePause
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(rest):
			}
		}
	}
}

func (b *Broker) tell(q question) error {
	a := b.Answer()
	a.History = b.history(q.History, time.Now())
	if q.Targets {
		a.Targets = b.Targets()
	}
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: q.reply, Data: body, Header: nats.Header{}}
	if seal := b.keys.Policy.Keys.Seal(q.reply, body); seal != "" {
		m.Header.Set(message.HeaderSeal, seal)
	}
	return b.conns.Control.PublishMsg(m)
}
