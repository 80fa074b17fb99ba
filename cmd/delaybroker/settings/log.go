package settings

import (
	"io"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"

	"delaybroker/cmd/delaybroker/terminal"
)

// Log is how the program logs.
type Log struct {
	Level  slog.Level
	Format string // auto, text or json
}

// Logger writes for people on a terminal and for machines elsewhere, unless the format is set.
func (l Log) Logger(w io.Writer) *slog.Logger {
	if l.Format == "json" || l.Format == "auto" && !terminal.Is(w) {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l.Level}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{
		Level:      l.Level,
		TimeFormat: "15:04:05.000",
		NoColor:    !terminal.Is(w) || os.Getenv("NO_COLOR") != "",
	}))
}
