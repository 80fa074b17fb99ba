package harness

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// CountingLog is a slog.Handler that counts log lines by message.
type CountingLog struct {
	mu    sync.Mutex
	Count map[string]int
}

func NewCountingLog() *CountingLog { return &CountingLog{Count: make(map[string]int)} }

func (l *CountingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l *CountingLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *CountingLog) WithGroup(string) slog.Handler { return l }

func (l *CountingLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Count[r.Message]++
	return nil
}

// CountPrefix returns the number of log lines whose message begins with a prefix.
func (l *CountingLog) CountPrefix(prefix string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for msg, count := range l.Count {
		if strings.HasPrefix(msg, prefix) {
			n += count
		}
	}
	return n
}

// LineLog keeps the log lines that contain a text. The time of a line is the duration since Start.
type LineLog struct {
	part  string
	Start time.Time

	mu    sync.Mutex // guards lines
	lines []string
}

// NewLineLog returns a LineLog for the lines that contain a text.
func NewLineLog(part string) *LineLog { return &LineLog{part: part, Start: time.Now()} }

// Logger returns a logger whose lines go to the log, without their levels.
func (l *LineLog) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			a.Value = slog.StringValue(time.Since(l.Start).String())
		case slog.LevelKey:
			return slog.Attr{}
		}
		return a
	}}))
}

func (l *LineLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(line, []byte(l.part)) {
		l.lines = append(l.lines, strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

func (l *LineLog) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *LineLog) String() string { return strings.Join(l.Lines(), "\n") }

func (l *LineLog) Check(t *testing.T, want ...string) {
	t.Helper()
	if got, want := l.String(), strings.Join(want, "\n"); got != want {
		t.Errorf("the log says\n%s\nwant\n%s", got, want)
	}
}

// NoLog discards log lines.
var NoLog = slog.New(slog.DiscardHandler)
