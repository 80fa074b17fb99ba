//go:build linux

package fault

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeListsAll finds every fault, scenario, mutant and flag in the README's tables, and no others.
func TestReadmeListsAll(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range allFaults {
		all = append(all, f.name)
	}
	for _, s := range scenarios() {
		all = append(all, s.name)
	}
	told := regexp.MustCompile("(?m)^\\| `([^`-][^`]*)` \\|").FindAllStringSubmatch(string(text), -1)
	for _, name := range told {
		if i := slices.Index(all, name[1]); i >= 0 {
			all = slices.Delete(all, i, i+1)
		} else {
			t.Errorf("the README lists %q twice, or it does not exist", name[1])
		}
	}
	for _, name := range all {
		t.Errorf("the README does not list %q", name)
	}
	_, broken, _ := strings.Cut(string(text), "\n## Brokers broken on purpose\n")
	broken, _, _ = strings.Cut(broken, "\n## ")
	if strings.Count(broken, "\n| ") != len(mutants)+1 { // the header is a row, too
		t.Errorf("the README does not list the %d mutants", len(mutants))
	}
	flag.VisitAll(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, "fault.") && !strings.Contains(string(text), "\n| `-"+f.Name) {
			t.Errorf("the README does not explain -%s", f.Name)
		}
	})
}
