package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"delaybroker/broker/text"
	"delaybroker/cmd/delaybroker/terminal"
)

// maxHeader is the maximum length of a header's name or value that is shown, in characters.
const maxHeader = 2000

// showContent prints the headers and the body of a stored message.
func (a *app) showContent(c contentView) {
	a.Printf("\nheaders\n")
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		for _, value := range c.Headers[name] {
			a.Printf("%s: %s\n", text.Printable(name, maxHeader), text.Printable(value, maxHeader))
		}
	}
	a.showBody(c.Payload)
}

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
