package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker/streams"
)

// doctorTarget is the target of a trial message.
const doctorTarget = "delaybroker.doctor"

// trial is the result of a publish that the server only traces.
type trial struct {
	known    bool
	refusal  string
	subject  string // a subject on which clients publish, if the account maps it to mappedTo; empty without a mapping
	mappedTo string
}

// try publishes a hop of a broker as a trace: the server performs all checks and stores nothing. No other request shows
// that the store of a server is full. A second trace, of a client's publish to a level, shows a subject mapping. A
// server without tracing would store the message, so try uses only servers that isSecure accepts. A trace may end at
// the border of an account, so try also skips a JetStream in another account.
func (i gatherer) try(ctx context.Context, f *Facts) trial {
	level := writableLevel(f.want, f.Found)
	if f.apiPrefix != ownAPI || !isSecure(f.version) || level == "" {
		return trial{}
	}
	var t trial
	_ = i.Ask(ctx, func(ctx context.Context) error { // after an error the result stays unknown
		answer, err := i.trace(ctx, i.names.Hop(level, doctorTarget))
		if err != nil {
			return err
		}
		for _, e := range answer.Events {
			if e.Type == "in" && e.Error != "" { // the user may not publish the hop
				return errors.New(e.Error)
			}
		}
		if t.known = true; answer.Error != nil {
			t.refusal = answer.Error.Description
		}
		return nil
	})
	subject := strings.TrimSuffix(i.names.LevelFilter(level), ">") + doctorTarget
	if !t.known || f.user == nil || !f.user.Permissions.Publish.allows(subject) {
		return t
	}
	_ = i.Ask(ctx, func(ctx context.Context) error { // after an error the mapping stays unknown
		answer, err := i.trace(ctx, subject)
		for _, e := range answer.Events {
			if e.Type == "sm" && e.To != subject {
				t.subject, t.mappedTo = subject, e.To
			}
		}
		return err
	})
	return t
}

// writableLevel returns a configured level whose stream exists, or "".
func writableLevel(want, found []streams.Spec) (level string) {
	for _, s := range found {
		_, wanted := streams.SpecOf(want, s.Stream)
		if wanted && s.Kind == streams.Level && s.MarksErr == nil {
			level = s.Name
		}
	}
	return level
}

// traceResult is the answer of a server (nats-server, server/msgtrace.go) or a stream to a trace.
type traceResult struct {
	Error  *jetstream.APIError `json:"error"`
	Events []struct {
		Type  string `json:"type"`
		Error string `json:"error"`
		To    string `json:"to"` // the destination of a subject mapping
	} `json:"events"`
}

// trace publishes a message as a trace, without delivery, and returns its result.
func (i gatherer) trace(ctx context.Context, subject string) (answer traceResult, err error) {
	inbox := i.Conn.NewInbox()
	sub, err := i.Conn.SubscribeSync(inbox)
	if err != nil {
		return answer, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only on a closed connection
	msg := nats.NewMsg(subject)
	msg.Reply = inbox
	msg.Header.Set("Nats-Trace-Dest", inbox)
	msg.Header.Set("Nats-Trace-Only", "true")
	if err := i.Conn.PublishMsg(msg); err != nil {
		return answer, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := sub.NextMsgWithContext(ctx)
	if errors.Is(err, nats.ErrNoResponders) { // the server sends this status before the trace
		m, err = sub.NextMsgWithContext(ctx)
	}
	if err != nil {
		return answer, err
	}
	err = json.Unmarshal(m.Data, &answer)
	return answer, err
}
