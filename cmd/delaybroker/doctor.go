package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"delaybroker/broker/layout"
)

var (
	// errWarnings is returned by doctor when something should be looked at, and has been printed.
	errWarnings = errors.New("doctor has warnings")
	// errCritical is returned by doctor when messages are or will be late, refused or lost, and has been printed.
	errCritical = errors.New("doctor found something critical")
)

// severity is how bad a finding is. It is the exit code too.
type severity int

const (
	fine severity = iota
	warn
	critical
)

func (s severity) String() string { return [...]string{"ok", "warn", "critical"}[s] }

// MarshalText makes it a word in JSON.
func (s severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A finding is what one check has to say.
type finding struct {
	Check  string   `json:"check"`
	State  severity `json:"state"`
	Detail string   `json:"detail"`
	Do     string   `json:"do,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	var skip []string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps messages from being on time, or from being kept",
		Long: `Check the connection, rights, JetStream and its limits, streams, clocks, durability and memory, with the settings and
the users of the broker: run it where the broker runs, or as somebody else with --skip rights. It changes nothing.

exit codes: 0 all is well, 1 warnings, 2 something is critical, or wrong words or settings`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return a.doctor(ctx, skip)
		},
	}
	c.Flags().StringSliceVar(&skip, "skip", nil, "leave out checks, by the first column: what is known and accepted, such as durability")
	completes(c, "skip", checkNames...)
	return c
}

func (a *app) doctor(ctx context.Context, skip []string) error {
	for _, name := range skip {
		if !slices.Contains(checkNames, name) {
			return fmt.Errorf("%w: --skip %q: want some of %s", errUsage, name, strings.Join(checkNames, ", "))
		}
	}
	f, err := a.gather(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	findings := slices.DeleteFunc(examine(f), func(one finding) bool { return slices.Contains(skip, one.Check) })
	worst := fine
	for _, one := range findings {
		worst = max(worst, one.State)
	}
	if err := a.showFindings(worst, findings); err != nil {
		return err
	}
	switch worst {
	case critical:
		return logged{errCritical}
	case warn:
		return logged{errWarnings}
	}
	return nil
}

func (a *app) showFindings(worst severity, findings []finding) error {
	if a.json {
		return a.printJSON(struct {
			State    severity  `json:"state"`
			Findings []finding `json:"findings"`
		}{worst, findings})
	}
	t := a.sheet(
		column{name: "check", least: 8, wrap: true}, column{name: "state"},
		column{name: "detail", least: 10, wrap: true}, column{name: "what to do", least: 10, wrap: true},
	)
	for _, one := range findings {
		t.add(one.Check, one.State.String(), one.Detail, one.Do)
	}
	t.print()
	return nil
}

// facts are what the checks judge, gathered once. What could not be found out is nil or empty, with an error beside it
// where that tells something.
type facts struct {
	cfg        config
	build      build
	memory     memory
	connectErr error

	server      string // where to, without credentials
	serverName  string
	clustered   bool
	version     string
	apiPrefix   string
	prefix      string // of our subjects
	inbox       string
	user        *userInfo  // nil when the server does not say
	apart       []linkUser // of the links that have a context of their own
	refused     []string   // what the server refused while we asked, in its words
	account     *jetstream.AccountInfo
	accountErr  error
	want, found []layout.Spec
	all         map[string]*jetstream.StreamInfo // nil when unknown
	findErr     error
	instances   instances
	view        lanesView
	clocks      []clockLook
	trial       trial
	ready       probed
}

// probed is what a broker on this host says of itself over HTTP.
type probed struct {
	url    string // empty where nobody was asked
	answer answer
	err    error
}

// failing is what the probe says of a check that is not good, or empty.
func (r probed) failing(name string) string {
	for _, c := range r.answer.Checks {
		if c.Name == name && !c.OK {
			return printable(c.Detail, 300)
		}
	}
	return ""
}

// userInfo is what the server says of our user.
type userInfo struct {
	User        string      `json:"user"`
	Account     string      `json:"account"`
	Permissions permissions `json:"permissions"`
}

// linkUser is who a link is that has a context of its own.
type linkUser struct {
	link, variable string
	inbox          string
	user           *userInfo // nil when the server does not say
	err            error     // of the connection
}

// clockLook is what a leader's clock said.
type clockLook struct {
	leader string        // empty on a single server
	offset time.Duration // of the server's clock to ours
	within time.Duration // how wrong that may be
}

// trial is what became of a publish that the server traces and does not store.
type trial struct {
	known   bool
	refusal string
}
