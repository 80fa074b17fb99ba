// Package page_test uses the broker's page in Chromium. The page belongs to a real broker under load.
//
// If Chromium is missing, the tests are skipped. If TEST_CHROMIUM is set, they fail instead. CI sets
// TEST_CHROMIUM=must. The value may also be the name of the program.
package page_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"delaybroker/test/natstest"
)

// TestMain runs six cases at the same time, even on fewer processors, because a case waits most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	natstest.RemoveBroker()
	os.Exit(code)
}

// startChromium starts the browser for all tabs.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	wanted, path := os.Getenv("TEST_CHROMIUM"), ""
	for _, name := range []string{wanted, "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if wanted != "" {
			t.Fatalf("TEST_CHROMIUM is %s, but Chromium is not installed", wanted)
		}
		t.Skip("NOT RUN: Chromium is not installed: run apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(natstest.Timeout), chromedp.Flag("disable-dev-shm-usage", true))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	noErrors := chromedp.WithErrorf(func(string, ...any) {}) // the library logs events that it does not know
	browser, close := chromedp.NewContext(allocated, noErrors)
	t.Cleanup(close)
	if err := chromedp.Run(browser); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return browser
}

// tabTimeout is the timeout of all steps in a tab together. It is long, because other cases run at the same time, and a
// case may open eight tabs in turn.
const tabTimeout = 10 * natstest.Timeout

// A tab is a tab of the browser with the page.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // URL of the page

	mu        sync.Mutex // guards the fields below
	errors    []string   // errors and warnings in the console, and uncaught exceptions
	requests  []string   // URLs
	mayRefuse bool       // record ignores failed requests, and HTML that the page's policy forbids
}

// open opens the page in a tab with its own window. At the end of the case, it calls check and closes the tab.
func open(t *testing.T, browser context.Context, base, hash string, width, height int64, scheme string) *tab {
	t.Helper()
	id, _ := newWindow(t, browser)
	return openIn(t, browser, id, base, hash, width, height, scheme)
}

// openIn opens the page in an existing tab, like open.
func openIn(
	t *testing.T, browser context.Context, id target.ID, base, hash string, width, height int64, scheme string,
) *tab {
	t.Helper()
	ctx, close := chromedp.NewContext(browser, chromedp.WithTargetID(id))
	ctx, cancel := context.WithTimeout(ctx, tabTimeout)
	b := &tab{t: t, ctx: ctx, base: base}
	t.Cleanup(func() {
		b.check()
		cancel()
		close()
	})
	chromedp.ListenTarget(ctx, b.record)
	b.run(log.Enable(), network.Enable(), chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}),
		chromedp.Navigate(base+hash))
	b.until(`document.querySelector("#ready").textContent.startsWith("ready")`)
	return b
}

// newWindow opens a window with one tab. The window has its own storage, which a single tab cannot have.
func newWindow(t *testing.T, browser context.Context) (target.ID, cdp.BrowserContextID) {
	t.Helper()
	ctx := cdp.WithExecutor(browser, chromedp.FromContext(browser).Browser)
	window, err := target.CreateBrowserContext().Do(ctx)
	natstest.NoError(t, err)
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(window).WithNewWindow(true).Do(ctx)
	natstest.NoError(t, err)
	return id, window
}

// newTab opens another tab of a window, as the visible tab.
func newTab(t *testing.T, browser context.Context, window cdp.BrowserContextID) target.ID {
	t.Helper()
	ctx := cdp.WithExecutor(browser, chromedp.FromContext(browser).Browser)
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(window).Do(ctx)
	if err == nil {
		err = target.ActivateTarget(id).Do(ctx)
	}
	natstest.NoError(t, err)
	return id
}

// record adds an event to errors or requests.
func (b *tab) record(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			text, _ := json.Marshal(e.Args)
			b.errors = append(b.errors, string(text))
		}
	case *log.EventEntryAdded:
		isRefusal := e.Entry.Source == log.SourceNetwork || strings.Contains(e.Entry.Text, "TrustedHTML")
		if e.Entry.Level == log.LevelError && !(b.mayRefuse && isRefusal) {
			b.errors = append(b.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// check fails the case for each recorded error, for each request to another host, and for each URL with the token.
func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		b.t.Errorf("the console has the error %s", e)
	}
	if len(b.requests) == 0 {
		b.t.Error("the tab sent no request")
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r, b.base) && !strings.HasPrefix(r, "data:") { // Chromium's own icons
			b.t.Errorf("the tab sent a request to %s, want only URLs below %s", r, b.base)
		}
		if strings.Contains(r, token) {
			b.t.Errorf("the URL %s contains the token", r)
		}
	}
}

// allowRefusals sets mayRefuse for later events.
func (b *tab) allowRefusals() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mayRefuse = true
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	natstest.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// until waits until a JavaScript condition is true.
func (b *tab) until(condition string) {
	b.t.Helper()
	var text string
	for {
		var isTrue bool
		err := chromedp.Run(b.ctx, chromedp.Evaluate(`Boolean(`+condition+`)`, &isTrue))
		switch {
		case b.ctx.Err() != nil:
			b.t.Fatalf("timeout while waiting until %s; the page shows:\n%s", condition, text)
		case err == nil && isTrue:
			return
		}
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText.slice(0, 3000)`, &text)) // for Fatalf
		time.Sleep(50 * time.Millisecond)
	}
}

// value returns the value of a JavaScript expression.
func value[T any](b *tab, expression string) (v T) {
	b.t.Helper()
	b.run(chromedp.Evaluate(expression, &v, func(e *runtime.EvaluateParams) *runtime.EvaluateParams {
		return e.WithAwaitPromise(true)
	}))
	return v
}

// view opens another view in the tab.
func (b *tab) view(hash string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf(`location.hash = %q`, hash), nil))
}

// press waits for a button with a text, and presses it. The button is inside an element that matches the selector.
func (b *tab) press(selector, text string) {
	b.t.Helper()
	b.click(fmt.Sprintf(`[...document.querySelectorAll(%q)].find((b) => b.textContent === %q && !b.disabled)`,
		selector+" button", text))
}

// updateUntil presses Update until a condition is true.
func (b *tab) updateUntil(condition string) {
	b.t.Helper()
	for !value[bool](b, condition) {
		b.press("main .age", "Update")
		b.until(`!document.querySelector("[aria-busy]")`)
	}
}

// click waits for an element and clicks on it. One expression does both, since the page may replace the element at any
// time.
func (b *tab) click(element string) {
	b.t.Helper()
	b.until(`((e) => e && (e.click(), true))(` + element + `)`)
}

// unlock enters the token.
func (b *tab) unlock() {
	b.t.Helper()
	b.press("header", "Unlock")
	b.until(`document.querySelector("dialog input[name=token]")`)
	b.run(chromedp.SendKeys(`dialog input[name=token]`, token+"\r", chromedp.ByQuery))
	b.until(`document.querySelector("#token").textContent === "Lock (ann)"`)
}
