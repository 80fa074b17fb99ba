package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"delaybroker/broker"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/metrics"
	"delaybroker/broker/streams"
	"delaybroker/test/natstest"
)

// rules is alerts.yaml, in the form that Prometheus reads.
type rules struct {
	Groups []struct {
		Name  string
		Rules []alert
	}
}

type alert struct {
	Alert       string
	Expr        string
	For         time.Duration
	Labels      struct{ Severity string }
	Annotations struct{ Summary, Description, Command string }
}

// dashboard is the part of dashboard.json that the tests need.
type dashboard struct {
	Title      string
	UID        string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		ID          int
		Title       string
		Description string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct {
			RefID        string
			Expr         string
			LegendFormat string
		}
	}
}

// TestAlerts checks that a broker exports the metrics and labels in every rule. In .ci/run, promtool parses the rules.
func TestAlerts(t *testing.T) {
	t.Parallel()
	exported := exportedMetrics(t)
	var r rules
	decode(t, "alerts.yaml", &r)
	seen, operations := make(map[string]bool), read(t, "../../cmd/delaybroker/OPERATIONS.md")
	for _, g := range r.Groups {
		for _, a := range g.Rules {
			if a.Alert == "" || seen[a.Alert] {
				t.Errorf("the alert name %q is empty or not unique", a.Alert)
			}
			seen[a.Alert] = true
			if !strings.Contains(operations, "`"+a.Alert+"`") {
				t.Errorf("OPERATIONS.md has no action for %s", a.Alert)
			}
			if s := a.Labels.Severity; s != "critical" && s != "warning" {
				t.Errorf("%s: severity %q, want critical or warning", a.Alert, s)
			}
			if a.Annotations.Summary == "" || a.Annotations.Description == "" {
				t.Errorf("%s has no summary or no description", a.Alert)
			}
			result := checkExpr(t, a.Alert, a.Expr, exported)
			// The text may only use labels that the result of the expression has.
			text := a.Annotations.Summary + a.Annotations.Description
			for _, l := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				if result != nil && !slices.Contains(result, l[1]) {
					t.Errorf("%s uses the label %s, and its result has %v", a.Alert, l[1], result)
				}
			}
			checkCommand(t, a.Alert, a.Annotations.Command)
		}
	}
	if len(seen) == 0 {
		t.Error("there are no alerts")
	}
}

// TestDashboard checks the queries of the dashboard as TestAlerts checks those of the alerts. Each metric but two is on
// the dashboard, and no panel covers another. If .ci/run has built promtool, it parses the queries.
func TestDashboard(t *testing.T) {
	t.Parallel()
	exported := exportedMetrics(t)
	var d dashboard
	natstest.NoError(t, json.Unmarshal([]byte(read(t, "dashboard.json")), &d))
	if d.Title == "" || d.UID == "" || len(d.Panels) == 0 {
		t.Errorf("title %q, uid %q, %d panels", d.Title, d.UID, len(d.Panels))
	}
	variables := make(map[string]bool)
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			query := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Query)
			if query == nil {
				t.Errorf("variable %s: got the query %q, want label_values(…)", v.Name, v.Query)
				continue
			}
			checkExpr(t, "variable "+v.Name, replaceVariables(t, query[1], variables), exported)
		}
		variables[v.Name] = true
	}
	var exprs []string
	used := make(map[string]bool)
	taken := make(map[[2]int]string)
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q has no title, description or query", p.ID, p.Title)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q extends beyond the right edge of the page", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" && other != p.Title {
					t.Fatalf("panel %q covers %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			expr := replaceVariables(t, target.Expr, variables)
			exprs = append(exprs, expr)
			result := checkExpr(t, p.Title, expr, exported)
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if result != nil && !slices.Contains(result, l[1]) {
					t.Errorf("the legend of panel %q has the label %s, and the result has %v", p.Title, l[1], result)
				}
			}
			for _, name := range regexp.MustCompile(`delaybroker_\w+`).FindAllString(target.Expr, -1) {
				used[family(name, exported)] = true
			}
		}
	}
	for name := range exported {
		left := name == "delaybroker_early_checks_total" || name == "delaybroker_lane_stream_max_bytes"
		if strings.HasPrefix(name, "delaybroker_") && !used[name] && !left {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	t.Run("promtool", func(t *testing.T) { parseQueries(t, exprs) })
}

// TestDocumentedMetrics checks that every metric in the documents, and in comments of the files, exists.
func TestDocumentedMetrics(t *testing.T) {
	t.Parallel()
	exported := exportedMetrics(t)
	name := regexp.MustCompile(`\bdelaybroker_[a-z_]*[a-z]\b`)
	for _, file := range []string{"../../README.md", "../../cmd/delaybroker/OPERATIONS.md", "README.md", "alerts.yaml",
		"dashboard.json"} {
		for _, n := range name.FindAllString(read(t, file), -1) {
			if exported[family(n, exported)] == nil {
				t.Errorf("%s names %s, and there is no such metric", file, n)
			}
		}
	}
}

// TestScrapeAnnotations checks that Prometheus finds the port of the program in the annotations.
func TestScrapeAnnotations(t *testing.T) {
	t.Parallel()
	d := brokerWorkload(t, "cluster")
	want := map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8422",
		"prometheus.io/path": "/metrics"}
	if got := d.Spec.Template.Metadata.Annotations; !maps.Equal(got, want) {
		t.Errorf("annotations are %v, want %v", got, want)
	}
	if port := brokerContainer(t, d).Ports[0].ContainerPort; port != 8422 {
		t.Errorf("the port is %d, want 8422 as in the annotations", port)
	}
}

// exportedMetrics returns the labels of all metrics, by the name of the metric.
func exportedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	traces := func() (sent, dropped uint64) { return 0, 0 }
	ready := func() bool { return true }
	registry := metrics.New(metrics.Source{Ready: ready, Traces: traces, Status: func() broker.Status {
		return broker.Status{
			Lanes: []broker.LaneStatus{{
				Stream: "DELAY_1s", Kind: "level", Owned: true, ClockKnown: true, NextDue: time.Now(), MaxBytes: 1,
			}},
			Links: []link.Status{{Name: "read"}},
			Counts: stats.Counts{
				Outcomes: map[string]uint64{"delivered": 1}, DeadLetters: map[message.Code]uint64{message.BadTime: 1},
				Lateness: map[streams.Kind]stats.Histogram{streams.Level: {}},
				Rates:    []stats.RateCount{{Pattern: "shop.mail"}},
			},
		}
	}})
	families, err := registry.Gather()
	natstest.NoError(t, err)
	all := make(map[string][]string)
	for _, f := range families {
		labels := []string{"job", "instance"} // Prometheus adds these
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			labels = append(labels, "le")
		}
		all[f.GetName()] = labels
	}
	return all
}

// family returns the metric to which a series belongs.
func family(series string, exported map[string][]string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(series, suffix); ok && exported[base] != nil {
			return base
		}
	}
	return series
}

// replaceVariables replaces the interval variable of Grafana, and checks that each other variable exists.
func replaceVariables(t *testing.T, expr string, variables map[string]bool) string {
	t.Helper()
	expr = strings.ReplaceAll(expr, "$__rate_interval", "5m")
	for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(expr, -1) {
		if !variables[v[1]] {
			t.Errorf("%s uses the variable %s, which does not exist", expr, v[1])
		}
	}
	return expr
}

var (
	selector = regexp.MustCompile(`\{[^}]*\}`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
	window   = regexp.MustCompile(`\[[^]]*\]`)
	word     = regexp.MustCompile(`\b[a-z]\w*\b(?:\s*\()?`) // with a parenthesis, a function
	operator = []string{"and", "or", "unless", "bool"}
)

// checkExpr checks that the metrics and labels of an expression exist. It returns the labels of the result: those of an
// aggregation if it names them, otherwise those of the metric. It does not find wrong syntax: promtool does.
func checkExpr(t *testing.T, where, expr string, exported map[string][]string) []string {
	t.Helper()
	var result, named, has []string
	for _, m := range matcher.FindAllStringSubmatch(strings.Join(selector.FindAllString(expr, -1), " "), -1) {
		named = append(named, m[1])
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		result = append(result, regexp.MustCompile(`\w+`).FindAllString(g[1], -1)...)
	}
	for _, noise := range []*regexp.Regexp{selector, grouping, window} {
		expr = noise.ReplaceAllString(expr, "")
	}
	for _, name := range word.FindAllString(expr, -1) {
		if strings.HasSuffix(name, "(") || slices.Contains(operator, name) {
			continue
		}
		of := exported[family(name, exported)]
		if of == nil {
			t.Errorf("%s: there is no metric %s", where, name)
		}
		has = append(has, of...)
	}
	for _, l := range slices.Concat(named, result) {
		if !slices.Contains(has, l) {
			t.Errorf("%s: none of its metrics has the label %s", where, l)
		}
	}
	if result == nil {
		return has
	}
	return result
}

// parseQueries has promtool parse expressions, as rules that record them.
func parseQueries(t *testing.T, exprs []string) {
	t.Helper()
	promtool := natstest.Tool(t, "promtool")
	var rules []map[string]string
	for _, expr := range exprs {
		rules = append(rules, map[string]string{"record": "query", "expr": expr})
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	natstest.NoError(t, err)
	file := filepath.Join(t.TempDir(), "queries.yaml") // JSON is YAML
	natstest.NoError(t, os.WriteFile(file, text, 0o600))
	if out, err := exec.Command(promtool, "check", "rules", "--lint=none", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// checkCommand checks that the program has the given command. It accepts every command of nats.
func checkCommand(t *testing.T, where, command string) {
	t.Helper()
	words := strings.Fields(command)
	switch {
	case len(words) > 1 && words[0] == "nats":
	case len(words) > 1 && words[0] == "delaybroker":
		// For an unknown command, the program prints the help for all commands.
		out, err := exec.Command(buildImage(t), append(words[1:], "--help")...).CombinedOutput()
		if usage := "\n  delaybroker " + words[1]; err != nil || !strings.Contains(string(out), usage) {
			t.Errorf("%s: %s: %v, want its usage:\n%s", where, command, err, out)
		}
	default:
		t.Errorf("%s: got the command %q, want one of nats or delaybroker", where, command)
	}
}
