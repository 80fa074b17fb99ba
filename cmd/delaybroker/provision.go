package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker"
	"delaybroker/broker/layout"
)

// provisionPatience is for some forty streams, each with an election on a cluster.
const provisionPatience = 2 * time.Minute

// A change is what was done to a stream.
type change struct {
	Stream string `json:"stream"`
	Did    string `json:"did"` // created or changed
	Detail string `json:"detail"`
}

// provisioned is what there was to do, and what is left for people.
type provisioned struct {
	Wanted   int          `json:"wanted"`
	Changes  []change     `json:"changes"`
	Drift    []driftFound `json:"drift"`
	Complete bool         `json:"complete"` // nothing failed
}

type driftFound struct {
	Stream string `json:"stream"`
	What   string `json:"what"`
	Fatal  bool   `json:"fatal"` // serve refuses to start
}

func (a *app) provisionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "provision",
		Short: "Create the streams that are missing, and say what is not as it should be",
		Long: `Create the streams that the settings want and that are not there, and let each listen on its subjects, as
DELAY_PROVISION=create makes serve do. Of streams that exist nothing else is changed: what differs is reported.

exit codes: 0 done, 1 failed, 2 wrong words or settings, or a stream cannot keep the promises`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.provision(ctx)
		},
	}
}

func (a *app) provision(ctx context.Context) error {
	o, err := a.operateBySettings(ctx)
	if err != nil {
		return err
	}
	defer o.close()
	ctx, cancel := o.allowed(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, provisionPatience)
	defer cancelTimeout()
	done, err := o.provision(ctx)
	done.Complete = err == nil
	if err == nil || len(done.Changes) > 0 { // what was done before a failure is done
		err = cmp.Or(err, a.showProvisioned(done))
	}
	if err != nil {
		return because(ctx, err)
	}
	for _, d := range done.Drift {
		if d.Fatal {
			return fmt.Errorf("%w: %s: %s", broker.ErrDrift, d.Stream, d.What)
		}
	}
	return nil
}

func (o *operator) provision(ctx context.Context) (provisioned, error) {
	want := o.wanted()
	done := provisioned{Wanted: len(want), Changes: []change{}, Drift: []driftFound{}}
	_, all, err := o.streams.Provisioner(o.js).Find(ctx)
	if err != nil {
		return done, err
	}
	diary := &diary{Streams: o.js, before: all}
	p := o.streams.Provisioner(diary)
	p.Create = true
	_, drift, err := p.Provision(ctx, want)
	done.Changes = append(done.Changes, diary.changes...)
	for _, d := range drift {
		done.Drift = append(done.Drift, driftFound{Stream: d.Stream, What: d.What, Fatal: d.Fatal})
	}
	return done, err
}

func (a *app) showProvisioned(p provisioned) error {
	if a.json {
		return a.printJSON(p)
	}
	if len(p.Changes) == 0 && len(p.Drift) == 0 {
		_, err := fmt.Fprintf(a.stdout, "all %d streams are there; nothing to do\n", p.Wanted)
		return err
	}
	t := a.sheet(column{name: "stream"}, column{name: "was"}, column{name: "detail", least: 12, wrap: true})
	for _, c := range p.Changes {
		t.add(c.Stream, c.Did, c.Detail)
	}
	for _, d := range p.Drift {
		did := "differs"
		if d.Fatal {
			did = "FORBIDDEN"
		}
		t.add(d.Stream, did, d.What)
	}
	t.print()
	return nil
}

// A diary writes down what provisioning does.
type diary struct {
	layout.Streams
	before  map[string]*jetstream.StreamInfo
	changes []change
}

func (d *diary) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := d.Streams.CreateStream(ctx, cfg)
	if err == nil {
		d.changes = append(d.changes, change{cfg.Name, "created", fmt.Sprintf("replicas %d, %s", cfg.Replicas, subjects(cfg.Subjects))})
	}
	return s, err
}

func (d *diary) UpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := d.Streams.UpdateStream(ctx, cfg)
	if err == nil {
		var had []string
		var detail []string
		if info := d.before[cfg.Name]; info != nil {
			had = info.Config.Subjects
			info.Config.Subjects = cfg.Subjects
			if len(cfg.Metadata) > len(info.Config.Metadata) { // not what it is: it may be a secret
				detail = append(detail, "marked for sealed messages")
			}
			info.Config.Metadata = cfg.Metadata
		}
		if gone := without(had, cfg.Subjects); len(gone) > 0 {
			detail = append(detail, "no longer "+subjects(gone))
		}
		if more := without(cfg.Subjects, had); len(more) > 0 {
			detail = append(detail, "now "+subjects(more))
		}
		d.changes = append(d.changes, change{cfg.Name, "changed", strings.Join(detail, ", ")})
	}
	return s, err
}

func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// subjects names a few.
func subjects(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, " ")
	}
	return fmt.Sprintf("%s and %d more subjects", strings.Join(all[:most-1], " "), len(all)-most+1)
}
