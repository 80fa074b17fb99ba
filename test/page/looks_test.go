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

func behindPrefix(t *testing.T, browser context.Context, c *scene) {
	to, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	front := httptest.NewServer(http.StripPrefix("/tools/delay", proxy))
	t.Cleanup(front.Close)
	b := open(t, browser, front.URL+"/tools/delay/", "#/pending?target=orders.>", 1280, 900, "light")
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

// views are all of them, with rows.
var views = []string{
	"#/", "#/pending", "#/where?id=DELAY_1h-1", "#/timers", "#/schedules", "#/timer?key=order-5&target=orders.remind",
	"#/retrying", "#/dead", "#/letters?code=bad_time", "#/letter?number=1", "#/targets?show=delivered",
	"#/targets?show=refusing", "#/targets?show=paused", "#/lanes", "#/publish", "#/find?find=order-5", "#/nowhere",
}

// wantFits wants nothing to be wider than the window.
func (b *tab) wantFits(what string) {
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

func fits(t *testing.T, browser context.Context, c *scene) {
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{375, 1280} {
			t.Run(fmt.Sprint(scheme, width), func(t *testing.T) {
				t.Parallel()
				b := open(t, browser, c.url, "", width, 850, scheme)
				b.unlock()
				for _, view := range views {
					b.view(view)
					b.until(`document.querySelector("h1") && !document.querySelector("[aria-busy]")`)
					b.wantFits(view)
					if bad := value[string](b, contrasts); bad != "" {
						t.Errorf("%s: the contrast is too low of %s", view, bad)
					}
				}
			})
		}
	}
}

// contrasts computes that of every text with its ground, as WCAG does, and returns those below 4.5.
const contrasts = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
		.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const ground = (n) => {
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
		const [a, b] = [light(parse(getComputedStyle(n).color)), light(ground(n))];
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		const what = n.tagName + "." + n.className + " " + walk.currentNode.data.slice(0, 20);
		if (ratio < 4.5) bad.add(what + " " + ratio.toFixed(2));
	}
	return [...bad].join("; ");
})()`

// keyboard goes to a view, searches, and opens what was found, without a mouse. What is pressed has a name and shows
// that it is the one.
func keyboard(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "", 1280, 900, "light")
	focus := b.tabTo
	focus(`nav a[href="#/timers"]`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("input[name=key]")`)
	focus(`input[name=key]`)
	b.run(chromedp.KeyEvent("order-7"), chromedp.KeyEvent("\r"))
	b.until(`document.querySelectorAll("tbody tr").length === 1`)
	focus(`tbody a`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("dl")?.textContent.includes("order-7")`)
	nameless := value[int](b, `[...document.querySelectorAll("button, input, select, a")].filter((n) =>
		!(n.textContent.trim() || n.getAttribute("aria-label") || n.labels?.length)).length`)
	if nameless > 0 {
		t.Errorf("%d things to press or fill in have no name", nameless)
	}
}

// tabTo presses Tab until an element has the focus.
func (b *tab) tabTo(what string) {
	b.t.Helper()
	for range 60 {
		b.run(chromedp.KeyEvent("\t"))
		if value[bool](b, `document.activeElement.matches(`+strconv.Quote(what)+`)`) {
			if value[string](b, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
				b.t.Errorf("%s does not show that it has the focus", what)
			}
			return
		}
	}
	b.t.Fatalf("Tab never comes to %s", what)
}

func switchesScheme(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "", 1280, 900, "dark")
	ground := func() string { return value[string](b, `getComputedStyle(document.body).backgroundColor`) }
	dark := ground()
	b.run(chromedp.Click("#theme", chromedp.ByQuery))
	light := ground()
	if light == dark {
		t.Errorf("the ground stays %s", dark)
	}
	b.run(chromedp.Reload())
	b.until(`document.querySelector("#ready").textContent === "ready"`)
	if got := ground(); got != light {
		t.Errorf("after a reload it is %s, want %s", got, light)
	}
}

// screenshots makes the pictures of the documents: go test ./test/page -run TestPage -page.shots ../../broker/web/page
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
