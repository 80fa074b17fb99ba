package page_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"

	"delaybroker/test/natstest"
)

// lettersByReason: the dead letters are in one row for each reason. The number of its targets opens them.
func lettersByReason(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/dead?target=hostile.>", 1280, 900, "light")
	targets := `document.querySelector('td[data-label="Targets"] a')`
	b.updateUntil(targets + `?.textContent === "3"`)
	if n := value[int](b, `document.querySelectorAll("tbody tr").length`); n != 1 {
		t.Errorf("got %d rows for three letters with one reason, want 1", n)
	}
	b.click(targets)
	b.until(`[0, 1, 2].every((n) => [...document.querySelectorAll("tbody tr")]
		.some((r) => r.textContent.includes("hostile.n" + n)))`)
	b.until(`document.querySelector("main").textContent.includes("All reasons")`)
}

// everyAttempt: the timeline of a message has each refusal, while the message is retried, and in its dead letter.
func everyAttempt(t *testing.T, browser context.Context, c *scene) {
	c.publish("delay.1s.shop.tries", "{}", nats.Header{"Delay-Max-Attempts": {"3"}, "Nats-Msg-Id": {"tries"}})
	b := open(t, browser, c.url, "#/letters?target=shop.tries", 1280, 900, "light")
	b.updateUntil(`document.querySelectorAll("tbody tr").length === 1`)
	b.click(`document.querySelector("tbody a")`)
	b.until(`document.querySelectorAll(".timeline li.bad").length === 3`)
	events := value[[]string](b, `[...document.querySelectorAll(".timeline b")].map((b) => b.textContent)`)
	want := []string{"Accepted", "Due", "Refusal 1", "Refusal 2", "Refusal 3", "Dead since"}
	if !slices.Equal(events, want) {
		t.Errorf("got the timeline %q, want %q", events, want)
	}
	if reasons := value[int](b, `[...document.querySelectorAll(".timeline li.bad")]
		.filter((li) => li.textContent.includes("nobody listens on the subject (503)")).length`); reasons != 3 {
		t.Errorf("got %d refusals with their reason, want 3", reasons)
	}
	// The target shop.mail refuses for hours, so its messages are in the retry lanes.
	b.view("#/retrying?target=shop.mail")
	b.click(`document.querySelector("tbody .id a")`)
	b.until(`[...document.querySelectorAll(".timeline li")].at(-1)?.textContent.startsWith("Next attempt")`)
	b.until(`document.querySelector(".timeline li.bad")?.textContent.startsWith("Refusal 1")`)
}

// nextDueFirst: of the pending timers, the next due is the first row, also over two pages.
func nextDueFirst(t *testing.T, browser context.Context, c *scene) {
	for n := range 60 { // the last one that is set is due first
		c.timer(fmt.Sprintf("due-%d", n), "orders.due", fmt.Sprintf("%dm", 119-n))
	}
	b := open(t, browser, c.url, "#/timers?key=due-*", 1280, 900, "light")
	keys := func() []string {
		return value[[]string](b, `[...document.querySelectorAll('td[data-label="Key"]')].map((td) => td.textContent)`)
	}
	var want []string
	for n := range 60 {
		want = append(want, fmt.Sprintf("due-%d", 59-n))
	}
	b.until(`document.querySelectorAll("tbody tr").length === 50`)
	if got := keys(); !slices.Equal(got, want[:50]) {
		t.Errorf("the first page has %q, want %q", got, want[:50])
	}
	b.click(`[...document.querySelectorAll("main a.button")].find((a) => a.textContent === "Next page")`)
	b.until(`document.querySelectorAll("tbody tr").length === 10`)
	if got := keys(); !slices.Equal(got, want[50:]) {
		t.Errorf("the second page has %q, want %q", got, want[50:])
	}
}

// unlockAndGoOn: after the token, an action that needed it goes on. A plan names the target and the reason.
func unlockAndGoOn(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/letter?id=1", 1280, 900, "light")
	b.press("main .acts", "Resend")
	b.until(`document.querySelector("dialog input[name=token]")`)
	b.run(chromedp.SendKeys(`dialog input[name=token]`, token+"\r", chromedp.ByQuery))
	b.until(`document.querySelector("dialog input[name=now]")`)
	b.click(`document.querySelector("dialog input[name=now]")`)
	b.press("dialog", "Next: preview")
	b.until(`/^resend 1 dead letter to (hostile|orders)\./.test(document.querySelector("#plan")?.textContent)`)
	b.until(`document.querySelector("dialog .notes")?.textContent.includes("the reason of the newest: ")`)
	b.press("dialog", "Keep")
}

// A gate is a proxy for the page that can hold back answers.
type gate struct {
	*httptest.Server

	mu   sync.Mutex
	held []string      // parts of the URLs whose answers are held back
	open chan struct{} // closed when they go on
}

// startGate starts a gate.
func (c *scene) startGate(t *testing.T) *gate {
	t.Helper()
	to, err := url.Parse(c.url)
	natstest.NoError(t, err)
	g := &gate{open: make(chan struct{})}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Body = heldBody{r.Body, g, r.Request}
		return nil
	}
	g.Server = httptest.NewServer(proxy)
	t.Cleanup(func() {
		g.CloseClientConnections()
		g.Close()
	})
	return g
}

// hold holds back the answers to requests whose URL contains one of the parts, also of those that have begun.
func (g *gate) hold(parts ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = parts
}

// release lets all answers go on.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = nil
	close(g.open)
	g.open = make(chan struct{})
}

// heldBody is the body of an answer behind a gate.
type heldBody struct {
	io.ReadCloser
	gate    *gate
	request *http.Request
}

func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.mu.Lock()
	held, open := b.gate.held, b.gate.open
	b.gate.mu.Unlock()
	if slices.ContainsFunc(held, func(part string) bool { return strings.Contains(b.request.URL.String(), part) }) {
		select {
		case <-open:
		case <-b.request.Context().Done():
		}
	}
	return n, err
}

// textBeforeData: before the broker has sent a state, rows, a forecast or findings, each view has its text.
func textBeforeData(t *testing.T, browser context.Context, c *scene) {
	g := c.startGate(t)
	b := open(t, browser, g.URL+"/", "#/publish", 1280, 900, "light")
	g.hold("/api/events", "/api/look/", "/api/targets", "/api/history", "/api/ahead", "/api/findings")
	b.run(chromedp.Reload())
	for view, text := range map[string]string{
		"": "being checked", "pending": "Reading Pending…", "timers": "Reading Named timers…",
		"schedules": "Reading Schedules…", "retrying": "Reading Retrying…", "dead": "Reading Dead letters…",
		"targets": "Reading Targets…", "lanes": "Reading the lanes…", "publish": "Publish a delay",
		"paused": "Reading Paused targets…",
	} {
		b.view("#/" + view)
		b.until(fmt.Sprintf(`document.querySelector("#ready").textContent === "connecting" &&
			document.querySelector("main").innerText.includes(%q)`, text))
	}
	g.release()
	b.until(`document.querySelector("#ready").textContent.startsWith("ready")`)
}

// errorOfForecast: each bar of a forecast from a sample has a line from its lower to its upper bound.
func errorOfForecast(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 1280, 900, "light")
	b.run(chromedp.Evaluate(`{
		const real = window.fetch, draw = CanvasRenderingContext2D.prototype, moveTo = draw.moveTo, lineTo = draw.lineTo;
		const bucket = (n, messages, within) => ({ from: new Date(36e5 * n), to: new Date(36e5 * (n + 1)), messages,
			within });
		const forecast = { step_seconds: 3600, sampled: 200, of: 2000,
			buckets: [bucket(1, 100, 20), bucket(2, 0, 0), bucket(3, 40, 10)] };
		window.fetch = (url, options) => (String(url).includes("ahead?span=7d")
			? Promise.resolve(new Response(JSON.stringify(forecast))) : real(url, options));
		const ink = getComputedStyle(document.querySelector(".value")).color, probe = document.createElement("canvas")
			.getContext("2d");
		probe.strokeStyle = ink;
		let from = null;
		draw.moveTo = function (x, y) { from = [x, y]; return moveTo.call(this, x, y); };
		draw.lineTo = function (x, y) {
			if (this.strokeStyle === probe.strokeStyle && from[0] === x) (window.errorBars ??= []).push([from[1], y]);
			return lineTo.call(this, x, y);
		};
	}`, nil))
	b.press("main", "7 d")
	b.until(`document.querySelector("main").innerText.includes("estimated from 200 of 2 000, with the error at 95 %")`)
	b.until(`window.errorBars?.length >= 2`)
	// The bars are 80 to 120 and 30 to 50, so the first is twice as long, and their ends have the distances of the values.
	if got := value[string](b, `((bars) => {
		const [[a, z], [c, d]] = bars.slice(-2), unit = (d - c) / 20;
		return [[z - a, 40], [c - a, -50], [d - z, -70]].map(([y, n]) => Math.abs(y / unit - n) < 0.5).join();
	})(window.errorBars)`); got != "true,true,true" {
		t.Errorf("the lines of the errors are at %s", value[string](b, `JSON.stringify(window.errorBars)`))
	}
}

// partsAsTheyCome: while rows are read, each view says what it reads. A search shows the timer with its key while other
// parts are still being read. After another visit, the rows of the last visit are there until the new ones come.
func partsAsTheyCome(t *testing.T, browser context.Context, c *scene) {
	g := c.startGate(t)
	b := open(t, browser, g.URL+"/", "#/lanes", 1280, 900, "light")
	g.hold("/api/look/")
	for view, title := range map[string]string{
		"pending": "Pending", "timers": "Named timers", "schedules": "Schedules", "retrying": "Retrying",
		"dead": "Dead letters", "paused": "Paused targets",
	} {
		b.view("#/" + view)
		b.until(fmt.Sprintf(`document.querySelector("[aria-busy] .reading")?.textContent.startsWith("Reading %s: ")`, title))
	}
	g.release()
	b.view("#/timers?key=order-4")
	b.until(`document.querySelectorAll("tbody tr").length === 1 && !document.querySelector("[aria-busy]")`)
	b.view("#/lanes")
	b.until(`document.querySelector("main h1").textContent === "Lanes"`)
	g.hold("key=order-4")
	b.view("#/timers?key=order-4")
	b.until(`document.querySelector("[aria-busy].old tbody tr")?.textContent.includes("order-4")`)
	g.release()
	g.hold("part=pending")
	b.view("#/find?find=order-4")
	b.until(`document.querySelector("[aria-busy] tbody tr")?.textContent.includes("order-4")`)
	b.until(`document.querySelector("[aria-busy] .reading")`)
	g.release()
	b.until(`!document.querySelector("[aria-busy]")`)
	if bad := value[string](b, `document.querySelector("#rows .warn, #rows .bad")?.textContent ?? ""`); bad != "" {
		t.Errorf("the search warns: %s", bad)
	}
}

// silentConnection: if an open connection brings no frame any more, the numbers get another colour and a date. With the
// next frame they are as before.
func silentConnection(t *testing.T, browser context.Context, c *scene) {
	g := c.startGate(t)
	b := open(t, browser, g.URL+"/", "#/", 1280, 900, "light")
	color := func() string { return value[string](b, `getComputedStyle(document.querySelector("#n-pending")).color`) }
	b.until(`/\d/.test(document.querySelector("#n-pending").textContent)`)
	fresh := color()
	g.hold("/api/events")
	b.until(`document.querySelector("#ready").textContent.startsWith("no news since ")`)
	if color() == fresh {
		t.Errorf("the numbers still have the colour %s", fresh)
	}
	b.view("#/lanes")
	b.until(`document.querySelector("#ready").matches(".bad") && document.body.matches(".stale")`)
	g.release()
	b.until(`document.querySelector("#ready").textContent.startsWith("ready")`)
	b.view("#/")
	b.until(`document.querySelector("#n-pending")`)
	if got := color(); got != fresh {
		t.Errorf("after the next frame, the numbers have the colour %s, want %s", got, fresh)
	}
}

// rowsFirstOnAPhone: on a phone, the first row of each list is in the upper half of the screen. The form of a search is
// behind a button, and that of Publish is not.
func rowsFirstOnAPhone(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/", 390, 844, "light")
	b.unlock()
	b.until(`document.querySelector("#attention li")`) // each other view has a line with the worst finding
	for _, view := range []string{"pending", "timers", "schedules", "retrying", "dead", "letters", "targets", "lanes"} {
		b.view("#/" + view)
		b.until(`document.querySelector("#news a") && document.querySelector("main tbody tr") &&
			!document.querySelector("[aria-busy]")`)
		if top := value[float64](b, `document.querySelector("main tbody tr").getBoundingClientRect().top`); top > 400 {
			t.Errorf("%s: the first row begins at %v px, want at most 400", view, top)
		}
	}
	const isVisible = `document.querySelector("form.search input")?.getClientRects().length > 0`
	b.view("#/timers")
	b.until(`document.querySelector("form.search") && !(` + isVisible + `)`)
	b.press("main", "Filter ⋯")
	b.until(isVisible)
	b.view("#/publish")
	b.until(`document.querySelector("#lines") && ` + isVisible)
}
