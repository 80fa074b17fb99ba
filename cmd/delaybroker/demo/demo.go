package demo

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"delaybroker/broker"
	"delaybroker/cmd/delaybroker/embedded"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

const (
	// maxDuration is the maximum duration of the demo.
	maxDuration = 14 * time.Second

	levelNames = "1s 2s 5s" // few, because each level is a stream to create
)

// Run starts a server and a broker, publishes the examples, shows their arrivals, and stops the broker and the server.
// The names of the broker's connections contain version, the program's version.
func Run(ctx context.Context, p *terminal.Printer, version string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxDuration, fmt.Errorf("not everything arrived within %s", maxDuration))
	defer cancel()
	dir, err := os.MkdirTemp("", "delaybroker-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	defer os.RemoveAll(dir)

	fmt.Fprintf(p.Err, "starting a NATS server and a broker, with their data in %s\n", dir)
	log := settings.Log{Level: slog.LevelWarn, Format: "auto"}.Logger(p.Err)
	server, err := embedded.Start(embedded.Config{Host: "127.0.0.1", Dir: dir, Sync: time.Second}, log)
	if err != nil {
		return err
	}
	defer server.Stop()
	dialer := links.Dialer{
		Access: links.Access{URL: server.URL()}, Version: version, OnClosed: func(error) {}, Log: log,
	}
	set, err := dialer.Dial()
	if err != nil {
		return err
	}
	defer set.Close()
	ladder, _ := levels.Parse(levelNames) // cannot fail
	b, err := broker.New(set.BrokerLinks(), broker.Config{Ladder: ladder, Provision: true, Log: log})
	if err != nil {
		return err
	}

	ctx, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	running.Go(func() { fail(b.Run(ctx)) })
	defer running.Wait()
	defer fail(nil)
	select {
	case <-b.Ready():
		return show(ctx, p, server.URL())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// show publishes to the broker at url, and shows the arrivals.
func show(ctx context.Context, p *terminal.Printer, url string) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return fmt.Errorf("connect to the demo's server: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	board := board{printer: p, messages: examples(time.Now())}
	arrivals := make(chan arrival, len(board.messages))
	if err := subscribe(ctx, nc, js, arrivals); err != nil {
		return fmt.Errorf("subscribe for the demo: %w", err)
	}
	fmt.Fprintf(p.Err, "publishing %d messages\n", len(board.messages))
	for _, m := range board.messages {
		if _, err := js.Publish(ctx, m.Subject, []byte(m.When)); err != nil {
			return fmt.Errorf("publish to %s: %w", m.Subject, err)
		}
	}
	return board.watch(ctx, arrivals)
}

// subscribe sends to arrivals the messages that a stream or a plain subscriber receives. Both subscriptions end with
// the connection.
func subscribe(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, arrivals chan<- arrival) error {
	_, err := nc.Subscribe(coreTargets+">", func(m *nats.Msg) { arrivals <- newArrival(m.Subject, m.Header) })
	if err != nil {
		return err
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "DEMO", Subjects: []string{streamTargets + ">"}})
	if err != nil {
		return err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	_, err = consumer.Consume(func(m jetstream.Msg) { arrivals <- newArrival(m.Subject(), m.Headers()) })
	return err
}
