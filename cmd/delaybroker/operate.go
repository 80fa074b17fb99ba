package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/layout"
	"delaybroker/levels"
)

// apiPatience is how long JetStream may take to answer an operator's question.
const apiPatience = 5 * time.Second

// operatorCommands are the verbs of those who run the broker. They read the broker's own settings, so that they judge by
// what it goes by, and the streams' marks where a setting is left open.
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

// operate connects with the broker's settings; what those leave open, the streams say: see adopt. The caller closes the
// operator.
func (a *app) operate(ctx context.Context) (*operator, error) {
	o, err := a.operateBySettings(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.adopt(ctx, a); err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// operateBySettings is for who changes the streams to what the settings say.
func (a *app) operateBySettings(ctx context.Context) (*operator, error) {
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

func (o *operator) wanted() []layout.Spec { return o.streams.Wanted(o.nc.MaxPayload(), o.clustered()) }

// because makes of an error what the server said meanwhile: it does not answer what it refuses.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, nats.ErrPermissionViolation) {
		return fmt.Errorf("%w; see delaybroker doctor", cause)
	}
	return withoutJetStream(err)
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
