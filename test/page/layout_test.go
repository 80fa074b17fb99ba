package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// startProxy starts a reverse proxy for the page, below a path.
func (c *scene) startProxy(t *testing.T, path string) *httptest.Server {
	t.Helper()
	to, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	server := httptest.NewServer(http.StripPrefix(path, proxy))
	t.Cleanup(server.Close)
	return server
}

// behindPrefix: the page works below the path of a reverse proxy.
func behindPrefix(t *testing.T, browser context.Context, c *scene) {
	const path = "/tools/delay"
	b := open(t, browser, c.startProxy(t, path).URL+path+"/", "#/pending?target=orders.>", 1280, 900, "light")
	b.until(`document.querySelectorAll("tbody tr").length >= 50`)
	b.unlock()
	b.view("#/timers?key=order-3")
	b.press("main td", "Move")
	b.until(`document.querySelector("dialog input[name=by]")`)
	b.run(chromedp.SendKeys(`dialog input[name=by]`, "+5m\r", chromedp.ByQuery))
	b.until(`document.querySelector("#plan")?.textContent.startsWith("move 1 timer: order-3")`)
	b.press("dialog", "Move timer")
	b.until(`document.querySelector("#done")?.textContent.startsWith("moved: due ")`)
}

// views are the addresses of all views, and one address without a view.
var views = []string{
	"#/", "#/pending", "#/where?id=DELAY_1h-1", "#/timers", "#/schedules", "#/timer?key=order-5&target=orders.remind",
	"#/retrying", "#/dead", "#/letters?code=bad_time", "#/letter?id=1", "#/targets",
	"#/paused", "#/lanes", "#/publish", "#/find?find=order-5", "#/nowhere",
}

// wantReadable fails the case if the page is wider than the window, or if a contrast is too low.
func (b *tab) wantReadable(what string) {
	b.t.Helper()
	b.wantFit(what)
	if low := value[string](b, lowContrasts); low != "" {
		b.t.Errorf("%s: the contrast of these texts is too low: %s", what, low)
	}
}

// wantFit fails the case if the page is wider than the window.
func (b *tab) wantFit(what string) {
	b.t.Helper()
	wide := value[string](b, `(() => {
		const width = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= width) return "";
		return [...document.querySelectorAll("main *")].filter((n) => n.getBoundingClientRect().right > width + 1)
			.map((n) => n.tagName + "." + n.className).slice(0, 5).join(" ") || "something";
	})()`)
	if wide != "" {
		b.t.Errorf("%s is wider than the window: %s", what, wide)
	}
}

// widthAndContrast: on narrow and wide screens and in both colour schemes, each view fits and has enough contrast.
func widthAndContrast(t *testing.T, browser context.Context, c *scene) {
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{375, 1280} {
			t.Run(fmt.Sprint(scheme, width), func(t *testing.T) {
				t.Parallel()
				b := open(t, browser, c.url, "", width, 850, scheme)
				b.unlock()
				for _, view := range views {
					b.view(view)
					b.until(`document.querySelector("h1") && !document.querySelector("[aria-busy]")`)
					b.wantReadable(view)
				}
			})
		}
	}
}

// lowContrasts is an expression for the texts whose contrast to their background is below 4.5, as WCAG computes it.
const lowContrasts = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
		.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const background = (n) => {
		for (; n; n = n.parentElement) {
			const c = parse(getComputedStyle(n).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	const bad = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const n = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || n.closest("[hidden], noscript, script, .skip")) continue;
		if (n.getClientRects().length === 0) continue;
		const [a, b] = [light(parse(getComputedStyle(n).color)), light(background(n))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		const what = n.tagName + "." + n.className + " " + walk.currentNode.data.slice(0, 20);
		if (ratio < 4.5) bad.add(what + " " + ratio.toFixed(2));
	}
	return [...bad].join("; ");
})()`

// searchByKeyboard opens a view, searches, and opens a result, without a mouse. In the view of the result, all buttons,
// fields and links have names.
func searchByKeyboard(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "", 1280, 900, "light")
	b.tabTo(`nav a[href="#/timers"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("input[name=key]")`)
	b.tabTo(`input[name=key]`)
	b.run(chromedp.KeyEvent("order-7"), chromedp.KeyEvent("\r"))
	b.until(`document.querySelectorAll("tbody tr").length === 1`)
	b.tabTo(`tbody a`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("dl")?.textContent.includes("order-7")`)
	nameless := value[int](b, `[...document.querySelectorAll("button, input, select, a")].filter((n) =>
		!(n.textContent.trim() || n.getAttribute("aria-label") || n.labels?.length)).length`)
	if nameless > 0 {
		t.Errorf("got %d buttons, fields and links without a name, want 0", nameless)
	}
}

// tabTo presses Tab until an element that matches the selector has the focus. The element must have an outline.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 60 {
		b.run(chromedp.KeyEvent("\t"))
		if value[bool](b, `document.activeElement.matches(`+strconv.Quote(selector)+`)`) {
			if value[string](b, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
				b.t.Errorf("%s has the focus, but no outline", selector)
			}
			return
		}
	}
	b.t.Fatalf("60 presses of Tab have not moved the focus to %s", selector)
}

// colorScheme: the button changes the colour scheme, and a reload keeps it.
func colorScheme(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "", 1280, 900, "dark")
	background := func() string { return value[string](b, `getComputedStyle(document.body).backgroundColor`) }
	dark := background()
	b.run(chromedp.Click("#theme", chromedp.ByQuery))
	light := background()
	if light == dark {
		t.Errorf("got the background %s in both schemes", dark)
	}
	b.run(chromedp.Reload())
	b.until(`document.querySelector("#ready").textContent.startsWith("ready")`)
	if got := background(); got != light {
		t.Errorf("after a reload, got the background %s, want %s", got, light)
	}
}

// screenshots makes the screenshots for the documents, as small files. This command writes the files to the directory:
//
//	go test ./test/page -run TestPage -page.shots ../../broker/web/page
func screenshots(t *testing.T, browser context.Context, c *scene) {
	for _, shot := range []struct {
		name, hash, scheme string
		width, height      int64
		unlocked           bool
	}{
		{"overview-light", "#/", "light", 1180, 1060, false},
		{"overview-dark", "#/", "dark", 1180, 1060, false},
		{"timers-narrow-dark", "#/timers?key=order-1*", "dark", 400, 860, true},
	} {
		b := open(t, browser, c.url, shot.hash, shot.width, shot.height, shot.scheme)
		if shot.unlocked {
			b.unlock()
		}
		if shot.hash == "#/" {
			b.until(`parseFloat(document.querySelector("#n-pending ~ .note").textContent) > 10`)
			b.until(`document.querySelectorAll("figure canvas").length === 4`)
			b.until(`document.querySelector("#n-dead").textContent !== "–"`)
		}
		b.until(`!document.querySelector("[aria-busy]")`)
		var png []byte
		take := chromedp.ActionFunc(func(ctx context.Context) (err error) {
			png, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
			return err
		})
		b.run(chromedp.Evaluate(`document.activeElement.blur()`, nil), take)
		if len(png) < 10_000 || len(png) > 200<<10 {
			t.Errorf("%s has %d bytes, want 10 to 200 KB", shot.name, len(png))
		}
		if *shots != "" {
			if err := os.WriteFile(filepath.Join(*shots, shot.name+".png"), png, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
}
