package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/message"
	"delaybroker/broker/streams/provision"
	"delaybroker/cmd/delaybroker/capacity"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/levels"
)

type sizeOptions struct {
	rate, timers, series, bytes, fleets, replicas, cores int
	delay, every, memory, disk                           string
}

func (a *app) sizeCommand() *cobra.Command {
	var o sizeOptions
	c := &cobra.Command{
		Use:   "size [--rate N] [--timers N] [--series N --every DURATION]",
		Short: "Estimate the resources for a load, and the limit that a growing load reaches first",
		Long: `Estimate the resources for a load: streams, disk, memory and CPU of servers and brokers, and network. Then
print all limits, the first that a growing load reaches at the top. The command connects to nothing and measures
nothing. It multiplies the load by the costs of operations, which were measured on a machine with two cores (see
test/rivals), so a result is right within a factor of about two. The commands there measure your machine.

The levels are those of DELAY_LEVELS. A message whose delay is not a level passes through the intake and several levels,
and costs more. The estimate assumes that no timer is cancelled.

With --fleets, the load is that of several fleets, each with its own prefix. They divide all messages but timers by a
mapping of the account, which the command prints as a part of nats-server's configuration.

exit codes: 0 shown, 1 failed, 2 bad arguments or settings`,
		Example: `  delaybroker size --rate 5000 --delay 30m --bytes 512 --replicas 3
  delaybroker size --rate 60000 --fleets 2
  delaybroker size --timers 2000 --delay 2h
  delaybroker size --series 100000 --every 15m --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			load, uses, prefix, err := o.read()
			if err != nil {
				return err
			}
			need := sizeReport{Need: capacity.NeedOf(load), Uses: uses}
			if load.Fleets > 1 {
				if _, err = message.NewNames(capacity.FleetPrefix(prefix, load.Fleets)); err != nil {
					return fmt.Errorf("%w: %w: set a shorter DELAY_PREFIX", errUsage, err)
				}
				need.Mappings = capacity.Mappings(prefix, load.Fleets)
			}
			a.showNeed(need)
			return nil
		},
	}
	f := c.Flags()
	f.IntVar(&o.rate, "rate", 0, "messages that clients publish in a second, without timers")
	f.IntVar(&o.timers, "timers", 0, "named timers that clients set in a second")
	f.StringVar(&o.delay, "delay", "30m", "delay of messages and timers")
	f.IntVar(&o.series, "series", 0, "number of recurring timers; needs --every")
	f.StringVar(&o.every, "every", "", "interval of the recurring timers")
	f.IntVar(&o.bytes, "bytes", 256, "size of a body with your own headers, in bytes")
	f.IntVar(&o.fleets, "fleets", 1, "number of fleets that divide the messages")
	f.IntVar(&o.replicas, "replicas", 1, "number of servers, each with a copy of every stream")
	f.StringVar(&o.memory, "server-memory", "64GB", "memory of one server")
	f.StringVar(&o.disk, "server-disk", "2TB", "disk of one server")
	f.IntVar(&o.cores, "server-cores", 16, "processors of one server")
	return c
}

// read converts the flags and the settings to a load. It reports all problems of the flags together.
func (o sizeOptions) read() (l capacity.Load, uses provision.Resources, prefix string, err error) {
	var problems []error
	refuse := func(flag, value, want string) {
		problems = append(problems, fmt.Errorf("--%s %s: want %s", flag, value, want))
	}
	l = capacity.Load{
		Rate: float64(o.rate), Timers: float64(o.timers), Series: float64(o.series), Bytes: float64(o.bytes),
		Fleets: o.fleets, Replicas: o.replicas, Server: capacity.Server{Cores: float64(o.cores)},
	}
	if l.Delay, err = levels.ParseDuration(o.delay); err != nil {
		refuse("delay", o.delay, "a duration, such as 30m or 1d12h")
	}
	if o.every != "" {
		if l.Every, err = levels.ParseDuration(o.every); err != nil {
			refuse("every", o.every, "a duration, such as 15m")
			l.Every = time.Minute // a valid value, so that l.Check does not refuse the flag again
		}
	}
	for _, resource := range []struct {
		flag, value string
		to          *float64
	}{{"server-memory", o.memory, &l.Server.Memory}, {"server-disk", o.disk, &l.Server.Disk}} {
		n, err := humanize.ParseBytes(resource.value)
		if *resource.to = float64(n); err != nil {
			refuse(resource.flag, resource.value, "bytes, such as 64GB")
			*resource.to = 1 << 30 // a valid value, so that l.Check does not refuse the flag again
		}
	}
	for _, p := range l.Check() {
		refuse(p.Field, p.Value, p.Want)
	}
	if len(problems) > 0 {
		return l, uses, "", fmt.Errorf("%w: %w", errUsage, errors.Join(problems...))
	}
	cfg, err := settings.Read()
	if err != nil {
		return l, uses, "", err
	}
	l.Ladder = cfg.Broker.Ladder
	streams, err := broker.StreamsOf(cfg.Broker)
	if err != nil {
		return l, uses, "", err
	}
	wanted := streams.Wanted(1<<20, true) // the number does not depend on max_payload
	l.Streams = len(wanted)
	return l, provision.ResourcesOf(wanted), streams.Config().Prefix, nil
}

// sizeReport is the output of size.
type sizeReport struct {
	capacity.Need
	Uses     provision.Resources `json:"uses"`               // of each fleet
	Mappings []capacity.Mapping  `json:"mappings,omitempty"` // with several fleets
}

func (a *app) showNeed(n sizeReport) {
	if a.AsJSON(n) {
		return
	}
	t := a.Sheet([]terminal.Column{{Name: "resource"}, {Name: "amount"}, {Name: "detail", Drop: 1}})
	t.Add("streams", terminal.Whole(n.Load.Fleets*n.Load.Streams),
		terminal.Whole(n.Copies)+" on "+terminal.Counted(n.Load.Replicas, "server"))
	t.Add("consumers", terminal.Whole(n.Load.Fleets*n.Uses.Consumers), "one for each lane")
	t.Add("connections", terminal.Whole(n.Uses.Connections), "of each broker, without the page and commands")
	t.Add("subscriptions", terminal.Whole(n.Uses.Subscriptions), "of the connection that has the most")
	if n.Load.Rate > 0 {
		t.Add("passes of a message", terminal.Whole(n.Passes), "lanes that store the message")
	}
	t.Add("pending", formatCount(n.Pending), "messages, timers and series")
	t.Add("disk", formatBytes(n.Disk), "all servers, without the targets' streams")
	t.Add("memory of servers", formatBytes(n.ServerMemory), "all servers, without their base memory")
	t.Add("memory of a broker", formatBytes(n.BrokerMemory), "each, at most, with DELAY_MEMORY=256MiB")
	t.Add("CPU of servers", formatCores(n.ServerCPU.Sum()), formatSplit(n.ServerCPU))
	t.Add("CPU of brokers", formatCores(n.BrokerCPU.Sum()), formatSplit(n.BrokerCPU))
	t.Add("network to servers", formatBytes(n.Network.In)+"/s", "from clients and brokers")
	t.Add("network to brokers", formatBytes(n.Network.Out)+"/s", "without the consumers of targets")
	t.Add("between servers", formatBytes(n.Network.Replication)+"/s", "replicas")
	if n.Round > 0 {
		t.Add("rounds at one instant", fmt.Sprintf("%s s", terminal.Figure(n.Round)),
			"until the last, if all are due together")
	}
	t.Print()
	nearest := n.Limits[0]
	a.Printf("\nfirst limit: %s, at %s, which is %s times this load\n\n",
		nearest.Name, formatInUnit(nearest.Bound, nearest.Unit), terminal.Figure(1/nearest.Share))
	limits := a.Sheet([]terminal.Column{{Name: "limit"}, {Name: "load"}, {Name: "bound"}, {Name: "part"},
		{Name: "advice", Drop: 1}})
	for _, l := range n.Limits {
		load, bound := formatInUnit(l.Load, l.Unit), formatInUnit(l.Bound, l.Unit)
		limits.Add(l.Name, load, bound, terminal.Figure(100*l.Share)+" %", l.Remedy)
	}
	limits.Print()
	if len(n.Mappings) > 0 {
		a.Printf("\nnats-server, in the account of the clients:\n\n%s", capacity.FormatMappings(n.Mappings))
	}
}

func formatCores(n float64) string { return terminal.Figure(n) + " cores" }

func formatSplit(c capacity.Cores) string {
	return fmt.Sprintf("%s work, at most %s wake-ups", terminal.Figure(c.Work), terminal.Figure(c.Wakes))
}

func formatInUnit(n float64, unit string) string {
	switch unit {
	case "bytes":
		return formatBytes(n)
	case "cores":
		return formatCores(n)
	}
	return formatCount(n) + " " + unit
}

// formatBytes formats a number of bytes with decimal units. The number may exceed the range of an int.
func formatBytes(n float64) string { return humanize.SIWithDigits(n, 1, "B") }

// formatCount formats a number with commas. The number may exceed the range of an int.
func formatCount(n float64) string { return humanize.CommafWithDigits(n, 0) }
