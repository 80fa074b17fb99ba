package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker/inspect"
	"delaybroker/broker/operation"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

const (
	benchWindow   = 4096             // maximum number of unanswered publishes
	benchInterval = time.Millisecond // between two batches of publishes
	lossTimeout   = 15 * time.Second // after the last due time and the last arrival, missing messages count as lost
)

// A benchPlan has the flags of bench.
type benchPlan struct {
	rate, burst, size int
	period, delay     time.Duration
	target            string
}

func (a *app) benchCommand() *cobra.Command {
	p := benchPlan{period: 10 * time.Second, delay: time.Second}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Publish to the running broker, and measure how late its messages arrive",
		Long: `Publish delayed messages to the running broker, receive them as a plain subscriber, and print how late they
are: the time of receipt minus the message's Delay-Due, on the server's clock. If a stream captures the target, the
broker delivers into that stream.

An interrupt ends the publishing, and bench waits for the messages that it has published. If bench is killed, these
messages have no subscriber, and become dead letters of the target: delaybroker dead rm --target TARGET removes them.

To measure the CPU and memory of a broker, or to compare it with the server's own scheduling, see test/rivals in the
source.

exit codes: 0 done, 1 failed, or a message was lost or early, 2 bad arguments or settings`,
		Example: `  delaybroker bench --rate 5000 --for 30s --delay 5s
  delaybroker bench --burst 100000 --target orders.bench`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, flag := range []string{"rate", "for", "delay"} {
				if p.burst > 0 && cmd.Flags().Changed(flag) {
					return fmt.Errorf("%w: --burst excludes --%s", errUsage, flag)
				}
			}
			p.target = cmp.Or(p.target, "delaybench."+strings.ToLower(rand.Text()[:8]))
			return a.withInspector(cmd, func(ctx context.Context, i *inspect.Inspector) error {
				return a.bench(ctx, i, p)
			})
		},
	}
	addParams(c,
		operation.Count(&p.rate, "rate", "messages a second", 1000, 1, 1_000_000),
		operation.Parsed(&p.period, "for", "duration of the publishing (default 10s)", parseBenchDuration),
		operation.Parsed(&p.delay, "delay", "delay of each message (default 1s)", parseBenchDuration),
		operation.Count(&p.burst, "burst", "number of messages for one instant, in place of a rate", 0, 1, 10_000_000),
		operation.Count(&p.size, "size", "bytes of a message", 256, 16, 1<<20),
	)
	c.Flags().StringVar(&p.target, "target", "", "target of the messages (default: a random subject below delaybench)")
	return c
}

// parseBenchDuration parses a duration that somebody waits for.
func parseBenchDuration(text string) (time.Duration, error) {
	d, err := levels.ParseDuration(text)
	if err == nil && (d < time.Millisecond || d > time.Hour) {
		err = errors.New("want 1ms to 1h")
	}
	return d, err
}

// bench publishes, waits for the arrivals, and prints the measurements.
func (a *app) bench(ctx context.Context, i *inspect.Inspector, p benchPlan) error {
	names := i.Policy().Names
	if problem := i.Policy().CheckTarget(p.target); problem != nil {
		return fmt.Errorf("%w: --target %s: %w", errUsage, p.target, problem)
	}
	const attempts = 10
	offset, margin, err := i.Clock(ctx, names.IntakeStream(), attempts)
	if err != nil {
		return fmt.Errorf("read the server's clock: %w", err)
	}
	allowed, cancel := i.WithRefusal(ctx)
	defer cancel()
	count := cmp.Or(p.burst, int(p.period.Seconds()*float64(p.rate)))
	log := newArrivals(count, offset, margin)
	sub, err := i.Conn.Subscribe(p.target, log.receive)
	if err == nil {
		err = cmp.Or(sub.SetPendingLimits(-1, -1), i.Conn.FlushTimeout(flushTimeout))
	}
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", p.target, err)
	}
	subject := deliveryTime{in: levels.FormatDuration(p.delay)}.subject(names, p.target)
	last := time.Now().Add(p.period + p.delay)
	if p.burst > 0 {
		const slowest = 10_000 // messages a second that a slow server accepts
		last = time.Now().Add(5*time.Second + time.Duration(p.burst)*time.Second/slowest)
		subject = names.At(fmt.Sprint(last.Add(offset).UnixMilli()), p.target)
	}
	fmt.Fprintf(a.Err, "publishing %s messages on %s\n", terminal.Whole(count), subject)
	start := time.Now()
	published, err := publishLoad(allowed, i.Conn, p, count, subject)
	elapsed := time.Since(start)
	if err != nil && ctx.Err() == nil {
		return inspect.Cause(allowed, err)
	}
	if ctx.Err() != nil {
		last = time.Now().Add(p.delay)
		signal.Reset(syscall.SIGINT, syscall.SIGTERM) // so that a second interrupt ends the process
	}
	if p.burst > 0 && time.Now().After(last) {
		fmt.Fprintln(a.Err, "the last message was accepted after the instant: the lateness includes the publishing")
	}
	fmt.Fprintf(a.Err, "waiting for %s messages, until %s\n", terminal.Whole(published), last.Format("15:04:05"))
	log.wait(published, last)
	r := log.result(published)
	r.PublishedRate = float64(published) / elapsed.Seconds()
	if !a.AsJSON(r) {
		a.printBench(r)
	}
	return cmp.Or(a.Failure(), r.err(p.target))
}

// publishLoad publishes count messages at the rate of the plan, or a burst as fast as the server answers. It returns
// the number of accepted messages. If ctx ends or a publish is refused, it stops early, with an error.
func publishLoad(
	ctx context.Context, conn *nats.Conn, p benchPlan, count int, subject string,
) (accepted int, err error) {
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(2*benchWindow))
	if err != nil {
		return 0, err
	}
	futures := make(chan jetstream.PubAckFuture, benchWindow)
	done := make(chan error, 1)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() { // ends when futures is closed, after an answer to each publish or the client library's timeout
		var first error
		for future := range futures {
			select {
			case <-future.Ok():
				accepted++
			case err := <-future.Err():
				first = cmp.Or(first, err)
				fail(err)
			}
		}
		done <- first
	}()
	start, tick := time.Now(), time.NewTicker(benchInterval)
	defer tick.Stop()
	for n := 0; n < count && ctx.Err() == nil; {
		planned := count
		if p.burst == 0 {
			planned = min(count, int(time.Since(start).Seconds()*float64(p.rate)))
		}
		for ; n < planned && ctx.Err() == nil; n++ {
			future, publishErr := js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: benchBody(n, p.size)})
			if publishErr != nil {
				fail(publishErr)
				break
			}
			futures <- future
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	close(futures)
	if err = cmp.Or(<-done, context.Cause(ctx)); err != nil {
		err = fmt.Errorf("publish to %s: %w", subject, err)
	}
	return accepted, err
}

func (a *app) printBench(r benchResult) {
	t := a.Sheet([]terminal.Column{
		{Name: "p50 ms"}, {Name: "p90 ms"}, {Name: "p99 ms"}, {Name: "max ms"}, {Name: "published/s"},
		{Name: "arrived/s"}, {Name: "lost"}, {Name: "early"}, {Name: "twice"},
	})
	t.Add(terminal.Figure(r.P50), terminal.Figure(r.P90), terminal.Figure(r.P99), terminal.Figure(r.Max),
		terminal.Figure(r.PublishedRate), terminal.Figure(r.ArrivedRate),
		terminal.Whole(r.Lost), terminal.Whole(r.Early), terminal.Whole(r.Twice))
	t.Print()
}
