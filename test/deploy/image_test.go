package deploy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"delaybroker/test/natstest"
)

// TestImage checks the Dockerfile, and the defaults that it links into the program.
func TestImage(t *testing.T) {
	t.Parallel()
	stages := readDockerfile(t)
	if len(stages) != 2 {
		t.Fatalf("the Dockerfile has %d stages, want a build stage and the image", len(stages))
	}
	build, image := stages[0], stages[1]
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "--mount=type=cache,target=/go/pkg/mod",
		"--mount=type=cache,target=/root/.cache/go-build"} {
		if !strings.Contains(build.get("RUN"), want) {
			t.Errorf("the build command has no %s", want)
		}
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(goVersion(t), "1."), ".")
	if got, want := build.get("FROM"), "golang:1."+major; !strings.Contains(got, want+" ") {
		t.Errorf("the build stage is from %q, want %s as in go.mod", got, want)
	}
	for instruction, want := range map[string]string{
		"USER":       imageUser + ":" + imageUser,
		"VOLUME":     dataDir,
		"EXPOSE":     "4222 8422",
		"ENTRYPOINT": `["/delaybroker"]`, // without a shell, which would not pass on signals
		"CMD":        `["serve"]`,
	} {
		if got := image.get(instruction); got != want {
			t.Errorf("%s is %q, want %q", instruction, got, want)
		}
	}
	if from := image.get("FROM"); !strings.HasPrefix(from, "gcr.io/distroless/static-") ||
		!strings.HasSuffix(from, ":nonroot") {
		t.Errorf("the image is from %q, want a distroless image, with certificates and without a shell", from)
	}
	if !slices.Contains(image.all("COPY"), "--from=build --chown="+imageUser+":"+imageUser+" /out/data "+dataDir) {
		t.Errorf("%s does not belong to the user, who could not write to it", dataDir)
	}
	if got, want := image.get("HEALTHCHECK"), `CMD ["/delaybroker","healthcheck"]`; !strings.HasSuffix(got, want) {
		t.Errorf("HEALTHCHECK is %q, want it to end with %s", got, want)
	}
	for _, stage := range stages {
		for _, env := range stage.all("ENV") {
			if strings.Contains(env, "DELAY_") || strings.Contains(env, "NATS_") {
				t.Errorf("ENV %s would look to the program like a setting of the user; link it into the program", env)
			}
		}
	}

	linked := linkedVariables(t)
	if dir := linked["defaultEmbeddedDir"]; dir != dataDir {
		t.Errorf("the data is in %q, want the volume %s", dir, dataDir)
	}
	for name, port := range map[string]string{"defaultHTTPAddr": "8422", "defaultEmbeddedListen": "4222"} {
		if err := checkReachable(linked[name], port); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLinkedVariablesExist: the linker does not report a variable that does not exist, so this test does.
func TestLinkedVariablesExist(t *testing.T) {
	t.Parallel()
	linked := linkFlag.FindAllStringSubmatch(buildFlags(t), -1)
	if len(linked) != 5 {
		t.Errorf("the Dockerfile sets %d variables, want version, revision and three defaults", len(linked))
	}
	for _, x := range linked {
		if pkg, name := x[1], x[2]; !declares(t, pkg, name) {
			t.Errorf("the Dockerfile sets %s.%s, and there is no such variable", pkg, name)
		}
	}
	known, values := settings(t), linkedVariables(t)
	for name, setting := range map[string]string{
		"defaultHTTPAddr": "DELAY_HTTP_ADDR", "defaultEmbeddedListen": "DELAY_EMBEDDED_LISTEN",
		"defaultEmbeddedDir": "DELAY_EMBEDDED_DIR",
	} {
		if got, want := known[setting], values[name]; got != want {
			t.Errorf("the default of %s in the image is %q, want %q", setting, got, want)
		}
	}
}

// declares reports whether a package has a variable.
func declares(t *testing.T, pkg, name string) bool {
	t.Helper()
	if pkg == "main" {
		pkg = "delaybroker/cmd/delaybroker"
	}
	files, err := filepath.Glob(filepath.Join("../..", strings.TrimPrefix(pkg, "delaybroker/"), "*.go"))
	natstest.NoError(t, err)
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		natstest.NoError(t, err)
		for _, d := range parsed.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					if n.Name == name {
						return true
					}
				}
			}
		}
	}
	return false
}

// TestHealthcheckExists runs the command that the image and the compose file use as their health check.
func TestHealthcheckExists(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(buildImage(t), "healthcheck", "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("delaybroker healthcheck --help: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--ready") {
		t.Errorf("healthcheck has no --ready:\n%s", out)
	}
}

// TestDockerignore checks that every directory with source code of the command is sent to the builder.
func TestDockerignore(t *testing.T) {
	t.Parallel()
	lines := strings.Split(read(t, "../../.dockerignore"), "\n")
	if !slices.Contains(lines, "*") {
		t.Error("the builder also gets files that .dockerignore does not name")
	}
	out, err := exec.Command("go", "list", "-deps", "delaybroker/cmd/delaybroker").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	need := map[string]bool{"go.mod": true, "go.sum": true, "LICENSE": true}
	for pkg := range strings.FieldsSeq(string(out)) {
		if rest, ours := strings.CutPrefix(pkg, "delaybroker/"); ours {
			top, _, _ := strings.Cut(rest, "/")
			need[top] = true
		}
	}
	for name := range need {
		if !slices.Contains(lines, "!"+name) {
			t.Errorf("the builder does not get %s", name)
		}
	}
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "!"); ok && !need[name] {
			t.Errorf("the builder gets %s, which it does not need", name)
		}
	}
}
