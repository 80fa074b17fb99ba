package page

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"delaybroker/broker/doctor"
)

// TestFindingsAreCounted: the frame for all viewers has the numbers of findings, without their texts.
func TestFindingsAreCounted(t *testing.T) {
	now := time.Now()
	found := Findings{Time: now, Findings: []doctor.Finding{
		{Check: "targets", Severity: doctor.Warn, Detail: "orders.secret"}, {Check: "lanes", Severity: doctor.Critical},
		{Check: "dead letters", Severity: doctor.Warn},
	}}
	if got, want := countsOf(found), (counts{Time: now, Critical: 1, Warnings: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTextWithoutHTML(t *testing.T) {
	p := newPage(Access{})
	w := call(p, "GET", "/", "", "Accept", "*/*")
	if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("content type: got %s", got)
	}
	for _, want := range []string{
		"delaybroker v1: ready\n", "pending          7\n", "west      older    ready, this one", errNoNATS.Error(),
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, w.Body)
		}
	}
	html := call(p, "GET", "/", "", "Accept", "text/html,application/xhtml+xml")
	if got := html.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("content type: got %s", got)
	}
	tag := html.Header().Get("ETag")
	again := call(p, "GET", "/", "", "Accept", "text/html", "If-None-Match", tag)
	if again.Code != http.StatusNotModified {
		t.Errorf("with its tag: got %d, want 304", again.Code)
	}
}

// TestAssetsAreOurs: no file contains a host, an absolute path or an inline script: the page works below any path, and
// without network access.
func TestAssetsAreOurs(t *testing.T) {
	for name, f := range embedded() {
		text := string(f.data)
		if f.kind == "" {
			t.Errorf("%s has no type", name)
		}
		if strings.HasPrefix(name, "uPlot") || strings.HasPrefix(name, "preact") {
			continue
		}
		for _, no := range []string{
			"https:" + "//", "innerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "cookie =", `href="/`,
			`src="/`, `fetch("/`, "onclick=", "style=",
		} {
			if strings.Contains(text, no) {
				t.Errorf("%s has %s", name, no)
			}
		}
		if strings.Contains(strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, ""), "http://") {
			t.Errorf("%s names a host", name)
		}
	}
	// doc.go has the versions of the vendored files. A change of a file needs a change of its version.
	for name, want := range map[string]string{
		"uPlot.iife.min.js": "19c8d4c6ad88929a", "uPlot.min.css": "df630c6a8d6f8eea", "preact.mjs": "bdcbd9abdf2c77c5",
	} {
		if sum := sha256.Sum256(embedded()[name].data); hex.EncodeToString(sum[:8]) != want {
			t.Errorf("%s is another version: %x", name, sum[:8])
		}
	}
	for _, name := range []string{"uPlot.LICENSE", "preact.LICENSE"} {
		if len(embedded()[name].data) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(Access{OpenRows: true})
		for range maxQuestions {
			p.questions <- struct{}{}
		}
		began := time.Now()
		w := call(p, "GET", "/api/timers", "")
		if w.Code != 503 || time.Since(began) != waitTime {
			t.Errorf("got %d after %v, want 503 after %v", w.Code, time.Since(began), waitTime)
		}
	})
}

// TestLinesHaveTheirPlaces: the lines of the form are those of the README.
func TestLinesHaveTheirPlaces(t *testing.T) {
	for _, l := range Lines() {
		if strings.Count(l.Line, "SUBJECT") != 1 || strings.Count(l.Line, "BODY") != 1 {
			t.Errorf("%s: %s", l.Language, l.Line)
		}
	}
}
