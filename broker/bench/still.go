package bench

import (
	"context"
	"time"
)

// restFor is the idle time of the processes before a measurement.
const restFor = 3 * time.Second

// ingest publishes as fast as the server answers. Nothing becomes due meanwhile, so all accepted messages must be
// stored.
func (g *ground) ingest(ctx context.Context) (result Result, err error) {
	before, err := g.usage()
	if err != nil {
		return Result{}, err
	}
	loaded, err := g.publish(ctx, g.load(g.side, time.Time{}))
	if err != nil {
		return Result{}, err
	}
	if result.Cost, err = g.cost(before, g.plan.Count); err != nil {
		return Result{}, err
	}
	result.Published, result.Acks = loaded.Rate, loaded.Acks
	result.Tally, err = g.waiting(ctx)
	return result, err
}

// waiting counts the waiting messages. There is no ledger, since nothing arrives.
func (g *ground) waiting(ctx context.Context) (Tally, error) {
	all, _, err := g.site.list(ctx)
	if err != nil {
		return Tally{}, err
	}
	there := 0
	for _, info := range all {
		name := info.Config.Name
		if name == g.site.names.broker.OwnersStream() || name == g.site.names.runStream() {
			continue
		}
		if g.site.names.own(info) {
			there += int(info.State.Msgs)
		}
	}
	return Tally{
		Count: g.plan.Count, Lost: max(0, g.plan.Count-there), Twice: max(0, there-g.plan.Count),
	}, nil
}

// pending measures the cost of waiting messages, then kills the broker and measures the time until the next one is
// ready.
func (g *ground) pending(ctx context.Context) (result Result, err error) {
	if err := g.rest(ctx); err != nil {
		return Result{}, err
	}
	before, err := g.usage()
	if err != nil {
		return Result{}, err
	}
	loaded, err := g.publish(ctx, g.load(g.side, time.Time{}))
	if err != nil {
		return Result{}, err
	}
	if err := g.rest(ctx); err != nil {
		return Result{}, err
	}
	after, err := g.usage()
	if err != nil {
		return Result{}, err
	}
	count := float64(g.plan.Count)
	rest := &Rest{
		ServerBytes:  float64(after.server.Memory-before.server.Memory) / count,
		SidecarBytes: float64(after.sidecar.Memory-before.sidecar.Memory) / count,
	}
	result.Published, result.Rest = loaded.Rate, rest
	if g.side == Broker {
		g.sidecar.Kill()
		began := time.Now()
		if err := g.startSidecar(ctx); err != nil {
			return Result{}, err
		}
		rest.ReadyMS = Milliseconds(time.Since(began))
		if err := sleep(ctx, restFor); err != nil {
			return Result{}, err
		}
	}
	if err := g.watch(ctx, rest); err != nil {
		return Result{}, err
	}
	result.Tally, err = g.waiting(ctx)
	return result, err
}

// idle measures the cost of streams without waiting messages.
func (g *ground) idle(ctx context.Context) (result Result, err error) {
	if err := g.rest(ctx); err != nil {
		return Result{}, err
	}
	result.Rest = new(Rest)
	return result, g.watch(ctx, result.Rest)
}

// rest leaves the processes idle.
func (g *ground) rest(ctx context.Context) error {
	g.show("letting the processes become idle")
	return sleep(ctx, restFor)
}

// watch measures the CPU time of idle processes.
func (g *ground) watch(ctx context.Context, rest *Rest) error {
	g.show("measuring the idle processes")
	before, err := g.usage()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := sleep(ctx, g.plan.For); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := g.usage()
	if err != nil {
		return err
	}
	rest.ServerIdle = float64(after.server.CPU-before.server.CPU) / float64(took)
	rest.SidecarIdle = float64(after.sidecar.CPU-before.sidecar.CPU) / float64(took)
	return nil
}
