package promises

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"delaybroker/broker/message"
	"delaybroker/test/natstest"
	"delaybroker/test/poison"
)

// httpHeaders are headers of the server's monitoring endpoints, and not of messages.
var httpHeaders = []string{"Accept-Encoding", "Content-Encoding"}

// TestCanaryHeaders searches the source code of the server and of nats.go for names of headers. Each name must be in
// poison.Headers, and the broker may pass on no such header. A new header in a new version of NATS fails this test. If
// a maintainer adds the header to poison.Headers, the tests of reserved headers cover it.
func TestCanaryHeaders(t *testing.T) {
	natstest.SkipShort(t)
	t.Parallel()
	listed := make(map[string]bool)
	for _, line := range poison.Headers {
		name, _, _ := strings.Cut(line, ":")
		listed[name] = true
	}
	names, err := message.NewNames(message.DefaultPrefix)
	natstest.NoError(t, err)
	policy := message.Policy{Names: names}
	found := make(map[string]bool)
	for _, pkg := range []string{
		"github.com/nats-io/nats-server/v2/server", "github.com/nats-io/nats.go",
		"github.com/nats-io/nats.go/jetstream", "github.com/nats-io/nats.go/micro",
	} {
		for name, where := range headersIn(t, pkg) {
			found[name] = true
			if slices.Contains(httpHeaders, name) {
				continue
			}
			if !listed[name] {
				t.Errorf("%s: poison.Headers does not have the header %s", where, name)
			}
			r, problem := policy.Parse(message.Incoming{Stream: "DELAY_1s", Subject: "delay.1s.x",
				Header: message.Header{name: {"forged"}}})
			for kind, h := range map[string]message.Header{"hop": r.HopHeader(), "delivery": r.TargetHeader()} {
				if vs := h[name]; problem == nil && len(vs) > 0 && vs[0] == "forged" {
					t.Errorf("%s: the broker passes on the header %s to a %s", where, name, kind)
				}
			}
		}
	}
	// The sources spell these names in different ways. The search must find all of them.
	for _, name := range []string{"Nats-Rollup", "Nats-Trace-Dest", "Nats-Service-Error", "Nats-Last-Consumer",
		"Nmqtt-Pub", "KV-Operation", "Status", "Description"} {
		if !found[name] {
			t.Errorf("the search does not find %s in the sources", name)
		}
	}
}

var (
	headerFunc = regexp.MustCompile(`^(get|slice|set|gen)Header$|^removeHeaderIf|^getHeaderKeyIndex$`)
	headerName = regexp.MustCompile(`^(Nats|Nmqtt)-[A-Za-z-]*[A-Za-z]$`)
	// inBlock matches names in a literal such as "NATS/1.0\r\nNats-Stream: %s\r\n".
	inBlock = regexp.MustCompile(`(?:\r\n|^)([A-Za-z][A-Za-z-]+): ?`)
)

// headersIn returns the names of headers in the source code of a package, each with its place. It looks at the
// arguments of header functions, at strings that look like a header, at constants with names such as "xHdr", and at
// literals that are a header block.
func headersIn(t *testing.T, pkg string) map[string]string {
	t.Helper()
	set, files := parsePackage(t, pkg)
	h := headers{set: set, constants: make(map[string]string), found: make(map[string]string)}
	for _, f := range files {
		ast.Inspect(f, h.noteConstants)
	}
	for _, f := range files {
		ast.Inspect(f, h.look)
	}
	return h.found
}

// parsePackage parses the source code of a package, without its tests.
func parsePackage(t *testing.T, pkg string) (*token.FileSet, []*ast.File) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", pkg, err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has %d files: %v", pkg, len(paths), err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		natstest.NoError(t, err)
		files = append(files, f)
	}
	return set, files
}

// headers maps the names of headers in a package to their places.
type headers struct {
	set       *token.FileSet
	constants map[string]string // by name
	found     map[string]string
}

func (h headers) noteConstants(n ast.Node) bool {
	if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == len(v.Values) {
		for i, name := range v.Names {
			if s, ok := literal(v.Values[i]); ok {
				h.constants[name.Name] = s
			}
		}
	}
	return true
}

func (h headers) note(name string, at token.Pos) {
	if !strings.HasSuffix(name, "-") { // a prefix of several headers
		h.found[name] = filepath.Base(h.set.Position(at).String())
	}
}

// look records the headers in a node of the syntax tree.
func (h headers) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BasicLit:
		s, ok := literal(n)
		if ok && headerName.MatchString(s) {
			h.note(s, n.Pos())
		}
		if _, block, begins := strings.Cut(s, "NATS/1.0"); begins {
			for _, m := range inBlock.FindAllStringSubmatch(block, -1) {
				h.note(m[1], n.Pos())
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if low := strings.ToLower(name.Name); i < len(n.Values) &&
				(strings.HasSuffix(low, "hdr") || strings.HasPrefix(low, "kvop")) {
				if s, ok := literal(n.Values[i]); ok && headerLike(s) {
					h.note(s, n.Pos())
				}
			}
		}
	case *ast.CallExpr:
		if !headerFunc.MatchString(functionName(n.Fun)) {
			return true
		}
		for _, arg := range n.Args {
			s, ok := literal(arg)
			if id, named := arg.(*ast.Ident); named {
				s, ok = h.constants[id.Name]
			}
			if ok && headerLike(s) {
				h.note(s, arg.Pos())
			}
		}
	}
	return true
}

// literal returns the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// functionName returns the name of a called function, or an empty string.
func functionName(e ast.Expr) string {
	switch f := e.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// headerLike reports whether a string looks like the name of a header. The arguments of header functions are names and
// values.
func headerLike(s string) bool {
	return s != "" && 'A' <= s[0] && s[0] <= 'Z' &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}
