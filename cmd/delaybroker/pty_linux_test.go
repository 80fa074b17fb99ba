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
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"delaybroker/broker/inspect"
	"delaybroker/broker/streams"
	"delaybroker/cmd/delaybroker/terminal"
	"delaybroker/test/natstest"
)

// A screen is a pseudo-terminal of a given size, with the output that was written to it.
type screen struct {
	tty    *os.File // the program's side of the terminal
	master *os.File // the person's side

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
	x := &screen{tty: tty, master: master}
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

// typeText types on the terminal.
func (x *screen) typeText(t *testing.T, text string) {
	t.Helper()
	_, err := x.master.WriteString(text)
	natstest.NoError(t, err)
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
// delay determine the stream's name. The total below is not in capitals.
func TestLevelsShowWholeOwner(t *testing.T) {
	x := openScreen(t, 80, 24)
	a := &app{Printer: terminal.Printer{Out: x.tty, Err: x.tty}}
	lane := inspect.Lane{Owner: inspect.OwnerWaits, Instance: "vm-6a5276"}
	lane.Kind, lane.Level, lane.State = streams.Level, "30m", inspect.Retiring
	lane.Stream = "DELAY_LEVEL_OF_THIRTY_MINUTES"
	a.showLevels(inspect.Lanes{Lanes: []inspect.Lane{lane}}, levelsOptions{all: true})
	fmt.Fprint(x.tty, "(end)")
	x.await(t, "(end)")
	wantFit(t, 80, x.text())
	if shown := x.text(); !strings.Contains(shown, " later: vm-6a5276 ") || strings.Contains(shown, "STREAM") ||
		!strings.Contains(shown, "\ntotal: 0 messages pending, overdue: -, 0 lanes unread, 0 dead letters\n") {
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

// On a terminal, a change that cannot be undone shows its count and asks. Without yes as the answer, it changes
// nothing.
func TestFinalChangesAsk(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	for n := range 3 {
		_, err := o.js.PublishMsg(t.Context(), newDeadLetter(n+1, "expired", "orders.a", "too late"))
		natstest.NoError(t, err)
	}
	remove := func(answer string, more ...string) error {
		x, in := openScreen(t, 80, 24), openScreen(t, 80, 24)
		a := &app{Printer: terminal.Printer{Out: x.tty, Err: x.tty}}
		root := a.rootCommand()
		root.SetArgs(append([]string{"dead", "rm", "--all"}, more...))
		root.SetIn(in.tty)
		in.typeText(t, answer+"\n")
		err := a.execute(t.Context(), root)
		if len(more) == 0 {
			x.await(t, "remove 3 dead letters? This cannot be undone [y/N]")
		}
		return err
	}
	for _, answer := range []string{"n", ""} {
		if err := remove(answer); exitCode(err) != 1 || o.messageCount("DELAY_DEAD") != 3 {
			t.Errorf("after the answer %q: got %v, and %d letters", answer, err, o.messageCount("DELAY_DEAD"))
		}
	}
	if err := remove("y"); err != nil || o.messageCount("DELAY_DEAD") != 0 {
		t.Errorf("after yes: got %v, and %d letters", err, o.messageCount("DELAY_DEAD"))
	}
	_, err := o.js.PublishMsg(t.Context(), newDeadLetter(4, "expired", "orders.a", "too late"))
	natstest.NoError(t, err)
	if err := remove("n", "--yes"); err != nil || o.messageCount("DELAY_DEAD") != 0 {
		t.Errorf("with --yes: got %v, and %d letters", err, o.messageCount("DELAY_DEAD"))
	}
}

// On a terminal, pub asks before it publishes a message for the past.
func TestPubInThePastAsks(t *testing.T) {
	o := newTestServer(t, server.Options{})
	o.must("provision")
	for answer, want := range map[string]uint64{"n": 0, "y": 1} {
		x, in := openScreen(t, 80, 24), openScreen(t, 80, 24)
		a := &app{Printer: terminal.Printer{Out: x.tty, Err: x.tty}}
		root := a.rootCommand()
		root.SetArgs([]string{"pub", "orders." + answer, "body", "--at", "2020-01-01T00:00:00Z"})
		root.SetIn(in.tty)
		in.typeText(t, answer+"\n")
		err := a.execute(t.Context(), root)
		x.await(t, "Publish it? [y/N]")
		s, infoErr := o.js.Stream(t.Context(), "DELAY_INTAKE")
		natstest.NoError(t, infoErr)
		info, infoErr := s.Info(t.Context(), jetstream.WithSubjectFilter("*.*.orders."+answer))
		natstest.NoError(t, infoErr)
		if got := uint64(len(info.State.Subjects)); got != want || (err == nil) != (want == 1) {
			t.Errorf("after %q: got %v and %d messages, want %d", answer, err, got, want)
		}
	}
}
