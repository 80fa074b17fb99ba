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
	// maxQueries is the maximum number of waiting queries. The instance drops further queries.
	maxQueries = 16
	// answerInterval is the pause after an answer. It bounds the cost of an operator's program that sends queries in a
	// loop.
	answerInterval = 5 * time.Millisecond
)

// InstanceStatus is the report of a running instance about itself.
type InstanceStatus = stats.InstanceStatus

// Instance returns the name of this instance in its answers.
func (b *Broker) Instance() string { return b.id }

// Answer returns this instance's report about itself.
func (b *Broker) Answer() InstanceStatus { return b.AnswerOf(b.Status()) }

// AnswerOf is like Answer, for a status that the caller has just read.
func (b *Broker) AnswerOf(s Status) InstanceStatus {
	return InstanceStatus{
		Instance: b.id, Ready: s.Ready, Draining: s.Draining, Journal: s.Journal.Kept,
		Version: b.cfg.Version, Format: b.cfg.Format, Users: b.users, Refused: b.denials.Recent(time.Now()),
		MissingRecords: b.journalWriter.Load().Missing(),
		Lanes:          s.LaneAnswers(),
		Settings:       b.settings,
		Totals:         s.Totals(b.startTime),
		Pauses:         stats.PausesAnswer{Applied: b.pauses.AppliedVersion(), Record: b.pauses.Record()},
	}
}

// answer replies to the queries of operators until ctx ends, and passes announcements of pauses to the keeper. Without
// the permission to subscribe or to reply, the instance runs on, and answers no queries.
//
// The operator chooses the subject of the reply. The broker's connection may publish on subjects that the operator may
// not use, such as those of the JetStream API. The server would treat a reply there as a request, for example to purge
// a stream. So answer replies only below StatusAnswers, where no program acts on messages.
func (b *Broker) answer(ctx context.Context) {
	queries := make(chan string, maxQueries) // the reply subjects
	sub, err := b.links.Control.Subscribe(b.names.StatusCall(), func(m *nats.Msg) {
		if len(m.Data) > 0 {
			b.pauses.Receive(pause.ParseAnnouncement(m))
		}
		if !strings.HasPrefix(m.Reply, b.names.StatusAnswers()) || m.Header.Get(stats.HeaderExcept) == b.id {
			return
		}
		select {
		case queries <- m.Reply:
		default:
		}
	})
	if err != nil {
		b.log.Warn("cannot subscribe to queries: this instance is missing from the output of operators' commands", "err", err)
		return
	}
	defer func() { _ = sub.Unsubscribe() }() // fails if the connection is closed
	for {
		select {
		case <-ctx.Done():
			return
		case reply := <-queries:
			if err := b.reply(reply); err != nil {
				b.log.Debug("cannot answer an operator's query", "err", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(answerInterval):
			}
		}
	}
}

func (b *Broker) reply(subject string) error {
	body, err := json.Marshal(b.Answer())
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}
	message.Put(m.Header, message.HeaderSeal, b.keys.Policy.Keys.Seal(subject, body))
	return b.links.Control.PublishMsg(m)
}
