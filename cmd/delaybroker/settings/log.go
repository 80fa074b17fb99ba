package settings

import (
	"io"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"

	"delaybroker/cmd/delaybroker/terminal"
)

// Log is the configuration of the program's log.
type Log struct {
	Level  slog.Level
	Format string // auto, text or json
}

// Logger returns a logger. In the format auto, it writes text on a terminal and JSON elsewhere.
func (l Log) Logger(w io.Writer) *slog.Logger {
	if l.Format == "json" || l.Format == "auto" && !terminal.IsTerminal(w) {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l.Level}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{
		Level:      l.Level,
		TimeFormat: "15:04:05.000",
		NoColor:    !terminal.IsTerminal(w) || os.Getenv("NO_COLOR") != "",
	}))
}
