package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/cmd/embedded"
	"delaybroker/cmd/links"
	"delaybroker/cmd/settings"
	"delaybroker/levels"
)

const (
	// demoLimit is how long the whole demo may take: somebody is watching.
	demoLimit = 14 * time.Second

	demoLevels = "1s 2s 5s" // few streams are made quickly
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show delays at work, with a server and a broker of its own, in ten seconds",
		Long: `Start a NATS server and a broker in a temporary directory, publish some delayed messages to a stream and to a
core subscriber, and show when they arrive. Nothing is left behind, and no setting or running server is touched.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context()) },
	}
}

// demo starts a server, then a broker, as serve does, and stops them in reverse order.
func (a *app) demo(ctx context.Context) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, fmt.Errorf("not everything arrived within %s", demoLimit))
	defer cancel()
	dir, err := os.MkdirTemp("", "delaybroker-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demo: %w", err)
	}
	defer os.RemoveAll(dir)

	fmt.Fprintf(a.Err, "starting a NATS server and a broker, with their data in %s\n", dir)
	log := settings.Log{Level: slog.LevelWarn, Format: "auto"}.Logger(a.Err)
	server, err := embedded.Start(embedded.Config{Host: "127.0.0.1", Dir: dir, Sync: time.Second}, log)
	if err != nil {
		return err
	}
	defer server.Stop()
	dialer := links.Dialer{
		Access: links.Access{URL: server.URL()}, Version: readBuild().name(), Lost: func(error) {}, Log: log,
	}
	set, err := dialer.Dial()
	if err != nil {
		return err
	}
	defer set.Close()
	ladder, err := levels.Parse(demoLevels)
	if err != nil {
		return fmt.Errorf("bug: levels of the demo: %w", err)
	}
	b, err := broker.New(set.ForBroker(), broker.Config{Ladder: ladder, Provision: true, Log: log})
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
		return a.show(ctx, server.URL())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// show publishes to the broker at url, and shows what becomes of it.
func (a *app) show(ctx context.Context, url string) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return fmt.Errorf("connect to the demo's server: %w", err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	now := time.Now()
	board := demoBoard{app: a, messages: demoMessages(now), start: now}
	arrivals := make(chan arrival, len(board.messages))
	if err := demoSubscribe(ctx, nc, js, arrivals); err != nil {
		return fmt.Errorf("subscribe for the demo: %w", err)
	}
	fmt.Fprintf(a.Err, "publishing %d messages\n", len(board.messages))
	for _, m := range board.messages {
		if _, err := js.Publish(ctx, m.Subject, []byte(m.When)); err != nil {
			return fmt.Errorf("publish to %s: %w", m.Subject, err)
		}
	}
	return board.watch(ctx, arrivals)
}

// demoSubscribe sends to arrivals what comes to a stream and to a plain subscriber. Both end with the connection.
func demoSubscribe(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, arrivals chan<- arrival) error {
	_, err := nc.Subscribe(demoCore+">", func(m *nats.Msg) { arrivals <- newArrival(m.Subject, m.Header, m.Data) })
	if err != nil {
		return err
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "DEMO", Subjects: []string{demoStream + ">"}})
	if err != nil {
		return err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	_, err = consumer.Consume(func(m jetstream.Msg) { arrivals <- newArrival(m.Subject(), m.Headers(), m.Data()) })
	return err
}
