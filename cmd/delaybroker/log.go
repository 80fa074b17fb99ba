package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// newLogger writes for people on a terminal and for machines elsewhere, unless the format is set.
func newLogger(w io.Writer, c logConfig) *slog.Logger {
	if c.format == "json" || c.format == "auto" && !isTerminal(w) {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: c.level}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{
		Level:      c.level,
		TimeFormat: "15:04:05.000",
		NoColor:    !isTerminal(w) || os.Getenv("NO_COLOR") != "",
	}))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
