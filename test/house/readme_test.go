package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"delaybroker/broker/message"
	"delaybroker/levels"
	"delaybroker/test/natstest"
)

// document returns the text of a document, by its path in the module.
func document(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	natstest.NoError(t, err)
	return string(text)
}

// TestReadmeIsTrue compares lists in the documents with the code.
func TestReadmeIsTrue(t *testing.T) {
	t.Parallel()
	readme, protocol := document(t, "README.md"), document(t, "broker/message/PROTOCOL.md")
	if want := levels.Default().String(); !strings.Contains(strings.Join(strings.Fields(protocol), " "), want) {
		t.Errorf("the protocol does not list the levels %s", want)
	}
	for _, code := range message.Codes() {
		if !strings.Contains(protocol, "\n| `"+string(code)+"` |") {
			t.Errorf("the protocol does not explain the dead-letter code %s", code)
		}
	}
	for _, snippet := range []string{"publish.mjs", "publish.py", "publish.rs", "publish.sh"} {
		code := document(t, filepath.Join("test/clients/snippets", snippet))
		row := regexp.MustCompile("(?m)^\\| .* \\| `(.+)` \\| \\[.*\\]\\(test/clients/snippets/" + snippet +
			"\\)").FindStringSubmatch(readme)
		shown := func(line string) bool { return row != nil && strings.TrimSpace(line) == row[1] }
		if !slices.ContainsFunc(strings.Split(code, "\n"), shown) {
			t.Errorf("the README shows %q, which is not a line of clients/snippets/%s", row, snippet)
		}
	}
	blocks := regexp.MustCompile("(?s)```(go|js)\n(.*?)```").FindAllStringSubmatch(readme, -1)
	if len(blocks) != 2 {
		t.Errorf("the README has %d blocks of Go and JavaScript, want 2", len(blocks))
	}
	for _, block := range blocks {
		file := map[string]string{"go": "client.go", "js": "client.mjs"}[block[1]]
		for line := range strings.Lines(block[2]) {
			if !strings.Contains(document(t, "test/clients/snippets/"+file), line) {
				t.Errorf("the README shows a line that is not in clients/snippets/%s: %s", file, line)
			}
		}
	}
	for _, snippet := range []string{"timer.go", "timer.mjs", "timer.py", "timer.rs", "timer.sh"} {
		code := document(t, filepath.Join("test/clients/snippets", snippet))
		if !strings.Contains(protocol, "/"+snippet+")") || !strings.Contains(code, "delaytimer.order-42.orders.expire") {
			t.Errorf("the protocol does not show clients/snippets/%s", snippet)
		}
	}
	permissions := document(t, "test/permissions/README.md")
	for _, g := range natstest.Grants(t, "../permissions/tenants.conf", "orders") {
		if g.List == "publish" && !strings.Contains(permissions, strconv.Quote(g.Subject)) {
			t.Errorf("the permissions do not show the grant %s", g)
		}
	}
}
