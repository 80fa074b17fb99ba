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

// TestLimit: an event is allowed once in an interval, to the nanosecond, with the number of suppressed ones.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limit
		for _, step := range []struct {
			wait time.Duration
			want string
		}{
			{0, "0 true"}, {0, "0 false"}, {Every - 1, "0 false"}, {1, "2 true"}, {Every - 1, "0 false"}, {time.Hour, "1 true"},
		} {
			time.Sleep(step.wait)
			suppressed, ok := l.Allow(Every)
			if got := fmt.Sprint(suppressed, ok); got != step.want {
				t.Errorf("after %s: got %s, want %s", step.wait, got, step.want)
			}
		}
		if !l.Reset() {
			t.Error("reset does not tell that something was allowed")
		}
		if l.Reset() {
			t.Error("a second reset reports events from before the first")
		}
		if suppressed, ok := l.Allow(Every); suppressed != 0 || !ok {
			t.Errorf("after a reset: got %d, %v, want it allowed", suppressed, ok)
		}
	})
}

// TestLoggerTellsMessagesApart: each text has its own interval, and its line has "more" only if lines were suppressed.
func TestLoggerTellsMessagesApart(t *testing.T) {
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
		time.Sleep(Every)
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
		var saying sync.WaitGroup
		for range 100 {
			saying.Go(func() { l.Log(slog.LevelWarn, "full") })
		}
		saying.Wait()
		time.Sleep(Every)
		l.Log(slog.LevelWarn, "full")
		if got := out.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "more=99") {
			t.Errorf("got\n%swant it twice, the second time with 99 more", got)
		}
	})
}
