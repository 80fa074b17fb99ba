package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/bench"
	"delaybroker/broker/config"
	"delaybroker/cmd/delaybroker/links"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

// benchOptions are the flags of bench. Flags that are not given have the scenario's values.
type benchOptions struct {
	plan    bench.Plan // only the fields that flags set
	span    time.Duration
	delay   string
	beside  string
	to      string
	compare string
	wide    bool
}

// benchFlags maps a flag to its scenarios. A flag that is not listed is for all of them.
var benchFlags = map[string][]bench.Scenario{
	"rate":       {bench.Steady, bench.Chain, bench.Timers},
	"for":        {bench.Steady, bench.Chain, bench.Pending, bench.Idle, bench.Timers, bench.Rounds},
	"count":      {bench.Burst, bench.Core, bench.Ingest, bench.Pending, bench.Timers, bench.Rounds},
	"size":       benchMessages,
	"delay":      {bench.Steady, bench.Burst, bench.Chain, bench.Core, bench.Ingest, bench.Pending, bench.Timers},
	"targets":    benchMessages,
	"publishers": benchMessages,
	"to":         {bench.Steady, bench.Burst, bench.Chain},
	"cancel":     {bench.Timers},
	"timers":     {bench.Timers},
	"every":      {bench.Rounds},
}

// benchMessages are the scenarios that have messages.
var benchMessages = slices.DeleteFunc(slices.Clone(bench.Scenarios), func(s bench.Scenario) bool {
	return s == bench.Idle
})

func (a *app) benchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench [SCENARIO]",
		Short: "Measure how late, how fast and at what cost, beside the server's own scheduler",
		Long: `Publish to a broker of its own, and measure what arrives. The server is the one at NATS_URL or NATS_CONTEXT, or
one of its own in a temporary directory. All streams have a prefix of this run, and are removed afterwards; what a
killed run left, the next one removes. The broker takes the settings of the environment, as serve does, but for the
prefix.

  steady   messages at a rate: how late are they
  burst    many messages due at one instant: when has the last arrived
  chain    random delays, which take several levels: passes and CPU for a message
  core     a burst for plain subscribers, each on a subject of its own
  ingest   publish as fast as the server answers; nothing is due
  pending  messages that wait: memory, and how soon a broker that was killed is ready
  idle     nothing to do
  timers   named timers: set, cancelled by a client that publishes entries (cancelled/s) and by requests to the broker
           (requested/s), moved, and due at one instant; then due evenly, --timers a second, beside --rate plain
           messages a second (even p99 ms, plain p99 ms)
  rounds   timers that recur, all due at the same instants: --every 10s for --for 20s is two rounds of each

With --beside each side has its turn, on the same server: scheduler is the server's own message scheduling, pipeline is
the least that a broker could do, which is to read a stream in order, wait until the head is due, publish it with an id
and the same headers, and purge behind. Where nothing is due, it is a plain publish to a stream.

Lateness is the time at which the target's stream stored a message less the time for which it was asked; for plain
subscribers, the time at which they got it. CPU is that of the server and of the broker or pipeline for one message,
where the processes are on this host and started by bench. For timers it is for one firing, from two seconds before the
instant until the processes are at rest. A timer that arrives although its cancel was acknowledged counts as unknown, a
round that was missed as lost.

The columns in ms are lateness, unless they begin with ack or ready. CPU us is microseconds of CPU for one message, of
the server and the broker together. --wide shows both apart; further percentiles; ack, the time until a publish is
acknowledged; promised, the lateness after the time in the message's own Delay-Due; passes, how many streams a message
went through; and the most memory that the broker had.

exit codes: 0 done, 1 failed, or a message was lost, early or unknown, 2 bad arguments or settings`,
		Example: `  delaybroker bench --rate 5000 --for 30s --size 256 --delay 1s,5s,random:1m --targets 10 --publishers 4
  delaybroker bench burst --beside scheduler,pipeline --rounds 5 --json > new.json
  delaybroker bench burst --compare old.json
  delaybroker bench timers --count 50000 --cancel 50 --rate 5000 --beside scheduler
  delaybroker bench rounds --count 20000 --every 1m --for 1m --beside scheduler`,
		ValidArgs: terminal.Words(bench.Scenarios),
		Args:      argumentsBetween(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := o.read(cmd, args)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return a.bench(cmd.Context(), plan, o)
		},
	}
	o.register(c)
	return c
}

func (o *benchOptions) register(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.plan.Rate, "rate", 0, "messages a second (for timers, plain messages beside those due evenly)")
	f.DurationVar(&o.span, "for", 0, "how long to publish at that rate; for pending, idle and rounds, how long to watch")
	f.IntVar(&o.plan.Count, "count", 0, "how many messages, where there is no rate; how many timers there are")
	f.IntVar(&o.plan.Cancel, "cancel", 0, "per cent of the timers that are cancelled, 0 to 99 (default 50)")
	f.IntVar(&o.plan.Timers, "timers", 0, "timers a second that are due evenly; 0 leaves this phase out (default 500)")
	f.DurationVar(&o.plan.Every, "every", 0, "from one round to the next: 5s to 1m, a divisor of a minute (default 10s)")
	f.IntVar(&o.plan.Size, "size", 0, "bytes of a payload (default 256)")
	f.StringVar(&o.delay, "delay", "", "delays in turns: 1s,5s,random:1m; for burst and core, from the first publish on")
	f.IntVar(&o.plan.Targets, "targets", 0, "on how many subjects messages arrive (default 10; core 100000)")
	f.IntVar(&o.plan.Publishers, "publishers", 0, "connections that publish (default 1)")
	f.StringVar(&o.to, "to", "stream", "where messages arrive: in a stream, or at core subscribers")
	f.StringVar(&o.beside, "beside", "", "what else to measure in turns: scheduler,pipeline")
	f.IntVar(&o.plan.Rounds, "rounds", 1, "how many turns each side has; ratios are those of one round")
	f.StringVar(&o.compare, "compare", "", "compare with an earlier run: a file that --json made")
	f.BoolVar(&o.wide, "wide", false, "show all columns")
	completes(c, "to", "stream", "core")
	completes(c, "beside", "scheduler", "pipeline", "scheduler,pipeline")
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
	given := func(flag string) bool {
		if !cmd.Flags().Changed(flag) {
			return false
		}
		if good, some := benchFlags[flag]; some && !slices.Contains(good, plan.Scenario) {
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
		{"rounds", &o.plan.Rounds, &plan.Rounds}, {"cancel", &o.plan.Cancel, &plan.Cancel},
		{"timers", &o.plan.Timers, &plan.Timers},
	} {
		if given(number.flag) {
			*number.to = *number.from
		}
	}
	if given("for") {
		plan.For = o.span
	}
	if given("every") {
		plan.Every = o.plan.Every
	}
	if given("delay") {
		plan.Delays, err = bench.ParseDelays(o.delay)
		problems = append(problems, err)
	}
	if given("to") {
		plan.Core = o.to == "core"
		if !plan.Core && o.to != "stream" {
			problems = append(problems, fmt.Errorf("--to %q: want stream or core", o.to))
		}
	}
	sides, err := bench.ParseSides(o.beside)
	if err != nil {
		problems = append(problems, fmt.Errorf("--beside: %w", err))
	}
	plan.Sides = append(plan.Sides, sides...)
	return plan, errors.Join(append(problems, plan.Check())...)
}

// bench runs the plan, and prints the result. It reads the report to compare with first: a run is long.
func (a *app) bench(ctx context.Context, plan bench.Plan, o benchOptions) (err error) {
	var old *bench.Report
	if o.compare != "" {
		if old, err = readReport(o.compare); err != nil {
			return err
		}
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second signal ends it at once
	host, end, err := a.benchHost(ctx, plan)
	if err != nil {
		return err
	}
	line := &benchLine{app: a, rounds: plan.Rounds}
	host.Show = line.show
	report, err := bench.Run(ctx, host, plan)
	line.clear()
	err = errors.Join(err, end())
	report.Version = readBuild().name()
	if len(report.Results) > 0 {
		report.Ratios = report.Beside()
		if old != nil {
			report.Compared = bench.Compare(old, report)
		}
		err = errors.Join(err, a.showReport(old, report, o.wide), report.Err())
	}
	if ctx.Err() != nil {
		err = errors.Join(errors.New("interrupted"), err)
	}
	return err
}

func readReport(file string) (*bench.Report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: --compare: %w", errUsage, err)
	}
	var r bench.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%w: --compare %s: want what bench --json printed: %w", errUsage, file, err)
	}
	return &r, nil
}

// benchHost returns the configured server, or one of the run's own, with the launcher of the other processes. End stops
// the server.
func (a *app) benchHost(ctx context.Context, plan bench.Plan) (host bench.Host, end func() error, err error) {
	cfg, err := settings.Read()
	if err != nil {
		return host, nil, err
	}
	if plan.Scenario.Named() && !cfg.Broker.Timers {
		return host, nil, fmt.Errorf("%w: bench %s needs named timers: leave out DELAY_TIMERS=off", errUsage, plan.Scenario)
	}
	self, err := os.Executable()
	if err != nil {
		return host, nil, fmt.Errorf("find this program: %w", err)
	}
	parts := benchParts{self: self, prefix: bench.NewPrefix()}
	if parts.http, err = freeAddress(); err != nil {
		return host, nil, err
	}
	reach, end := cfg.Access, func() error { return nil }
	if cfg.Embedded != nil {
		host.Server, err = bench.StartChild(ctx, bench.PartServer, parts.command(bench.PartServer), struct{}{})
		if err != nil {
			return host, nil, err
		}
		end = host.Server.Stop
		parts.url, reach = host.Server.URL, links.Access{URL: host.Server.URL}
	}
	host.Command, host.Prefix, host.Copies = parts.command, parts.prefix, cfg.Broker.Copies
	host.Dial = a.benchDial(ctx, reach, cfg.Broker)
	return host, end, nil
}

func (a *app) benchDial(ctx context.Context, reach links.Access, cfg broker.Config) bench.Dial {
	return bench.Dial{
		Connect:   func() (*nats.Conn, error) { return a.connect(ctx, reach) },
		APIPrefix: cmp.Or(cfg.APIPrefix, config.APIPrefix(cfg.JSDomain)),
	}
}

// scenarioWords returns a description of the measurement, for the head of the table.
func scenarioWords(r *bench.Report) string {
	p := r.Plan
	var words []string
	add := func(shown bool, format string, args ...any) {
		if shown {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	named := p.Scenario.Named()
	add(named, "%s timers", whole(p.Count))
	add(p.Cancel > 0, "%d%% cancelled", p.Cancel)
	add(p.Timers > 0, "then %s timers/s", whole(p.Timers))
	add(p.Every > 0, "every %s for %s", p.Every, p.For)
	add(p.Rate > 0 && (!named || p.Timers > 0), "%s msg/s for %s", whole(p.Rate), p.For)
	add(p.Rate == 0 && p.Count > 0 && !named, "%s messages", whole(p.Count))
	add(p.Size > 0, "%d bytes", p.Size)
	for _, d := range p.Delays {
		words = append(words, d.String())
	}
	add(p.Targets > 0, "%s targets", whole(p.Targets))
	add(p.Core, "plain subscribers")
	add(p.Publishers > 1, "%d publishers", p.Publishers)
	add(true, "nats-server %s, %d CPUs", r.Server, r.CPUs)
	return string(p.Scenario) + ": " + strings.Join(words, ", ")
}
