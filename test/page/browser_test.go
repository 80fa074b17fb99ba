// Package page_test looks at the broker's page with a real Chromium, at a real broker under load.
//
// Without a Chromium the tests say so and are not run, unless TEST_CHROMIUM=must says that there has to be one, as in
// CI. TEST_CHROMIUM may also name the program.
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

// TestMain has more tabs open than there are processors: they wait most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	code := m.Run()
	natstest.RemoveBroker()
	os.Exit(code)
}

// startChromium starts one browser for all tabs.
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
			t.Fatalf("TEST_CHROMIUM=%s, and there is no Chromium", wanted)
		}
		t.Skip("NOT RUN: there is no Chromium; apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(natstest.Timeout), chromedp.Flag("disable-dev-shm-usage", true))
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	unheard := chromedp.WithErrorf(func(string, ...any) {}) // the library does not know all events
	browser, close := chromedp.NewContext(allocated, unheard)
	t.Cleanup(close)
	if err := chromedp.Run(browser); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return browser
}

// tabTimeout is how long a case may take with its tab: many steps, beside all other cases.
const tabTimeout = 3 * natstest.Timeout

// A tab is one page, and what went wrong on it.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex // guards what follows
	errors   []string
	requests []string
	refused  bool // requests may be refused: that is what the case is about
}

// open opens a tab of a size and a scheme, and closes it when the case ends. Then nothing may have gone wrong.
func open(t *testing.T, browser context.Context, base, hash string, width, height int64, scheme string) *tab {
	t.Helper()
	id, _ := newWindow(t, browser)
	return openIn(t, browser, id, base, hash, width, height, scheme)
}

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
	chromedp.ListenTarget(ctx, b.hear)
	b.run(log.Enable(), network.Enable(), chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}),
		chromedp.Navigate(base+hash))
	b.until(`document.querySelector("#ready").textContent === "ready"`)
	return b
}

// newWindow makes a window with one tab, whose storage is its own. Chromium refuses a storage without a window.
func newWindow(t *testing.T, browser context.Context) (target.ID, cdp.BrowserContextID) {
	t.Helper()
	ctx := cdp.WithExecutor(browser, chromedp.FromContext(browser).Browser)
	apart, err := target.CreateBrowserContext().Do(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(apart).WithNewWindow(true).Do(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return id, apart
}

// newTab makes another tab of a window, in front of the others.
func newTab(t *testing.T, browser context.Context, window cdp.BrowserContextID) target.ID {
	t.Helper()
	ctx := cdp.WithExecutor(browser, chromedp.FromContext(browser).Browser)
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(window).Do(ctx)
	if err == nil {
		err = target.ActivateTarget(id).Do(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// hear notes errors, and where requests go.
func (b *tab) hear(event any) {
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
		refusal := e.Entry.Source == log.SourceNetwork || strings.Contains(e.Entry.Text, "TrustedHTML")
		if e.Entry.Level == log.LevelError && !(b.refused && refusal) {
			b.errors = append(b.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// check is true of every case: no error in the console, and no request to anywhere else.
func (b *tab) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.errors {
		b.t.Errorf("the console shows %s", e)
	}
	if len(b.requests) == 0 {
		b.t.Error("no request was seen")
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r, b.base) && !strings.HasPrefix(r, "data:") { // an icon of the browser's own
			b.t.Errorf("a request to %s, not below %s", r, b.base)
		}
		if strings.Contains(r, token) {
			b.t.Errorf("the token is in a URL: %s", r)
		}
	}
}

// mayBeRefused lets requests be refused from now on.
func (b *tab) mayBeRefused() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = true
}

func (b *tab) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// until waits for a condition.
func (b *tab) until(condition string) {
	b.t.Helper()
	var text string
	for {
		var is bool
		err := chromedp.Run(b.ctx, chromedp.Evaluate(`Boolean(`+condition+`)`, &is))
		switch {
		case b.ctx.Err() != nil:
			b.t.Fatalf("it was never so that %s\n%s", condition, text)
		case err == nil && is:
			return
		}
		_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText.slice(0, 3000)`, &text)) // for the message
		time.Sleep(50 * time.Millisecond)
	}
}

// value is that of an expression.
func value[T any](b *tab, expression string) (v T) {
	b.t.Helper()
	b.run(chromedp.Evaluate(expression, &v, func(e *runtime.EvaluateParams) *runtime.EvaluateParams {
		return e.WithAwaitPromise(true)
	}))
	return v
}

// view shows another view.
func (b *tab) view(hash string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(fmt.Sprintf(`location.hash = %q`, hash), nil))
}

// press presses the button with a text.
func (b *tab) press(within, text string) {
	b.t.Helper()
	b.click(fmt.Sprintf(`[...document.querySelectorAll(%q)].find((b) => b.textContent === %q && !b.disabled)`,
		within+" button", text))
}

// click waits for an element and clicks on it, at once: the page may put another in its place at any time.
func (b *tab) click(find string) {
	b.t.Helper()
	b.until(`((e) => e && (e.click(), true))(` + find + `)`)
}

// unlock gives the token, as a person does.
func (b *tab) unlock() {
	b.t.Helper()
	b.press("header", "Unlock")
	b.until(`document.querySelector("dialog input[name=token]")`)
	b.run(chromedp.SendKeys(`dialog input[name=token]`, token+"\r", chromedp.ByQuery))
	b.until(`document.querySelector("#token").textContent === "Lock (ann)"`)
}
