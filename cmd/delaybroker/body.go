package main

import (
	"fmt"
	"strings"

	"delaybroker/broker/payload"
	"delaybroker/cmd/terminal"
)

// showBody prints a body below a table: text as it is, other bytes as a hex dump. --json prints all of a large one.
func (a *app) showBody(data []byte) error {
	v := payload.Render(data, payload.MaxShown)
	text := v.Text
	if text == "" {
		text = v.Hex
	}
	shown := terminal.Counted(v.Size, "byte")
	if v.Cut() {
		first := v.Dumped
		if v.Text != "" {
			first = v.Shown
		}
		shown += fmt.Sprintf(", of which the first %d are shown; --json prints all", first)
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := fmt.Fprintf(a.Out, "\nbody, %s\n%s", shown, text)
	return err
}
