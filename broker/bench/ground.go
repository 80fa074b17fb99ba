package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A ground is the state of one turn: its streams, its target, and the process that delays.
type ground struct {
	*run
	side    Side
	target  Target   // nil if nothing arrives in the scenario
	sidecar *Child   // nil for the scheduler, which is in the server
	streams []string // of this turn; the broker creates its own
	core    *heard   // the target, if it is plain subscribers
}

// prepare creates the streams and starts the sidecar.
func (g *ground) prepare(ctx context.Context) error {
	if g.side == Scheduler && g.plan.Core {
		return fmt.Errorf("%w: its targets must be in its own stream", ErrCannot)
	}
	if g.plan.Core {
		var err error
		g.core, err = subscribe(g.conn, g.site.names, g.plan.Targets, g.plan.Count, g.report.Clock)
		if err != nil {
			return err
		}
		g.target = g.core
	}
	switch g.side {
	case Scheduler:
		return g.prepareScheduler(ctx)
	case Pipeline:
		_, err := g.create(ctx, jetstream.StreamConfig{
			Name: g.site.names.SourceStream(), Subjects: []string{g.site.names.sources()},
		})
		if err != nil {
			return err
		}
	}
	if !g.plan.Core && !g.plan.Scenario.still() {
		cfg, subject := g.site.names.Arrivals(g.side)
		to, err := g.create(ctx, cfg)
		if err != nil {
			return err
		}
		g.target = Stored{Stream: to, Subject: subject}
	}
	return g.startSidecar(ctx)
}

func (g *ground) prepareScheduler(ctx context.Context) error {
	cfg, subject := g.site.names.Arrivals(g.side)
	s, err := g.create(ctx, cfg)
	if err != nil {
		return err
	}
	if !s.CachedInfo().Config.AllowMsgSchedules {
		return fmt.Errorf("%w: nats-server %s has no schedules", ErrCannot, g.report.Server)
	}
	g.target = Stored{Stream: s, Subject: subject, Others: g.plan.Count + g.plan.moved()}
	return nil
}

func (g *ground) create(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := g.site.create(ctx, cfg)
	if err == nil {
		g.streams = append(g.streams, cfg.Name)
	}
	return s, err
}

// startSidecar starts the broker or the pipeline, if the scenario needs one.
func (g *ground) startSidecar(ctx context.Context) (err error) {
	switch {
	case g.side == Broker:
		g.show("starting the broker")
		g.sidecar, err = StartChild(ctx, PartBroker, g.host.Command(PartBroker), struct{}{})
	case g.side == Pipeline && !g.plan.Scenario.still():
		// Delay-Due is by the server's clock: no error of the comparison may make a message early.
		order := pipe{Prefix: g.site.names.prefix, Core: g.plan.Core, Offset: g.report.Clock - g.report.ClockWithin}
		g.sidecar, err = StartChild(ctx, PartPipeline, g.host.Command(PartPipeline), &order)
	}
	return err
}

// clear stops the sidecar and removes the streams of the turn, even if ctx has ended.
func (g *ground) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	if g.core != nil {
		g.core.end()
	}
	problems := []error{g.sidecar.Stop()}
	for _, name := range g.streams {
		problems = append(problems, g.site.drop(ctx, name))
	}
	if g.side == Broker {
		problems = append(problems, g.site.removeBroker(ctx))
	}
	return errors.Join(problems...)
}

// publish runs the load in a process of its own, and shows its progress.
func (g *ground) publish(ctx context.Context, load Load) (Loaded, error) {
	child, err := StartChild(ctx, PartLoad, g.host.Command(PartLoad), load)
	if err != nil {
		return Loaded{}, err
	}
	for {
		said, err := child.Next(ctx)
		if err == nil && said.Loaded == nil {
			g.now.Accepted = said.Accepted
			if g.target != nil {
				g.now.Arrived, err = g.target.Arrived(ctx)
			}
			g.show(load.doing())
		}
		if err != nil {
			_ = child.Stop() // err has the reason of the exit
			return Loaded{}, err
		}
		if said.Loaded != nil {
			return *said.Loaded, child.Stop()
		}
	}
}

// A usage is the usage of the server and of the sidecar, for those that the run has started.
type usage struct{ server, sidecar Usage }

func (g *ground) usage() (u usage, err error) {
	if g.host.Server != nil {
		if u.server, err = g.host.Server.Usage(); err != nil {
			return usage{}, err
		}
	}
	if g.sidecar != nil {
		u.sidecar, err = g.sidecar.Usage()
	}
	return u, err
}

// cost returns the usage since before, for each of count messages.
func (g *ground) cost(before usage, count int) (*Cost, error) {
	now, err := g.usage()
	if err != nil {
		return nil, err
	}
	each := func(d time.Duration) float64 {
		return float64(d) / float64(time.Microsecond) / float64(max(1, count))
	}
	return &Cost{
		Server: each(now.server.CPU - before.server.CPU), Sidecar: each(now.sidecar.CPU - before.sidecar.CPU),
		Peak: float64(now.sidecar.Peak) / 1e6,
	}, nil
}
