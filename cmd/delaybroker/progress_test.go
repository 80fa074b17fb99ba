package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/cmd/delaybroker/terminal"
)

// A pipe gets no progress, so the mail of a cron job has only the result.
func TestProgressIsForATerminal(t *testing.T) {
	var errs bytes.Buffer
	told := progress{app: &app{Printer: terminal.Printer{Err: &errs}}}
	synctest.Test(t, func(*testing.T) {
		for n := range uint64(5) {
			told.look(n, 10)
			time.Sleep(time.Minute)
		}
	})
	if errs.Len() > 0 {
		t.Errorf("got %q, want nothing", &errs)
	}
}
