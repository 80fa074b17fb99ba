package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/config"
	"delaybroker/broker/doctor"
	"delaybroker/broker/inspect"
	"delaybroker/test/natstest"
)

// TestCountsOfFindings: the frame for all viewers has the numbers of findings, without texts.
func TestCountsOfFindings(t *testing.T) {
	now := time.Now()
	found := findings{Time: now, Findings: []doctor.Finding{
		{Check: "targets", Severity: doctor.Warn, Detail: "orders.secret"}, {Check: "lanes", Severity: doctor.Critical},
		{Check: "dead letters", Severity: doctor.Warn},
	}}
	if got, want := countsOf(found), (counts{Time: now, Critical: 1, Warnings: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestIndex: the page is HTML, and a browser that has it gets it only once.
func TestIndex(t *testing.T) {
	p := newPage(Access{})
	html := call(p, "GET", "/", "")
	if got := html.Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
		t.Errorf("content type: got %s", got)
	}
	tag := html.Header().Get("ETag")
	again := call(p, "GET", "/", "", "If-None-Match", tag)
	if again.Code != http.StatusNotModified {
		t.Errorf("with the ETag: got %d, want 304", again.Code)
	}
}

// TestAssets: no file contains the name of a host, an absolute path, an inline script or a function that parses HTML.
// So the page works below any path, and needs no other host.
func TestAssets(t *testing.T) {
	for name, f := range embeddedFiles() {
		text := string(f.data)
		if f.mimeType == "" {
			t.Errorf("%s has no MIME type", name)
		}
		if strings.HasPrefix(name, "uPlot") || strings.HasPrefix(name, "preact") {
			continue
		}
		for _, no := range []string{
			"https:" + "//", "innerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "cookie =", `href="/`,
			`src="/`, `fetch("/`, "onclick=", "style=",
		} {
			if strings.Contains(text, no) {
				t.Errorf("%s contains %s", name, no)
			}
		}
		if strings.Contains(strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, ""), "http://") {
			t.Errorf("%s contains a host name", name)
		}
	}
	// doc.go has the versions of the vendored files. The replacement of a file also needs the new version there.
	for name, want := range map[string]string{
		"uPlot.iife.min.js": "19c8d4c6ad88929a", "uPlot.min.css": "df630c6a8d6f8eea", "preact.mjs": "bdcbd9abdf2c77c5",
	} {
		if sum := sha256.Sum256(embeddedFiles()[name].data); hex.EncodeToString(sum[:8]) != want {
			t.Errorf("%s: got the digest %x, want %s", name, sum[:8], want)
		}
	}
	for _, name := range []string{"uPlot.LICENSE", "preact.LICENSE"} {
		if len(embeddedFiles()[name].data) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestSlotTimeout: a question waits at most slotTimeout for one of maxQuestions slots.
func TestSlotTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPage(Access{OpenRows: true})
		for range maxQuestions {
			p.questions <- struct{}{}
		}
		began := time.Now()
		w := call(p, "GET", "/api/look/timers/ls", "")
		if w.Code != 503 || time.Since(began) != slotTimeout {
			t.Errorf("got %d after %v, want 503 after %v", w.Code, time.Since(began), slotTimeout)
		}
	})
}

// TestTextNeedsNoJetStream: the document, its scripts, the operations and the viewer's rights wait for no answer of a
// server. An answer that does not come delays neither them nor the frames of the state.
func TestTextNeedsNoJetStream(t *testing.T) {
	natstest.Bubble(t, func(t *testing.T, s *natstest.Server) {
		cfg := config.Config{APIPrefix: natstest.Proxy(t, s, func(question string, _ *nats.Msg) bool {
			return strings.HasPrefix(question, "STREAM.INFO.DELAY_DEAD")
		})}
		p := newPage(Access{OpenRows: true})
		p.cfg.Open = func(context.Context) (*inspect.Inspector, error) { return inspect.Open(s.Connect(), cfg) }
		began := time.Now()
		for _, path := range []string{"/", "/assets/app.js", "/assets/style.css", "/api/operations", "/api/access"} {
			if w := call(p, "GET", path, ""); w.Code != 200 || w.Body.Len() == 0 || !time.Now().Equal(began) {
				t.Errorf("%s: got %d after %v, want 200 at once", path, w.Code, time.Since(began))
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.Run(ctx) })
		v := p.viewers.add()
		for n := range 3 {
			for !bytes.Contains(v.take()["state"], []byte("DELAY_INTAKE")) {
				<-v.wake
			}
			if got, want := time.Since(began), time.Duration(n)*stateInterval; got != want {
				t.Errorf("the frame %d of the state came after %v, want %v", n, got, want)
			}
		}
		p.viewers.remove(v)
		stop()
		running.Wait()
	})
}

// TestLines: each line has both placeholders exactly once.
func TestLines(t *testing.T) {
	for _, l := range Lines() {
		if strings.Count(l.Line, "SUBJECT") != 1 || strings.Count(l.Line, "BODY") != 1 {
			t.Errorf("%s: got %s, want each placeholder once", l.Language, l.Line)
		}
	}
}
