package main

import (
	"fmt"
	"strings"

	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

// showBody prints a body below a table: text unchanged, other bytes as a hex dump. It shortens a large body.
func (a *app) showBody(data []byte) {
	v := text.RenderBody(data, text.MaxBody)
	rendered := v.Text
	if rendered == "" {
		rendered = v.Hex
	}
	summary := terminal.Counted(v.Size, "byte")
	if v.Truncated() {
		length := v.Dumped
		if v.Text != "" {
			length = v.Shown
		}
		summary += fmt.Sprintf(", of which the first %d are shown; --json prints all", length)
	}
	if rendered != "" && !strings.HasSuffix(rendered, "\n") {
		rendered += "\n"
	}
	a.Printf("\nbody, %s\n%s", summary, rendered)
}
