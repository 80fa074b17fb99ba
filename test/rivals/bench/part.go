package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Dialer has the connection settings of a process.
type Dialer struct {
	Connect   func() (*nats.Conn, error) // opens a connection that the caller closes
	APIPrefix string                     // of the JetStream API
}

func (d Dialer) jetStream() (*nats.Conn, jetstream.JetStream, error) {
	nc, err := d.Connect()
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.NewWithAPIPrefix(nc, d.APIPrefix)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, js, nil
}

// RunPart is the main function of the processes PartLoad and PartPipeline. It reads its task, a JSON object, from
// stdin, and writes each PartOutput to stdout. The load ends when all messages are accepted. Both parts end when stdin
// is closed.
func RunPart(ctx context.Context, part Part, dialer Dialer, stdin io.Reader, stdout io.Writer) error {
	tasks, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cancelAtEOF := func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}
	switch part {
	case PartLoad:
		var load Load
		if err := tasks.Decode(&load); err != nil {
			return fmt.Errorf("read the task of the load from stdin: %w", err)
		}
		go cancelAtEOF() // the goroutine ends with the process
		return runLoad(ctx, load, dialer, out)
	case PartPipeline:
		var p pipeline
		if err := tasks.Decode(&p); err != nil {
			return fmt.Errorf("read the task of the pipeline from stdin: %w", err)
		}
		go cancelAtEOF()
		return p.run(ctx, dialer, func() error { return out.Encode(PartOutput{Ready: true}) })
	}
	return fmt.Errorf("unknown part %q", part)
}

func runLoad(ctx context.Context, load Load, dialer Dialer, out *json.Encoder) error {
	if err := out.Encode(PartOutput{Ready: true}); err != nil {
		return err
	}
	loaded, err := load.Run(ctx, dialer.Connect, func(accepted int) {
		_ = out.Encode(PartOutput{Accepted: accepted}) // fails only if the run has ended, which also ends this process
	})
	if err != nil {
		return err
	}
	return out.Encode(PartOutput{Loaded: &loaded})
}
