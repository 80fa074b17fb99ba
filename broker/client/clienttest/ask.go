package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"delaybroker/broker/timer"
	"delaybroker/broker/timer/change"
	"delaybroker/broker/timer/entry"
)

// Ask answers the requests pause, resume, fire and move as the broker's service does.
func (s store) Ask(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	failure := s.failure
	s.mu.Unlock()
	if failure != nil {
		return nil, failure
	}
	for _, verb := range []timer.Verb{timer.Pause, timer.Resume, timer.Fire, timer.Move} {
		rest, ok := strings.CutPrefix(subject, s.policy.Names.TimerCall(string(verb)))
		if !ok {
			continue
		}
		key, target, _ := strings.Cut(rest, ".")
		answer, err := s.execute(ctx, change.Change{Call: timer.Call{Verb: verb}, Key: key, Target: target}, body)
		if refused, ok := errors.AsType[*change.Error](err); ok {
			return &nats.Msg{Header: nats.Header{
				micro.ErrorHeader: {refused.Sentence}, micro.ErrorCodeHeader: {strconv.Itoa(refused.Code)},
			}}, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(answer)
		return &nats.Msg{Data: data}, err
	}
	return nil, nats.ErrNoResponders
}

// execute carries out a change with the fields of a request's body.
func (s store) execute(ctx context.Context, c change.Change, body []byte) (answer change.Answer, err error) {
	var request struct {
		By    string // the shift of a move
		Token string `json:"word"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return answer, err
	}
	if err := entry.CheckToken(request.Token); err != nil {
		return answer, change.Refusef(change.CodeBadRequest, "%v", err)
	}
	c.ID = request.Token
	if c.Verb == timer.Move {
		if c.By, err = change.ParseShift(request.By); err != nil {
			return answer, change.Refusef(change.CodeBadRequest, "%v", err)
		}
	}
	return s.changes().Do(ctx, c)
}

func (s store) changes() *change.Timers {
	return &change.Timers{Policy: s.policy, Reader: reader(s), Publish: s.publishEntry}
}
