package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"

	"delaybroker/broker/bench"
	"delaybroker/broker/inspect"
	"delaybroker/broker/streams"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/test/natstest"
)

// A screen is a pseudo-terminal of a given size, with the output that was written to it.
type screen struct {
	tty *os.File // the program's side of the terminal

	mu  sync.Mutex // guards all
	all strings.Builder
}

func openScreen(t *testing.T, width, height uint16) *screen {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	natstest.NoError(t, err)
	natstest.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	natstest.NoError(t, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	natstest.NoError(t, err)
	natstest.NoError(t, unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}))
	x := &screen{tty: tty}
	var reading sync.WaitGroup
	reading.Go(func() {
		buffer := make([]byte, 32<<10)
		for {
			n, err := master.Read(buffer)
			x.mu.Lock()
			x.all.Write(buffer[:n])
			x.mu.Unlock()
			if err != nil { // the program has closed its side
				return
			}
		}
	})
	t.Cleanup(func() {
		tty.Close()
		reading.Wait()
		master.Close()
	})
	return x
}

func (x *screen) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.ReplaceAll(x.all.String(), "\r\n", "\n")
}

// await waits until the output contains a part.
func (x *screen) await(t *testing.T, part string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q on the terminal", part), func() bool { return strings.Contains(x.text(), part) })
}

// wantFit checks that no line is wider than the terminal, since it would wrap.
func wantFit(t *testing.T, width int, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%d columns in a terminal of %d: %q", n, width, line)
		}
		if strings.Contains(line, "≈") { // the library's sign for a cut row
			t.Errorf("in a terminal of %d columns a row is cut off: %q", width, line)
		}
	}
}

// Every table fits the terminal, at all widths.
func TestTablesFitTheTerminal(t *testing.T) {
	natstest.SkipShort(t)
	if inOwnProcess(t) {
		return
	}
	t.Setenv("NO_COLOR", "1")
	o := newTestServer(t, server.Options{})
	o.must("provision")
	const target = "orders.a-target-with-quite-a-long-name.for-some-reason"
	for n := range 3 {
		o.storeRefused(uint64(n), "30s", target, strings.Repeat("the reason why ", 20))
		o.publish("delay.5s."+target, "")
		letter := newDeadLetter(n+1, "undelivered", target, strings.Repeat("the reason why ", 20))
		if _, err := o.js.PublishMsg(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
	}
	o.must("pub", target, "body", "--in", "1h", "--key", "a-timer-with-quite-a-long-name-for-some-reason")
	o.must("schedules", "add", "a-schedule-with-quite-a-long-name", "--cron", "0 3 * * *", "--tz", "Europe/Berlin",
		"--target", target)
	for _, width := range []int{50, 80, 120} {
		for _, args := range [][]string{
			{"levels"},
			{"levels", "--all"},
			{"doctor"},
			{"dead", "ls"},
			{"dead", "ls", "--by", "code,target,reason"},
			{"dead", "show", "1"},
			{"retrying"},
			{"ahead"},
			{"pending", "ls"},
			{"timers", "ls"},
			{"timers", "ls", "--state", "all"},
			{"schedules", "ls"},
			{"schedules", "next", "a-schedule-with-quite-a-long-name"},
			{"schedules", "show", "a-schedule-with-quite-a-long-name"},
			{"dead", "resend", "--all", "--dry-run"},
			{"ahead", "--most", "0", "--by", "minute"},
			{"provision"},
		} {
			x := openScreen(t, uint16(width), 24)
			if err := run(t.Context(), args, x.tty, io.Discard); err != nil && exitCode(err) == 2 && args[0] != "doctor" {
				t.Fatalf("%q: %v", args, err)
			}
			fmt.Fprint(x.tty, "(end)")
			x.await(t, "(end)") // all output has arrived
			wantFit(t, width, x.text())
			if lines := strings.Count(x.text(), "\n"); args[0] == "levels" && lines < 6 {
				t.Errorf("%q at %d: got %d lines:\n%s", args, width, lines, x.text())
			}
		}
	}
}

// In 80 columns, levels shows the owner of a lane completely. It leaves out the column of the stream, since lane and
// delay determine the stream's name.
func TestLevelsShowWholeOwner(t *testing.T) {
	x := openScreen(t, 80, 24)
	a := &app{Printer: terminal.Printer{Out: x.tty, Err: x.tty}}
	lane := inspect.Lane{Reader: inspect.Reader{Owner: inspect.OwnerWaits, Instance: "vm-6a5276"}}
	lane.Kind, lane.Level, lane.State = streams.Level, "30m", inspect.Retiring
	lane.Stream = "DELAY_LEVEL_OF_THIRTY_MINUTES"
	a.showLevels(inspect.Lanes{Lanes: []inspect.Lane{lane}}, levelsOptions{all: true})
	fmt.Fprint(x.tty, "(end)")
	x.await(t, "(end)")
	wantFit(t, 80, x.text())
	if shown := x.text(); !strings.Contains(shown, " later: vm-6a5276 ") || strings.Contains(shown, "STREAM") {
		t.Errorf("got\n%s", shown)
	}
}

// --watch restores the terminal at its end, and shows no more lines than fit.
func TestWatchRestoresTheTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	o := newTestServer(t, server.Options{})
	t.Setenv("DELAY_LEVELS", "default")
	o.must("provision")
	x := openScreen(t, 80, 24)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"levels", "--watch", "50ms"}, x.tty, io.Discard) }()
	x.await(t, "OUT/S")
	x.await(t, "more lanes not shown, for lack of room")
	self, err := os.FindProcess(os.Getpid())
	natstest.NoError(t, err)
	natstest.NoError(t, self.Signal(os.Interrupt))
	if err := <-ended; err != nil {
		t.Errorf("after SIGINT: got %v, want nil", err)
	}
	x.await(t, "\x1b[?25h\x1b[?1049l")
	text := x.text()
	if !strings.HasPrefix(text, "\x1b[?1049h") || !strings.HasSuffix(text, "\x1b[?1049l") {
		t.Errorf("got %q…, want all output on the alternate screen", text[:40])
	}
	for frame := range strings.SplitSeq(text, "\x1b[H\x1b[2J") {
		if lines := strings.Count(frame, "\n"); lines >= 24 {
			t.Errorf("got %d lines on 24:\n%s", lines, frame)
		}
	}
}

// The progress of bench is one line, even in a narrow terminal, and so is each row of its table.
func TestBenchFitsTheTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	report := &bench.Report{
		Plan: bench.Plan{Scenario: bench.Burst, Rounds: 2},
		Results: []bench.Result{
			{Side: bench.Broker, Late: &bench.Spread{Max: 1e6}, Acks: &bench.Spread{}, Cost: &bench.Cost{Server: 1, Sidecar: 2}},
			{Side: bench.Scheduler, Unsupported: "not supported"},
		},
		Ratios: []bench.Ratio{{Side: bench.Scheduler, Metric: "p99 ms", Base: 1e6, Highest: 1e6}},
	}
	for _, width := range []int{50, 80, 120} {
		x := openScreen(t, uint16(width), 24)
		a := &app{Printer: terminal.Printer{Out: x.tty, Err: x.tty}}
		l := &benchLine{app: a, rounds: 100}
		l.show(bench.Progress{
			Side: bench.Scheduler, Round: 100, Activity: "waiting for the last", Accepted: 1e6, Arrived: 5e5, Count: 1e6,
		})
		l.clear()
		fmt.Fprintln(x.tty)
		natstest.NoError(t, a.showReport(nil, report, true))
		fmt.Fprint(x.tty, "(end)")
		x.await(t, "(end)")
		drawn := strings.Split(x.text(), "\x1b[K")
		if len(drawn) != 3 || !strings.HasPrefix(drawn[1], "scheduler 100 of 100: waiting for") {
			t.Errorf("got %q, want one line, removed at the end", drawn)
		}
		wantFit(t, width, drawn[1])
		_, table, _ := strings.Cut(drawn[2], "\n\n") // after the description of the scenario, which wraps
		wantFit(t, width, table)
		for _, want := range []string{"p50 ms", "lost", "early", "ratio", "scheduler: not supported"} {
			if !strings.Contains(strings.ToLower(table), want) {
				t.Errorf("in a terminal of %d columns: got no %q in\n%s", width, want, table)
			}
		}
	}
}
