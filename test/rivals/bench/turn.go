package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A turn is the measurement of one side in one round.
type turn struct {
	*run
	side    Side
	target  Target       // nil for the broker and the pipeline in the scenarios ingest and pending
	sidecar *Child       // the broker or the pipeline; nil if the turn needs neither
	streams []string     // the streams of this turn, without the streams of the broker
	core    *subscribers // the target of a plan with plain subscribers; otherwise nil
}

func (t *turn) prepare(ctx context.Context) error {
	if t.side == Scheduler && t.plan.Core {
		return fmt.Errorf("%w: a schedule of the server delivers only to its own stream", ErrUnsupported)
	}
	if t.plan.Core {
		var err error
		t.core, err = subscribe(t.conn, t.site.names, t.plan.Targets, t.plan.Count, t.report.Clock)
		if err != nil {
			return err
		}
		t.target = t.core
	}
	if t.side == Pipeline {
		_, err := t.create(ctx, jetstream.StreamConfig{
			Name: t.site.names.sourceStream(), Subjects: []string{t.site.names.sources()},
		})
		if err != nil {
			return err
		}
	}
	if t.side == Scheduler || !t.plan.Core && !t.plan.Scenario.nothingDue() {
		cfg, subject := t.site.names.Arrivals(t.side)
		s, err := t.create(ctx, cfg)
		if err != nil {
			return err
		}
		target := StreamTarget{Stream: s, Subject: subject}
		if t.side == Scheduler {
			if !s.CachedInfo().Config.AllowMsgSchedules {
				return fmt.Errorf("%w: nats-server %s has no schedules", ErrUnsupported, t.report.Server)
			}
			target.OtherMessages = t.plan.Count + t.plan.movedTimers() // each move stores another schedule
		}
		t.target = target
	}
	return t.startSidecar(ctx)
}

func (t *turn) create(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := t.site.create(ctx, cfg)
	if err == nil {
		t.streams = append(t.streams, cfg.Name)
	}
	return s, err
}

func (t *turn) startSidecar(ctx context.Context) (err error) {
	switch {
	case t.side == Broker:
		t.show("starting the broker")
		t.sidecar, err = StartChild(ctx, PartBroker, t.host.Command(PartBroker), struct{}{})
	case t.side == Pipeline && !t.plan.Scenario.nothingDue():
		// The subtraction of the maximum error prevents early messages.
		task := pipeline{Prefix: t.site.names.prefix, Core: t.plan.Core, Offset: t.report.Clock - t.report.ClockError}
		t.sidecar, err = StartChild(ctx, PartPipeline, t.host.Command(PartPipeline), &task)
	}
	return err
}

// cleanUp stops the sidecar and removes the streams of the turn, even if ctx has ended.
func (t *turn) cleanUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	if t.core != nil {
		t.core.close()
	}
	problems := []error{t.sidecar.Stop()}
	for _, name := range t.streams {
		problems = append(problems, t.site.drop(ctx, name))
	}
	if t.side == Broker {
		problems = append(problems, t.site.removeBroker(ctx))
	}
	return errors.Join(problems...)
}

// publish runs the load in its own process, and shows its progress.
func (t *turn) publish(ctx context.Context, load Load) (LoadResult, error) {
	child, err := StartChild(ctx, PartLoad, t.host.Command(PartLoad), load)
	if err != nil {
		return LoadResult{}, err
	}
	for {
		output, err := child.Next(ctx)
		if err == nil && output.Loaded == nil {
			t.progress.Accepted = output.Accepted
			if t.target != nil {
				t.progress.Arrived, err = t.target.Arrived(ctx)
			}
			t.show(load.operation())
		}
		if err != nil {
			_ = child.Stop() // err has the reason
			return LoadResult{}, err
		}
		if output.Loaded != nil {
			return *output.Loaded, child.Stop()
		}
	}
}

// A usage is the resource usage of the server and of the sidecar. The usage of a process is zero if the run did not
// start that process.
type usage struct{ server, sidecar Usage }

func (t *turn) usage() (u usage, err error) {
	if t.host.Server != nil {
		if u.server, err = t.host.Server.Usage(); err != nil {
			return usage{}, err
		}
	}
	if t.sidecar != nil {
		u.sidecar, err = t.sidecar.Usage()
	}
	return u, err
}

// cost returns the CPU time per message since start, and the peak memory of the sidecar.
func (t *turn) cost(start usage, count int) (*Cost, error) {
	now, err := t.usage()
	if err != nil {
		return nil, err
	}
	perMessage := func(d time.Duration) float64 { // in microseconds
		return float64(d) / float64(time.Microsecond) / float64(max(1, count))
	}
	return &Cost{
		Server:  perMessage(now.server.CPU - start.server.CPU),
		Sidecar: perMessage(now.sidecar.CPU - start.sidecar.CPU),
		Peak:    float64(now.sidecar.Peak) / 1e6,
	}, nil
}
