package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// buildFlags returns the linker flags in the Dockerfile.
func buildFlags(t *testing.T) string {
	t.Helper()
	flags := regexp.MustCompile(`-ldflags="([^"]*)"`).FindStringSubmatch(readDockerfile(t)[0].get("RUN"))
	if flags == nil {
		t.Fatal("the Dockerfile has no -ldflags")
	}
	return strings.NewReplacer("$VERSION", "v0.0.0", "$COMMIT", "c0ffee").Replace(flags[1])
}

// linkedVariables returns the values of the variables that the Dockerfile links in, by name.
func linkedVariables(t *testing.T) map[string]string {
	t.Helper()
	linked := make(map[string]string)
	for _, x := range linkFlag.FindAllStringSubmatch(buildFlags(t), -1) {
		linked[x[2]] = x[3]
	}
	return linked
}

// linkFlag matches a linker flag, with the package, the variable and the value.
var linkFlag = regexp.MustCompile(`-X (\S+)\.(\w+)=(\S*)`)

var build struct {
	once   sync.Once
	binary string
	err    error
}

// buildImage builds the program with the linker flags of the Dockerfile, once. Its other flags would compile each
// dependency again.
func buildImage(t *testing.T) string {
	t.Helper()
	flags := buildFlags(t)
	build.once.Do(func() {
		build.binary = filepath.Join(binaries, "delaybroker")
		cmd := exec.Command("go", "build", "-ldflags="+flags, "-o", build.binary, "delaybroker/cmd/delaybroker")
		if out, err := cmd.CombinedOutput(); err != nil {
			build.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if build.err != nil {
		t.Fatalf("build: %v", build.err)
	}
	return build.binary
}

// binaries is the directory of the programs that the tests build.
var binaries string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "deploy")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binaries = dir
		return m.Run()
	}())
}

// settings returns the defaults of all settings in the program of the image, by name.
func settings(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command(buildImage(t), "serve", "--help").Output()
	if err != nil {
		t.Fatalf("serve --help: %v", err)
	}
	return parseSettings(t, string(out))
}

// parseSettings parses the columns NAME and DEFAULT of the output of serve --help. The default ends where the heading
// of the third column begins.
func parseSettings(t *testing.T, help string) map[string]string {
	t.Helper()
	_, rows, ok := strings.Cut(help, "\nNAME ")
	heading, rows, _ := strings.Cut("NAME "+rows, "\n")
	from, to := strings.Index(heading, "DEFAULT"), strings.Index(heading, "MEANING")
	if !ok || from < 0 || to < 0 {
		t.Fatalf("serve --help has no table:\n%s", help)
	}
	values := make(map[string]string)
	for row := range strings.Lines(rows) {
		if len(row) > to && row[0] != ' ' {
			values[strings.TrimSpace(row[:from])] = strings.TrimSpace(row[from:to])
		}
	}
	return values
}

// defaultOutsideImage returns the default of a setting in a program that was built without the flags of the image.
func defaultOutsideImage(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "run", "delaybroker/cmd/delaybroker", "serve", "--help").Output()
	if err != nil {
		t.Fatalf("serve --help: %v", err)
	}
	return parseSettings(t, string(out))[name]
}
