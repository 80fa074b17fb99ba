package deploy

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"delaybroker/test/natstest"
)

const (
	root       = "../.."
	noticeFile = root + "/cmd/delaybroker/NOTICE"
)

var updateNotice = flag.Bool("notice", false, "write cmd/delaybroker/NOTICE")

// TestNotice: NOTICE has the licence of each module and of each script that the program contains.
// "go test ./test/deploy -run TestNotice -notice" writes the file.
func TestNotice(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}",
		"delaybroker/cmd/delaybroker")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	natstest.NoError(t, err)
	modules := slices.Compact(slices.Sorted(strings.Lines(string(out))))
	users := make(map[string][]string) // by licence
	for _, line := range modules {
		module := strings.Fields(line)
		if len(module) < 3 { // this module
			continue
		}
		users[licence(t, module[2])] = append(users[licence(t, module[2])], module[0])
		if notice, err := os.ReadFile(filepath.Join(module[2], "NOTICE")); err == nil {
			users[string(notice)] = append(users[string(notice)], module[0]+", NOTICE")
		}
	}
	scripts, err := filepath.Glob(root + "/broker/web/page/static/*.LICENSE")
	natstest.NoError(t, err)
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		natstest.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(script), ".LICENSE") + " (JavaScript)"
		users[string(text)] = append(users[string(text)], name)
	}
	if len(modules) < 30 || len(scripts) == 0 {
		t.Fatalf("the program has %d modules and %d scripts with a licence", len(modules), len(scripts))
	}
	if got := formatNotice(users); *updateNotice {
		natstest.NoError(t, os.WriteFile(noticeFile, []byte(got), 0o644))
	} else if text, err := os.ReadFile(noticeFile); err != nil || string(text) != got {
		t.Errorf("%s is not correct (%v): run go test ./test/deploy -run TestNotice -notice", noticeFile, err)
	}
}

// licenceName matches the name of the file with a module's licence.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying)(\.\w+)?$`)

// licence returns the licence of a module.
func licence(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	natstest.NoError(t, err)
	for _, file := range files {
		if !file.IsDir() && licenceName.MatchString(file.Name()) {
			text, err := os.ReadFile(filepath.Join(dir, file.Name()))
			natstest.NoError(t, err)
			return string(text)
		}
	}
	t.Errorf("%s has no licence", dir)
	return ""
}

// formatNotice returns the licences, each with the modules that have it. It does not repeat the text of the Apache
// licence, which is the file LICENSE.
func formatNotice(users map[string][]string) string {
	apache := "See LICENSE: the Apache License, Version 2.0.\n"
	byText := make(map[string][]string)
	for text, names := range users {
		text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) + "\n"
		if strings.Contains(text, "Apache License") && strings.Contains(text, "TERMS AND CONDITIONS") {
			text = apache
		}
		byText[text] = append(byText[text], names...)
	}
	var b strings.Builder
	b.WriteString("The program delaybroker contains the modules and scripts below, under these licences.\n" +
		"The licence of golang.org/x is also that of the Go standard library.\n")
	var sections []string
	for text, names := range byText {
		slices.Sort(names)
		sections = append(sections, strings.Join(slices.Compact(names), "\n")+"\n\n"+text)
	}
	slices.Sort(sections)
	for _, section := range sections {
		fmt.Fprintf(&b, "\n%s\n\n%s", strings.Repeat("-", 79), section)
	}
	return b.String()
}

// TestRelease checks the release that .ci/run builds with release/build: the package installs into a directory, its
// unit is valid, its program knows its version, and the sums are those of the files.
func TestRelease(t *testing.T) {
	t.Parallel()
	release := natstest.Tool(t, "release")
	if out, err := exec.Command("sh", "-c", "cd "+release+" && sha256sum -c SHA256SUMS").CombinedOutput(); err != nil {
		t.Errorf("the sums: %v\n%s", err, out)
	}
	var sbom struct {
		Components []struct{ Name, Version string }
	}
	text, err := os.ReadFile(filepath.Join(release, "delaybroker-v0.0.0.sbom.json"))
	natstest.NoError(t, err)
	natstest.NoError(t, json.Unmarshal(text, &sbom))
	if len(sbom.Components) < 30 {
		t.Errorf("the SBOM has %d components", len(sbom.Components))
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("NOT RUN: there is no dpkg-deb")
	}
	dir := t.TempDir()
	deb := filepath.Join(release, "delaybroker-v0.0.0-linux-amd64.deb")
	if out, err := exec.Command("dpkg-deb", "-x", deb, dir).CombinedOutput(); err != nil {
		t.Fatalf("install: %v\n%s", err, out)
	}
	for _, file := range []string{
		"etc/delaybroker.env", "usr/share/man/man1/delaybroker.1", "usr/share/doc/delaybroker/copyright",
		"usr/share/doc/delaybroker/NOTICE", "usr/share/bash-completion/completions/delaybroker",
	} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	out, err := exec.Command(filepath.Join(dir, "usr/bin/delaybroker"), "version", "--json").Output()
	var version struct{ Delaybroker, Revision string }
	natstest.NoError(t, err)
	natstest.NoError(t, json.Unmarshal(out, &version))
	if version.Delaybroker != "v0.0.0" || len(version.Revision) < 40 {
		t.Errorf("the program has the version %+v", version)
	}
	unit := filepath.Join(dir, "usr/lib/systemd/system/delaybroker.service")
	service, err := os.ReadFile(unit)
	natstest.NoError(t, err)
	if !bytes.Contains(service, []byte("\nExecStart=/usr/bin/delaybroker serve\n")) {
		t.Errorf("the unit does not start the program of the package:\n%s", service)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("NOT RUN: there is no systemd-analyze")
	}
	// The program is not installed on this host, so the verified unit has its path in the directory.
	there := bytes.ReplaceAll(service, []byte("=/usr/bin/"), []byte("="+dir+"/usr/bin/"))
	natstest.NoError(t, os.WriteFile(unit, there, 0o600))
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", unit).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}
