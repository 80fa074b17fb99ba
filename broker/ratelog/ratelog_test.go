package ratelog

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimit: an event is allowed once in an interval, exact to the nanosecond. Allow returns the number of events that
// were suppressed before.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limit
		for _, step := range []struct {
			wait time.Duration
			want string
		}{
			{0, "0 true"}, {0, "0 false"}, {Interval - 1, "0 false"}, {1, "2 true"}, {Interval - 1, "0 false"},
			{time.Hour, "1 true"},
		} {
			time.Sleep(step.wait)
			suppressed, ok := l.Allow(Interval)
			if got := fmt.Sprint(suppressed, ok); got != step.want {
				t.Errorf("after %s: got %s, want %s", step.wait, got, step.want)
			}
		}
		if !l.Reset() {
			t.Error("Reset reports that no event was allowed")
		}
		if l.Reset() {
			t.Error("the second Reset reports an event that was allowed before the first")
		}
		if suppressed, ok := l.Allow(Interval); suppressed != 0 || !ok {
			t.Errorf("after Reset: got %d, %v, want 0, true", suppressed, ok)
		}
	})
}

// TestLoggerSeparatesMessages: each message has its own interval. A line has the attribute "more" only if lines were
// suppressed before it.
func TestLoggerSeparatesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		drop := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		l := New(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: drop})))
		for range 3 {
			l.Log(slog.LevelWarn, "full", "lane", "A")
			l.Log(slog.LevelError, "gone")
		}
		time.Sleep(Interval)
		l.Log(slog.LevelWarn, "full", "lane", "B")
		l.Log(slog.LevelWarn, "full", "lane", "C")
		l.Reset("full")
		l.Log(slog.LevelWarn, "full", "lane", "D")
		want := "level=WARN msg=full lane=A\n" +
			"level=ERROR msg=gone\n" +
			"level=WARN msg=full lane=B more=2\n" +
			"level=WARN msg=full lane=D\n"
		if got := out.String(); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// TestLoggerOfManyGoroutines: of concurrent calls, exactly one logs its line.
func TestLoggerOfManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(slog.New(slog.NewTextHandler(&out, nil)))
		var logging sync.WaitGroup
		for range 100 {
			logging.Go(func() { l.Log(slog.LevelWarn, "full") })
		}
		logging.Wait()
		time.Sleep(Interval)
		l.Log(slog.LevelWarn, "full")
		if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "more=99") {
			t.Errorf("got\n%swant two lines, the second with more=99", got)
		}
	})
}
