package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/levels"
	"delaybroker/levels/lane"
)

// apiPatience is how long JetStream may take to answer an operator's question.
const apiPatience = 5 * time.Second

// operatorCommands are the verbs of those who run the broker. They read the broker's own settings, so that they judge by
// what it goes by.
func (a *app) operatorCommands() []*cobra.Command {
	return []*cobra.Command{
		a.levelsCommand(), a.whereCommand(), a.deadCommand(), a.streamsCommand(), a.provisionCommand(), a.doctorCommand(),
	}
}

// An operator looks at the streams from outside, next to a broker or without one.
type operator struct {
	*session
	cfg     config
	streams broker.Streams
}

// operate connects with the broker's settings. The caller closes the operator.
func (a *app) operate(ctx context.Context) (*operator, error) {
	cfg, err := readConfig()
	if err != nil {
		return nil, err
	}
	streams, err := broker.StreamsOf(cfg.broker)
	if err != nil {
		return nil, err
	}
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &operator{session: s, cfg: cfg, streams: streams}, nil
}

// clustered reports whether new streams get replicas unless told otherwise.
func (o *operator) clustered() bool { return o.nc.ConnectedClusterName() != "" }

func (o *operator) wanted() []lane.Spec { return o.streams.Wanted(o.nc.MaxPayload(), o.clustered()) }

// because makes of an error what the server said meanwhile: it does not answer what it refuses.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, nats.ErrPermissionViolation) {
		return fmt.Errorf("%w; see delaybroker doctor", cause)
	}
	return err
}

// ask makes one request of the JetStream API.
func (o *operator) ask(ctx context.Context, subject string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("bug: encode %s: %w", subject, err)
	}
	ctx, cancel := context.WithTimeout(ctx, apiPatience)
	defer cancel()
	m, err := o.nc.RequestWithContext(ctx, o.apiPrefix+"."+subject, body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", subject, err)
	}
	var refusal struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &refusal); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", subject, err)
	}
	switch {
	case refusal.Error == nil:
		return json.Unmarshal(m.Data, answer)
	case refusal.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return jetstream.ErrMsgNotFound
	}
	return refusal.Error
}

// stored asks the stream's leader for a message: a replica that lags would show what is gone. It returns
// jetstream.ErrMsgNotFound when the sequence holds nothing.
func (o *operator) stored(ctx context.Context, stream string, sequence uint64) (message.Incoming, error) {
	var answer struct {
		Message struct {
			Subject string    `json:"subject"`
			Header  []byte    `json:"hdrs"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := o.ask(ctx, "STREAM.MSG.GET."+stream, map[string]uint64{"seq": sequence}, &answer); err != nil {
		return message.Incoming{}, err
	}
	m := answer.Message
	in := message.Incoming{Stream: stream, Sequence: sequence, At: m.Time, Subject: m.Subject}
	if len(m.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(m.Header)
		in.Header, in.Undecodable = message.Header(header), err != nil
	}
	return in, nil
}

// span is a duration for people: the smaller it is, the finer.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d >= time.Minute:
		d = d.Truncate(time.Second)
	case d >= time.Second:
		d = d.Truncate(100 * time.Millisecond)
	}
	return levels.FormatDuration(d)
}

// moment is a time for people.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
