package bench

import (
	"context"
	"time"
)

// idleTime is the time before a measurement in which the processes become idle.
const idleTime = 3 * time.Second

// ingest publishes without a rate. No message becomes due during the publishing, so at the end of the publishing all
// accepted messages must be in the streams.
func (t *turn) ingest(ctx context.Context) (result Result, err error) {
	start, err := t.usage()
	if err != nil {
		return Result{}, err
	}
	loaded, err := t.publish(ctx, t.load(t.side, time.Time{}))
	if err != nil {
		return Result{}, err
	}
	if result.Cost, err = t.cost(start, t.plan.Count); err != nil {
		return Result{}, err
	}
	result.Published, result.Acks = loaded.Rate, loaded.Acks
	result.Tally, err = t.countPending(ctx)
	return result, err
}

// countPending counts the pending messages in the streams of the run. Each missing message counts as lost, and each
// additional message as a duplicate.
func (t *turn) countPending(ctx context.Context) (Tally, error) {
	infos, _, err := t.site.list(ctx)
	if err != nil {
		return Tally{}, err
	}
	stored := 0
	for _, info := range infos {
		name := info.Config.Name
		if name == t.site.names.broker.OwnersStream() || name == t.site.names.runStream() {
			continue
		}
		if t.site.names.owns(info) {
			stored += int(info.State.Msgs)
		}
	}
	return Tally{
		Count: t.plan.Count, Lost: max(0, t.plan.Count-stored), Twice: max(0, stored-t.plan.Count),
	}, nil
}

// pending measures the cost of pending messages. For the side Broker, it then kills the broker, and measures the time
// until the next broker is ready.
func (t *turn) pending(ctx context.Context) (result Result, err error) {
	if err := t.becomeIdle(ctx); err != nil {
		return Result{}, err
	}
	start, err := t.usage()
	if err != nil {
		return Result{}, err
	}
	loaded, err := t.publish(ctx, t.load(t.side, time.Time{}))
	if err != nil {
		return Result{}, err
	}
	if err := t.becomeIdle(ctx); err != nil {
		return Result{}, err
	}
	end, err := t.usage()
	if err != nil {
		return Result{}, err
	}
	count := float64(t.plan.Count)
	cost := &IdleCost{
		ServerBytes:  float64(end.server.Memory-start.server.Memory) / count,
		SidecarBytes: float64(end.sidecar.Memory-start.sidecar.Memory) / count,
	}
	result.Published, result.Idle = loaded.Rate, cost
	if t.side == Broker {
		t.sidecar.Kill()
		startTime := time.Now()
		if err := t.startSidecar(ctx); err != nil {
			return Result{}, err
		}
		cost.ReadyMS = milliseconds(time.Since(startTime))
		if err := sleep(ctx, idleTime); err != nil {
			return Result{}, err
		}
	}
	if err := t.measureIdle(ctx, cost); err != nil {
		return Result{}, err
	}
	result.Tally, err = t.countPending(ctx)
	return result, err
}

// idle measures the cost of the processes with empty streams.
func (t *turn) idle(ctx context.Context) (result Result, err error) {
	if err := t.becomeIdle(ctx); err != nil {
		return Result{}, err
	}
	result.Idle = new(IdleCost)
	return result, t.measureIdle(ctx, result.Idle)
}

func (t *turn) becomeIdle(ctx context.Context) error {
	t.show("waiting until the processes are idle")
	return sleep(ctx, idleTime)
}

// measureIdle measures the CPU time of the idle processes for the duration of the plan.
func (t *turn) measureIdle(ctx context.Context, cost *IdleCost) error {
	t.show("measuring the idle processes")
	start, err := t.usage()
	if err != nil {
		return err
	}
	startTime := time.Now()
	if err := sleep(ctx, t.plan.Duration); err != nil {
		return err
	}
	elapsed := time.Since(startTime)
	end, err := t.usage()
	if err != nil {
		return err
	}
	cost.ServerIdle = float64(end.server.CPU-start.server.CPU) / float64(elapsed)
	cost.SidecarIdle = float64(end.sidecar.CPU-start.sidecar.CPU) / float64(elapsed)
	return nil
}
