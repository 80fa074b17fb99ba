package main

import (
	"cmp"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// linkedVersion and linkedRevision are set by the Dockerfile, because its build has no repository.
var linkedVersion, linkedRevision string

// build is the build information in the binary. A field is empty if it is unknown, as in test binaries.
type build struct {
	version    string // of this module: a tag, or a pseudo-version of the commit
	revision   string // commit, with "+changes" if the working tree was modified
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
	b.version, b.goVersion = cmp.Or(linkedVersion, info.Main.Version), info.GoVersion
	values := make(map[string]string)
	for _, setting := range info.Settings {
		values[setting.Key] = setting.Value
	}
	for _, module := range info.Deps {
		values[module.Path] = module.Version
	}
	if b.revision = values["vcs.revision"]; b.revision != "" && values["vcs.modified"] == "true" {
		b.revision += "+changes"
	}
	b.revision = cmp.Or(linkedRevision, b.revision)
	b.natsServer, b.natsGo = values["github.com/nats-io/nats-server/v2"], values["github.com/nats-io/nats.go"]
	return b
}

func (b build) name() string { return orUnknown(b.version) }

func orUnknown(s string) string { return cmp.Or(s, "unknown") }

func (a *app) version() {
	b := readBuild()
	fields := []struct{ name, value string }{
		{"delaybroker", b.name()}, {"revision", orUnknown(b.revision)},
		{"nats-server", orUnknown(b.natsServer)}, {"nats.go", orUnknown(b.natsGo)}, {"go", orUnknown(b.goVersion)},
	}
	object := make(map[string]string)
	for _, f := range fields {
		object[f.name] = f.value
	}
	if a.AsJSON(object) {
		return
	}
	for _, f := range fields {
		a.Printf("%-11s %s\n", f.name, f.value)
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and its main dependencies",
		Args:  noArguments,
		Run:   func(*cobra.Command, []string) { a.version() },
	}
}
