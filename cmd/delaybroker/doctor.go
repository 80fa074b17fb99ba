package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"delaybroker/broker/doctor"
	"delaybroker/broker/operation"
	"delaybroker/broker/text"
	"delaybroker/broker/web"
	"delaybroker/cmd/delaybroker/settings"
	"delaybroker/cmd/delaybroker/terminal"
)

var (
	// errWarnings is returned by doctor when there are warnings, which were already printed.
	errWarnings = errors.New("doctor has warnings")
	// errCritical is returned by doctor when messages are or will be late, refused or lost. The findings were already
	// printed.
	errCritical = errors.New("doctor has a critical finding")
)

func (a *app) doctorCommand() *cobra.Command {
	var skip []string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find causes of late or lost messages",
		Long: `Check the connection, permissions, JetStream and its limits, streams, clocks, durability and memory, and change
nothing. Run the command on the broker's host, with the broker's settings and users: it checks the permissions of the
users with which it connects.

exit codes: 0 no problem, 1 warnings, 2 a critical finding, or bad arguments or settings`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := withInterrupt(cmd.Context())
			defer stop()
			return a.doctor(ctx, skip)
		},
	}
	names := operation.List(&skip, "skip", "checks to leave out, by the names in the first column",
		operation.OneOf(doctor.CheckNames()))
	names.Choices = doctor.CheckNames()
	addParams(c, names)
	return c
}

func (a *app) doctor(ctx context.Context, skip []string) error {
	f, err := a.gather(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	findings := f.Findings(skip...)
	state := doctor.Fine
	for _, f := range findings {
		state = max(state, f.Severity)
	}
	if !a.AsJSON(struct {
		State    doctor.Severity  `json:"state"`
		Findings []doctor.Finding `json:"findings"`
	}{state, findings}) {
		a.printFindings(findings)
	}
	switch state {
	case doctor.Critical:
		return reportedError{errCritical}
	case doctor.Warn:
		return reportedError{errWarnings}
	}
	return nil
}

// gather collects the facts for doctor. A failure to connect is a finding, and not an error.
func (a *app) gather(ctx context.Context) (doctor.Facts, error) {
	cfg, err := settings.Read()
	if err != nil {
		return doctor.Facts{}, err
	}
	build := readBuild()
	host := cfg.Host(build.name())
	host.Client, host.Probe = orUnknown(build.natsGo), web.ProbeBroker(ctx, cfg.ProbeURL())
	for _, u := range settings.Unknown() {
		host.UnknownSettings = append(host.UnknownSettings, u.String())
	}
	i, err := a.open(ctx, cfg)
	if err != nil {
		return doctor.Facts{Config: cfg.Broker, Host: host, ConnectErr: err}, nil
	}
	defer i.Close()
	return doctor.Gather(ctx, i, host, cfg.LinksWithContext()), nil
}

const (
	maxFindingWidth = 100 // columns; longer lines are hard to read
	minFindingText  = 20  // minimum columns of a detail, even in a narrow terminal
)

// printFindings prints each finding as a paragraph beside its check and its state, with the advice below. A detail has
// hundreds of characters, so it is broken into lines that fit the terminal. Without a terminal, the lines fit 80
// columns, because people read the findings in mails and pagers.
func (a *app) printFindings(findings []doctor.Finding) {
	names, states := len("check"), len("state")
	for _, f := range findings {
		names, states = max(names, len(f.Check)), max(states, len(f.Severity.String()))
	}
	const gap = 2
	indent := names + states + 2*gap
	width, _, ok := terminal.Size(a.Out)
	if !ok {
		width = terminal.DefaultWidth
	}
	room := max(minFindingText, min(width, maxFindingWidth)-indent)
	paragraph := func(name, state, long string) {
		head := fmt.Sprintf("%-*s  %-*s  ", names, name, states, state)
		for line := range strings.SplitSeq(pretty.WrapSoft(text.Printable(long, terminal.MaxCell), room), "\n") {
			a.Printf("%s\n", strings.TrimRight(head+line, " "))
			head = strings.Repeat(" ", indent)
		}
	}
	paragraph("CHECK", "STATE", "DETAIL")
	for _, f := range findings {
		paragraph(f.Check, f.Severity.String(), f.Detail)
		if f.Advice != "" {
			paragraph("", "do", f.Advice)
		}
	}
}
