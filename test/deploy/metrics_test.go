package deploy

import (
	"encoding/json"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"delaybroker/broker"
	"delaybroker/broker/link"
	"delaybroker/broker/message"
	"delaybroker/broker/stats"
	"delaybroker/broker/stats/metrics"
	"delaybroker/broker/streams"
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

// TestAlerts parses every rule, and checks that a broker exports the metrics and labels in it.
func TestAlerts(t *testing.T) {
	t.Parallel()
	shown := shownMetrics(t)
	var r rules
	decode(t, "alerts.yaml", &r)
	seen, operations := make(map[string]bool), read(t, "../../cmd/delaybroker/OPERATIONS.md")
	for _, g := range r.Groups {
		for _, a := range g.Rules {
			if a.Alert == "" || seen[a.Alert] {
				t.Errorf("%q is not a name of its own", a.Alert)
			}
			seen[a.Alert] = true
			if !strings.Contains(operations, "`"+a.Alert+"`") {
				t.Errorf("OPERATIONS.md does not say what to do when %s fires", a.Alert)
			}
			if s := a.Labels.Severity; s != "critical" && s != "warning" {
				t.Errorf("%s: severity %q, want critical or warning", a.Alert, s)
			}
			if a.Annotations.Summary == "" || a.Annotations.Description == "" {
				t.Errorf("%s says too little", a.Alert)
			}
			result := checkExpr(t, a.Alert, a.Expr, shown)
			// The text may only use labels that the result of the expression has.
			text := a.Annotations.Summary + a.Annotations.Description
			for _, l := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				if result != nil && !slices.Contains(result, l[1]) {
					t.Errorf("%s speaks of the label %s, and its result has %v", a.Alert, l[1], result)
				}
			}
			checkCommand(t, a.Alert, a.Annotations.Command)
		}
	}
	if len(seen) == 0 {
		t.Error("there are no alerts")
	}
}

// TestDashboard does the same for the queries of the dashboard.
func TestDashboard(t *testing.T) {
	t.Parallel()
	shown := shownMetrics(t)
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || len(d.Panels) == 0 {
		t.Errorf("title %q, uid %q, %d panels", d.Title, d.UID, len(d.Panels))
	}
	variables := make(map[string]bool)
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			asked := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Query)
			if asked == nil {
				t.Errorf("variable %s: %q is no question for values", v.Name, v.Query)
				continue
			}
			checkExpr(t, "variable "+v.Name, grafana(t, asked[1], variables), shown)
		}
		variables[v.Name] = true
	}
	used := make(map[string]bool)
	taken := make(map[[2]int]string)
	for _, p := range d.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q says or asks too little", p.ID, p.Title)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q is wider than the page", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" && other != p.Title {
					t.Fatalf("panel %q lies over %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			result := checkExpr(t, p.Title, grafana(t, target.Expr, variables), shown)
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if result != nil && !slices.Contains(result, l[1]) {
					t.Errorf("panel %q names the label %s in its legend, and its result has %v", p.Title, l[1], result)
				}
			}
			for _, name := range regexp.MustCompile(`delaybroker_\w+`).FindAllString(target.Expr, -1) {
				used[family(name, shown)] = true
			}
		}
	}
	for name := range shown {
		if known := []string{"delaybroker_early_checks_total",
			"delaybroker_lane_stream_max_bytes"}; strings.HasPrefix(name, "delaybroker_") && !used[name] &&
			!slices.Contains(known, name) {
			t.Errorf("nothing on the dashboard shows %s", name)
		}
	}
}

// TestMetricsThatAreTold checks that every metric named in the documents, or in comments of the files, exists.
func TestMetricsThatAreTold(t *testing.T) {
	t.Parallel()
	shown := shownMetrics(t)
	name := regexp.MustCompile(`\bdelaybroker_[a-z_]*[a-z]\b`)
	for _, file := range []string{"../../README.md", "../../cmd/delaybroker/OPERATIONS.md", "README.md", "alerts.yaml",
		"dashboard.json"} {
		for _, n := range name.FindAllString(read(t, file), -1) {
			if shown[family(n, shown)] == nil {
				t.Errorf("%s speaks of %s, and there is no such metric", file, n)
			}
		}
	}
}

// TestScrapeAnnotations checks that the annotations send Prometheus to the port where the program listens.
func TestScrapeAnnotations(t *testing.T) {
	t.Parallel()
	d := workloadOf(t, "cluster")
	want := map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8422",
		"prometheus.io/path": "/metrics"}
	if got := d.Spec.Template.Metadata.Annotations; !maps.Equal(got, want) {
		t.Errorf("annotations are %v, want %v", got, want)
	}
	if port := brokerIn(t, d).Ports[0].ContainerPort; port != 8422 {
		t.Errorf("the port is %d, and 8422 is scraped", port)
	}
}

// shownMetrics are the names of all metrics, with their labels.
func shownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	traces := func() (sent, dropped uint64) { return 0, 0 }
	ready := func() bool { return true }
	registry := metrics.New(metrics.Source{Ready: ready, Traces: traces, Status: func() broker.Status {
		return broker.Status{
			Lanes: []broker.LaneStatus{{
				Stream: "DELAY_1s", Kind: "level", Ownership: stats.Ownership{Owned: true},
				Clock: stats.Clock{ClockKnown: true}, Age: stats.Age{NextDue: time.Now()}, Room: stats.Room{MaxBytes: 1},
			}},
			Links: []link.Status{{Name: "read"}},
			Counts: stats.Counts{
				Outcomes: map[string]uint64{"delivered": 1}, Dead: map[message.Code]uint64{message.BadTime: 1},
				Lateness: map[streams.Kind]stats.Histogram{streams.Level: {}},
				Rates:    []stats.RateCount{{Pattern: "shop.mail"}},
			},
		}
	}})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
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

// family is the metric to which a series belongs.
func family(series string, shown map[string][]string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(series, suffix); ok && shown[base] != nil {
			return base
		}
	}
	return series
}

// grafana replaces variables by values. Each variable must exist.
func grafana(t *testing.T, expr string, variables map[string]bool) string {
	t.Helper()
	expr = strings.ReplaceAll(expr, "$__rate_interval", "5m")
	for _, v := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(expr, -1) {
		if !variables[v[1]] {
			t.Errorf("%s uses the variable %s, which is not there", expr, v[1])
		}
	}
	return expr
}

// checkExpr parses an expression as Prometheus does, and checks that its metrics and labels exist. It returns the
// labels of the result: those of an aggregation if it names them, otherwise those of the metric.
func checkExpr(t *testing.T, where, expr string, shown map[string][]string) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %s: %v", where, expr, err)
		return nil
	}
	var result, has []string
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			of := shown[family(n.Name, shown)]
			if of == nil {
				t.Errorf("%s: there is no metric %s", where, n.Name)
			}
			has = append(has, of...)
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(of, m.Name) {
					t.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
				}
			}
		case *parser.AggregateExpr:
			result = append(result, n.Grouping...)
		}
		return nil
	})
	for _, l := range result {
		if !slices.Contains(has, l) {
			t.Errorf("%s: groups by %s, which nothing in it has", where, l)
		}
	}
	if result == nil {
		return has
	}
	return result
}

// checkCommand checks that the program has a command.
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
		t.Errorf("%s: %q is no command to begin with", where, command)
	}
}
