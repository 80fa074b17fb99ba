// Compare measures the lateness, the throughput and the cost of a broker, of the server's own message scheduling, and
// of a bare pipeline, in turns on one server. "go run ./test/rivals/compare --help" describes the scenarios.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/test/rivals/bench"
)

// errUsage is returned for invalid flags and arguments.
var errUsage = errors.New("usage")

// An app has the state that the commands share.
type app struct{ terminal.Printer }

func main() {
	a := &app{Printer: terminal.Printer{Out: os.Stdout, Err: os.Stderr}}
	if err := a.execute(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		code := 1
		if errors.Is(err, errUsage) || errors.Is(err, settings.ErrConfig) {
			code = 2
		}
		os.Exit(code)
	}
}

func (a *app) execute(ctx context.Context, args []string) error {
	c := a.compareCommand()
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetOut(a.Out)
	c.SetErr(a.Err)
	c.SetArgs(append([]string{}, args...)) // for nil, cobra would use the arguments of the process
	c.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON")
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	c.AddCommand(a.partCommand())
	if err := c.ExecuteContext(ctx); err != nil {
		return err
	}
	return a.Failure()
}

// benchOptions are the flags of compare. For a flag that is not given, the scenario's value applies.
type benchOptions struct {
	plan        bench.Plan // only the fields that flags set
	duration    time.Duration
	delay       string
	otherSides  string
	target      string
	compareFile string
	binary      string // of the broker; empty to build it
	wide        bool
}

// benchFlags maps a flag to the scenarios that it applies to. A flag that is not in the map applies to all scenarios.
var benchFlags = map[string][]bench.Scenario{
	"rate":       {bench.Steady, bench.Chain, bench.Timers},
	"for":        {bench.Steady, bench.Chain, bench.Pending, bench.Idle, bench.Timers, bench.Rounds},
	"count":      {bench.Burst, bench.Core, bench.Ingest, bench.Pending, bench.Timers, bench.Rounds},
	"size":       messageScenarios,
	"delay":      {bench.Steady, bench.Burst, bench.Chain, bench.Core, bench.Ingest, bench.Pending, bench.Timers},
	"targets":    messageScenarios,
	"publishers": messageScenarios,
	"to":         {bench.Steady, bench.Burst, bench.Chain},
	"cancel":     {bench.Timers},
	"timers":     {bench.Timers},
	"every":      {bench.Rounds},
}

// messageScenarios are the scenarios in which bench publishes messages.
var messageScenarios = slices.DeleteFunc(slices.Clone(bench.Scenarios), func(s bench.Scenario) bool {
	return s == bench.Idle
})

func (a *app) compareCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "compare [SCENARIO]",
		Short: "Measure lateness, throughput and cost of a broker, beside the server's scheduler and a bare pipeline",
		Long: `Start a broker, publish delayed messages to it, and measure the arrivals. The server is the one at NATS_URL or
NATS_CONTEXT, or a temporary one. All streams of the run have their own prefix. The run removes them at its end, and
removes the streams of earlier runs that were killed. The broker has the settings of the environment, except
DELAY_TARGETS, DELAY_RATE, DELAY_PROVISION, and those that two brokers cannot share, such as DELAY_INSTANCE and
DELAY_HTTP_ADDR.

  steady   messages at a rate: their lateness
  burst    many messages due at one instant: the time until the last arrival
  chain    random delays, which take several levels: passes and CPU for each message
  core     a burst for plain subscribers, each on its own subject
  ingest   publish as fast as the server answers; no message becomes due
  pending  messages that wait: memory, and the time until a new broker is ready after a kill
  idle     no messages: the CPU time
  timers   named timers. They are set, then some are cancelled by messages of the client (cancelled/s) and by requests
           to the broker (requested/s), and some are moved. All others are due at one instant. In the even phase after
           that, --timers timers and --rate plain messages are due in each second (even p99 ms, plain p99 ms).
  rounds   recurring timers, all due at the same instants: --every 10s with --for 20s is two rounds of each

With --beside, the broker and the other sides run in turns, on the same server. The side scheduler is the server's own
message scheduling. The side pipeline is the minimum for any broker: it reads a stream in order, waits until the head is
due, publishes it with an id and the same headers, and purges delivered messages. In scenarios in which no message
becomes due, the pipeline only publishes.

Lateness is the time at which the target's stream stored a message, or a plain subscriber received it, minus the time
that the publisher requested. CPU is the CPU time of the server and of the broker or pipeline for one message, if
compare has started them on this host. For timers it is the CPU time for one firing, from two seconds before the instant
until the processes are idle. If a timer arrives after its cancel was acknowledged, it counts as unknown. A missed round
counts as lost.

The columns in ms are lateness, except those that begin with ack or ready. CPU us is the CPU time of server and broker
together for one message, in microseconds. --wide shows the two separately, and more columns. ack is the time until a
publish is acknowledged. promised is the lateness relative to the message's Delay-Due. passes is the number of lanes
that stored a message. peak MB is the maximum memory of the broker.

The sidecar is the broker or the pipeline. server B and sidecar B are bytes of memory for each waiting message. ready ms
is the time from the start of a broker until it is ready, after a kill of another broker. server idle % and sidecar
idle % are CPU time while no message is due, in per cent of one core. requested/s is the number of timers that the
broker cancels on request in a second. In the even phase, 99 of 100 timers are late by less than even p99 ms.

exit codes: 0 done, 1 failed, or a message was lost, early or unknown, 2 bad arguments or settings`,
		Example: `  go run ./test/rivals/compare --rate 5000 --for 30s --delay 1s,5s,random:1m --targets 10 --publishers 4
  go run ./test/rivals/compare burst --beside scheduler,pipeline --rounds 5 --json > new.json
  go run ./test/rivals/compare burst --compare old.json
  go run ./test/rivals/compare timers --count 50000 --cancel 50 --rate 5000 --beside scheduler
  go run ./test/rivals/compare rounds --count 20000 --every 1m --for 1m --beside scheduler`,
		ValidArgs: scenarioNames(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%w: want one scenario, got %q", errUsage, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := o.read(cmd, args)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return a.compare(cmd.Context(), plan, o)
		},
	}
	o.addFlags(c)
	return c
}

func scenarioNames() (names []string) {
	for _, s := range bench.Scenarios {
		names = append(names, string(s))
	}
	return names
}

func (o *benchOptions) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.plan.Rate, "rate", 0, "messages a second; for timers, plain messages in the even phase")
	f.DurationVar(&o.duration, "for", 0, "duration of the publishing; for pending, idle and rounds, of the measurement")
	f.IntVar(&o.plan.Count, "count", 0, "number of messages, in scenarios without a rate; number of timers")
	f.IntVar(&o.plan.CancelPercent, "cancel", 0, "percentage of the timers to cancel, 0 to 99 (default 50)")
	f.IntVar(&o.plan.TimerRate, "timers", 0, "timers a second in the even phase; 0 leaves the phase out (default 500)")
	f.DurationVar(&o.plan.Interval, "every", 0, "interval of the rounds: 5s to 1m, a divisor of a minute (default 10s)")
	f.IntVar(&o.plan.Size, "size", 0, "bytes of a payload (default 256)")
	f.StringVar(&o.delay, "delay", "",
		"delays in turns: 1s,5s,random:1m; for burst and core, the time from the first publish")
	f.IntVar(&o.plan.Targets, "targets", 0, "number of target subjects (default 10; core 100000)")
	f.IntVar(&o.plan.Publishers, "publishers", 0, "number of publishing connections (default 1)")
	f.StringVar(&o.target, "to", "stream", "target of the messages: a stream, or core subscribers")
	f.StringVar(&o.otherSides, "beside", "", "other sides to measure in turns: scheduler,pipeline")
	f.IntVar(&o.plan.Rounds, "rounds", 1, "number of turns of each side; a ratio compares turns with the same number")
	f.StringVar(&o.compareFile, "compare", "", "compare with an earlier run: a file with the output of --json")
	f.StringVar(&o.binary, "broker", "", "the command delaybroker of another revision; without it, this one is built")
	f.BoolVar(&o.wide, "wide", false, "show all columns")
}

// read makes a plan from the arguments and flags.
func (o benchOptions) read(cmd *cobra.Command, args []string) (bench.Plan, error) {
	scenario := bench.Steady
	if len(args) > 0 {
		scenario = bench.Scenario(args[0])
	}
	plan, err := bench.NewPlan(scenario)
	if err != nil {
		return plan, err
	}
	var problems []error
	isGiven := func(flag string) bool {
		if !cmd.Flags().Changed(flag) {
			return false
		}
		if scenarios, restricted := benchFlags[flag]; restricted && !slices.Contains(scenarios, plan.Scenario) {
			problems = append(problems, fmt.Errorf("--%s has no meaning for %s", flag, plan.Scenario))
		}
		return true
	}
	for _, number := range []struct {
		flag     string
		from, to *int
	}{
		{"rate", &o.plan.Rate, &plan.Rate}, {"count", &o.plan.Count, &plan.Count}, {"size", &o.plan.Size, &plan.Size},
		{"targets", &o.plan.Targets, &plan.Targets}, {"publishers", &o.plan.Publishers, &plan.Publishers},
		{"rounds", &o.plan.Rounds, &plan.Rounds}, {"cancel", &o.plan.CancelPercent, &plan.CancelPercent},
		{"timers", &o.plan.TimerRate, &plan.TimerRate},
	} {
		if isGiven(number.flag) {
			*number.to = *number.from
		}
	}
	if isGiven("for") {
		plan.Duration = o.duration
	}
	if isGiven("every") {
		plan.Interval = o.plan.Interval
	}
	if isGiven("delay") {
		plan.Delays, err = bench.ParseDelays(o.delay)
		problems = append(problems, err)
	}
	if isGiven("to") {
		plan.Core = o.target == "core"
		if !plan.Core && o.target != "stream" {
			problems = append(problems, fmt.Errorf("--to %q: want stream or core", o.target))
		}
	}
	sides, err := bench.ParseSides(o.otherSides)
	if err != nil {
		problems = append(problems, fmt.Errorf("--beside: %w", err))
	}
	plan.Sides = append(plan.Sides, sides...)
	return plan, errors.Join(append(problems, plan.Check())...)
}

// compare runs the plan and prints the result. It reads the file of --compare before the run, to report an unreadable
// file immediately.
func (a *app) compare(ctx context.Context, plan bench.Plan, o benchOptions) (err error) {
	var baseline *bench.Report
	if o.compareFile != "" {
		if baseline, err = readReport(o.compareFile); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // after the first signal, so that a second signal kills the process
	host, end, err := a.host(ctx, plan, o.binary)
	if err != nil {
		return err
	}
	line := &benchLine{app: a, rounds: plan.Rounds}
	host.Show = line.show
	report, err := bench.Run(ctx, host, plan)
	line.clear()
	err = errors.Join(err, end())
	report.Version = host.Version
	if len(report.Results) > 0 {
		report.Ratios = report.RatiosToBroker()
		if baseline != nil {
			report.Compared = bench.Compare(baseline, report)
		}
		err = errors.Join(err, a.showReport(baseline, report, o.wide), report.Err())
	}
	if ctx.Err() != nil {
		err = errors.Join(errors.New("interrupted"), err)
	}
	return err
}

// readReport reads a file with the output of compare --json.
func readReport(file string) (*bench.Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: --compare: %w", errUsage, err)
	}
	var r bench.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%w: --compare %s: want the output of compare --json: %w", errUsage, file, err)
	}
	return &r, nil
}

// describeScenario returns a description of the measurement, for the head of the table.
func describeScenario(r *bench.Report) string {
	p := r.Plan
	var words []string
	add := func(shown bool, format string, args ...any) {
		if shown {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	named := p.Scenario.Named()
	add(named, "%s timers", terminal.Whole(p.Count))
	add(p.CancelPercent > 0, "%d%% cancelled", p.CancelPercent)
	add(p.TimerRate > 0, "then %s timers/s", terminal.Whole(p.TimerRate))
	add(p.Interval > 0, "every %s for %s", p.Interval, p.Duration)
	add(p.Rate > 0 && (!named || p.TimerRate > 0), "%s msg/s for %s", terminal.Whole(p.Rate), p.Duration)
	add(p.Rate == 0 && p.Count > 0 && !named, "%s messages", terminal.Whole(p.Count))
	add(p.Size > 0, "%d bytes", p.Size)
	for _, d := range p.Delays {
		words = append(words, d.String())
	}
	add(p.Targets > 0, "%s targets", terminal.Whole(p.Targets))
	add(p.Core, "plain subscribers")
	add(p.Publishers > 1, "%d publishers", p.Publishers)
	add(true, "nats-server %s, %d CPUs", r.Server, r.CPUs)
	return string(p.Scenario) + ": " + strings.Join(words, ", ")
}
