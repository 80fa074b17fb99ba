package main

import (
	"fmt"
	"strings"

	pretty "github.com/jedib0t/go-pretty/v6/text"

	"delaybroker/broker/doctor"
	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

const (
	maxFindingWidth = 100 // columns; longer lines are hard to read
	minFindingText  = 20  // minimum columns of a detail, even in a narrow terminal
)

// printFindings prints each finding as a paragraph beside its check and its state, with the advice below. The lines fit
// the terminal, or 80 columns if there is none: details have hundreds of characters, and people read them in mails and
// pagers.
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
