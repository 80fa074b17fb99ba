package house

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"delaybroker/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// root is the directory of the module.
const root = "../.."

// readTree returns the contents of the module's files with these endings, by path. It skips hidden directories, npm
// packages, and the data of a broker.
func readTree(t *testing.T, endings ...string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "delay-data") {
				return filepath.SkipDir
			}
			return nil
		}
		for _, ending := range endings {
			if strings.HasSuffix(name, ending) {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				from, err := filepath.Rel(root, path)
				files[from] = string(text)
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// documents returns the contents of all Markdown files, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := readTree(t, ".md")
	for _, want := range []string{
		"README.md", "broker/message/PROTOCOL.md", "cmd/delaybroker/OPERATIONS.md",
		"cmd/delaybroker/GUIDE.md", "cmd/delaybroker/REFERENCE.md", "cmd/delaybroker/COOKBOOK.md", "test/README.md",
		"test/deploy/README.md",
		"test/fault/README.md", "test/permissions/README.md", "test/rivals/README.md",
	} {
		if docs[want] == "" {
			t.Errorf("there is no %s", want)
		}
	}
	return docs
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	span    = regexp.MustCompile("`([^`\n]+)`")
)

// anchors returns the URL fragments that GitHub gives to a document's headings.
func anchors(text string) map[string]bool {
	all := make(map[string]bool)
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, h[1])] = true
	}
	return all
}

// TestDocumentLinks: each link in a document leads to an existing file and, with an anchor, to an existing heading.
func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	for doc, text := range docs {
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			to, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(to, "://") {
				if doc != "test/rivals/README.md" { // which names the sources of other systems' figures
					t.Errorf("%s: %s leads out of the repository, where no test can check it", doc, l[1])
				}
				continue
			}
			path := doc
			if to != "" {
				path = filepath.Join(filepath.Dir(doc), to)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: a link to %s, and there is no such file", doc, l[1])
				continue
			}
			if anchor != "" && !anchors(docs[path])[anchor] {
				t.Errorf("%s: a link to %s, and %s has no such heading", doc, l[1], path)
			}
		}
	}
}

// TestDocumentedNamesExist: the files, tests and command-line flags of tests that a document names exist. A file name
// is relative to the document or to the root.
func TestDocumentedNamesExist(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, text := range readTree(t, "_test.go") {
		source.WriteString(text)
	}
	file := regexp.MustCompile(`^[\w./-]+\.(go|md|yaml|json|conf|service|mjs|py|rs|sh)$`)
	folder := regexp.MustCompile(`(?:\./|\b)(?:broker|cmd|levels|test|wheel)/[\w./-]*\w`)
	named := regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz|Example)[A-Z]\w*`)
	chosen := regexp.MustCompile(`-(run|bench)\s+(\w+)`) // a prefix of a name is enough
	flag := regexp.MustCompile(`-((?:fault|memory)\.\w+)`)
	for doc, text := range documents(t) {
		exists := func(name string) bool {
			for _, from := range []string{filepath.Dir(doc), "."} {
				if _, err := os.Stat(filepath.Join(root, from, name)); err == nil {
					return true
				}
			}
			return false
		}
		for _, s := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if file.MatchString(s[1]) && !exists(s[1]) {
				t.Errorf("%s names the file %s, and there is none", doc, s[1])
			}
		}
		for _, name := range folder.FindAllString(link.ReplaceAllString(text, ""), -1) {
			if !exists(name) {
				t.Errorf("%s names %s, and there is no such file", doc, name)
			}
		}
		for _, c := range chosen.FindAllStringSubmatch(text, -1) {
			function := "\nfunc " + c[2]
			if c[1] == "bench" {
				function = "\nfunc Benchmark" + c[2]
			}
			if !strings.Contains(source.String(), function) {
				t.Errorf("%s: %s chooses nothing", doc, c[0])
			}
		}
		for _, f := range flag.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(source.String(), strconv.Quote(f[1])) {
				t.Errorf("%s: there is no flag %s", doc, f[0])
			}
		}
		for _, name := range named.FindAllString(chosen.ReplaceAllString(text, ""), -1) {
			if !strings.Contains(source.String(), "\nfunc "+name+"(") {
				t.Errorf("%s names %s, and there is no such function", doc, name)
			}
		}
	}
}

// maxColumns is the maximum width of a line of Go. Each character counts as one column, also a tab.
const maxColumns = 120

// unbreakable matches lines that may be wider, because they cannot be broken: struct tags, URLs, and diagrams.
var unbreakable = regexp.MustCompile("`[a-z_]+:\"" + `|https?://|^\s*//.*[\x{2500}-\x{257f}]`)

// TestLinesFit: no line is too wide for two files side by side, as in a review.
func TestLinesFit(t *testing.T) {
	t.Parallel()
	files := readTree(t, ".go")
	if len(files) < 100 {
		t.Errorf("got %d files, want all of the module", len(files))
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		number := 0
		for line := range strings.Lines(files[path]) {
			number++
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > maxColumns && !unbreakable.MatchString(line) {
				t.Errorf("%s:%d has %d columns, want %d at most", path, number, n, maxColumns)
			}
		}
	}
}

var (
	// bubble matches the beginning of a bubble. Some packages have a function parallel, which begins one.
	bubble = regexp.MustCompile(`(natstest|harness)\.(Bubble|Subtest)|synctest\.Test\(|\bparallel\(t, `)
	// pooled matches the calls that take a timer out of nats.go's pool.
	pooled = regexp.MustCompile(`\.(Flush\(\)|FlushTimeout\(|Request\(|RequestMsg\(|NextMsg\()`)
)

// TestNoPooledTimersInBubbles: no test with a bubble calls a function that takes a timer out of nats.go's pool. If two
// bubbles run at the same time, a bubble that gets the timer of the other one panics. See natstest.Flush.
func TestNoPooledTimersInBubbles(t *testing.T) {
	t.Parallel()
	looked := 0
	for path, text := range readTree(t, ".go") {
		inHarness := strings.HasPrefix(path, "test/harness/")
		if !inHarness && !bubble.MatchString(text) {
			continue
		}
		looked++
		text = strings.ReplaceAll(text, "natstest.Request(", "")
		for _, call := range pooled.FindAllString(text, -1) {
			t.Errorf("%s calls %s, which takes a timer out of nats.go's pool", path, call)
		}
	}
	if looked < 50 {
		t.Errorf("%d files have bubbles, want at least 50", looked)
	}
}
