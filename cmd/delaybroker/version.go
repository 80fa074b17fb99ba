package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime/debug"
)

// build is what the linker wrote into the binary. Empty fields are unknown, as in test binaries.
type build struct {
	version    string // of this module: a tag, or a pseudo-version of the commit
	revision   string // commit, with "+changes" when the working tree had some
	natsServer string // the embedded server
	natsGo     string // the client library
	goVersion  string
}

func readBuild() build {
	var b build
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.version, b.goVersion = info.Main.Version, info.GoVersion
	var changes string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	if b.revision != "" {
		b.revision += changes
	}
	for _, module := range info.Deps {
		switch module.Path {
		case "github.com/nats-io/nats-server/v2":
			b.natsServer = module.Version
		case "github.com/nats-io/nats.go":
			b.natsGo = module.Version
		}
	}
	return b
}

// name is the version as connections and logs show it.
func (b build) name() string { return orUnknown(b.version) }

func orUnknown(s string) string { return cmp.Or(s, "unknown") }

func version(_ context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: version takes no arguments, got %q", errUsage, args)
	}
	b := readBuild()
	_, err := fmt.Fprintf(stdout, "delaybroker %s\nrevision    %s\nnats-server %s\nnats.go     %s\ngo          %s\n",
		b.name(), orUnknown(b.revision), orUnknown(b.natsServer), orUnknown(b.natsGo), orUnknown(b.goVersion))
	return err
}
