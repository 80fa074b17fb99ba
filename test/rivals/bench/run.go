package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/jsapi"
)

// removeTimeout is the timeout for the removal of about forty streams.
const removeTimeout = time.Minute

// A Host is the environment of a run: its connection, and the processes of its parts.
type Host struct {
	Dialer
	// Command returns the command of a part. For PartBroker, the command must start a broker with the prefix Prefix.
	Command func(part Part) *exec.Cmd
	Server  *Child // nil if another program started the server
	Version string // of the broker
	Prefix  string // see NewPrefix
	// Replicas returns the number of replicas of the broker's streams. The streams of the run have the same number of
	// replicas.
	Replicas func(clustered bool) int
	Show     func(Progress) // called at each change of the progress
}

// Progress is the state of a run. Before the first turn and after the last one, Side and Round are zero.
type Progress struct {
	Side     Side
	Round    int // from 1
	Activity string
	Accepted int // number of accepted messages of the current load
	Arrived  int // number of arrivals
	Count    int // Plan.Count
}

// run is the state of one call of Run. It is not safe for concurrent use.
type run struct {
	host       Host
	plan       Plan
	site       site
	conn       *nats.Conn
	report     *Report
	turnNumber uint32
	progress   Progress
}

// Run runs a plan. Before it returns, it removes the streams of the run, even if ctx has ended. After an error, the
// report has the finished turns. A broken promise is not an error of Run: see [Report.Err].
func Run(ctx context.Context, host Host, plan Plan) (report *Report, err error) {
	report = newReport(plan)
	r := &run{host: host, plan: plan, report: report}
	conn, js, err := host.jetStream()
	if err != nil {
		return report, err
	}
	defer conn.Close()
	names, err := NewNames(host.Prefix)
	if err != nil {
		return report, err
	}
	r.conn, report.Server = conn, conn.ConnectedServerVersion()
	r.site = site{
		js: js, api: jsapi.Client{Conn: conn, API: host.APIPrefix}, names: names,
		replicas: host.Replicas(conn.ConnectedClusterName() != ""),
	}
	if err := r.sweep(ctx); err != nil {
		return report, err
	}
	defer func() {
		removeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
		defer cancel()
		r.progress = Progress{}
		r.show("removing the streams of the run")
		if problem := r.site.remove(removeCtx); problem != nil {
			err = errors.Join(err, fmt.Errorf("%w; a later run will remove the streams of this run", problem))
		}
	}()
	if err := r.site.createMarker(ctx); err != nil {
		return report, err
	}
	heartbeatCtx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { r.site.keepAlive(heartbeatCtx) })
	if host.Server == nil { // a server that another program started may have another clock
		if err := r.readClock(ctx); err != nil {
			return report, err
		}
	}
	return report, r.runRounds(ctx)
}

func (r *run) runRounds(ctx context.Context) error {
	for round := range r.plan.Rounds {
		for _, side := range r.plan.Sides {
			r.progress = Progress{Side: side, Round: round + 1, Count: r.plan.Count}
			result, err := r.runTurn(ctx, side)
			if err != nil {
				return fmt.Errorf("%s, round %d: %w", side, round+1, err)
			}
			result.Side, result.Round = side, round+1
			r.report.Results = append(r.report.Results, result)
		}
	}
	return nil
}

func (r *run) sweep(ctx context.Context) error {
	r.show("looking for streams of killed runs")
	prefixes, err := r.site.sweep(ctx)
	for _, prefix := range prefixes {
		r.show("removed the streams of a killed run: " + prefix)
	}
	return err
}

// readClock compares the server's clock with the local clock, and sets Clock and ClockError in the report. It uses the
// answer with the shortest round trip.
func (r *run) readClock(ctx context.Context) error {
	const attempts = 20
	stream, err := r.site.js.Stream(ctx, r.site.names.runStream())
	if err != nil {
		return fmt.Errorf("read the server's clock: %w", err)
	}
	for attempt := range attempts {
		sendTime := time.Now()
		info, err := stream.Info(ctx)
		if err != nil {
			return fmt.Errorf("read the server's clock: %w", err)
		}
		half := time.Since(sendTime) / 2
		if attempt == 0 || half < r.report.ClockError {
			r.report.Clock, r.report.ClockError = info.TimeStamp.Sub(sendTime.Add(half)), half
		}
	}
	return nil
}

// runTurn runs the turn of one side. For an unsupported scenario, the result has only the reason.
func (r *run) runTurn(ctx context.Context, side Side) (result Result, err error) {
	r.turnNumber++
	r.show("creating streams")
	t := &turn{run: r, side: side}
	defer func() { err = errors.Join(err, t.cleanUp(ctx)) }()
	switch err := t.prepare(ctx); {
	case errors.Is(err, ErrUnsupported):
		return Result{Unsupported: err.Error()}, nil
	case err != nil:
		return Result{}, err
	}
	switch r.plan.Scenario {
	case Ingest:
		return t.ingest(ctx)
	case Pending:
		return t.pending(ctx)
	case Idle:
		return t.idle(ctx)
	case Timers:
		return t.timers(ctx)
	case Rounds:
		return t.recurringTimers(ctx)
	}
	return t.flow(ctx)
}

func (r *run) show(activity string) {
	r.progress.Activity = activity
	r.host.Show(r.progress)
}

// load returns the load of the plan for a side. If due is zero, the messages have the delays of the plan.
func (r *run) load(side Side, due time.Time) Load {
	l := Load{
		Side: side, Prefix: r.site.names.prefix, Turn: r.turnNumber, Count: r.plan.Count, Size: r.plan.Size,
		Rate: r.plan.Rate, Delays: r.plan.Delays, Due: due, Targets: r.plan.Targets, Publishers: r.plan.Publishers,
		Core: r.plan.Core, Offset: r.report.Clock, Change: Change{API: r.host.APIPrefix},
	}
	if len(l.Delays) == 0 {
		l.Delays = []Delay{{Duration: r.plan.dueAfter()}}
	}
	return l
}

func (r *run) serverTime() time.Time { return time.Now().Add(r.report.Clock) }
