package page_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"delaybroker/test/natstest"
)

// cancelTimer cancels a timer. After all cases, TestPage checks that the timer was not delivered.
func cancelTimer(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers", 1280, 900, "light")
	b.unlock()
	c.timer("cancelled", "orders.soon", soonDelay.String())
	c.soonDue = time.Now().Add(soonDelay)
	b.view("#/timer?key=cancelled&target=orders.soon")
	b.press("main", "Cancel")
	b.until(`document.querySelector("#plan")?.textContent.startsWith("cancel 1 timer: cancelled to orders.soon")`)
	if got := value[string](b, `document.querySelector("dialog h2").textContent`); got != "Cancel timer cancelled?" {
		t.Errorf("got the heading %q of the dialog, want the action and its object", got)
	}
	b.press("dialog", "Cancel timer")
	b.until(`document.querySelector("#done")?.textContent === "cancelled: the timer will not be delivered"`)
	b.press("dialog", "Done")
	b.until(`document.querySelector("dl")?.textContent.includes("cancelled")`)
	for _, want := range []string{
		"who=ann", `operation="timers cancel"`, "timers cancel --generation ", " cancelled orders.soon",
		"the timer will not be delivered",
	} {
		if !strings.Contains(c.log.String(), want) {
			t.Errorf("the log does not contain %s:\n%s", want, c.log)
		}
	}
}

// withoutToken: without a token, no button acts and every request for an action is refused.
func withoutToken(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/timers?key=order-2*", 1280, 900, "light")
	b.allowRefusals()
	b.until(`document.querySelectorAll("tbody tr").length > 5`)
	const unlocked = `document.querySelectorAll("main td button:not(.locked), main .bulk, main td.pick").length`
	if n := value[int](b, unlocked); n != 0 {
		t.Errorf("got %d buttons that act, want 0", n)
	}
	b.press("main td", "Cancel") // the page asks for the token
	b.until(`document.querySelector("dialog input[name=token]")`)
	b.press("dialog", "Close")
	for _, test := range []struct{ header, path, body string }{
		{"", "plan", `{"operation":"timers cancel","items":[{"key":"order-2","target":"orders.remind"}]}`},
		{"Bearer ", "plan", `{"operation":"timers cancel","items":[{"key":"order-2","target":"orders.remind"}]}`},
		{"Bearer wrong-wrong-wrong-wrong", "plan",
			`{"operation":"timers cancel","items":[{"key":"order-2","target":"orders.remind"}]}`},
		{"", "act", `{"ticket":"e30.AA"}`},
	} {
		code := value[int](b, fmt.Sprintf(`(async () => (await fetch("api/%s", {method: "POST",
			headers: {"Content-Type": "application/json", "Authorization": %q}, body: %q})).status)()`,
			test.path, test.header, test.body))
		if code != http.StatusUnauthorized {
			t.Errorf("%s with %q: got %d, want 401", test.path, test.header, code)
		}
	}
	b.press("header", "Unlock")
	b.run(chromedp.SendKeys(`dialog input[name=token]`, "not the token at all\r", chromedp.ByQuery))
	b.until(`document.querySelector("dialog .bad")?.textContent.startsWith("the token is wrong")`)
	b.press("dialog", "Close")
	if n := value[int](b, unlocked); n != 0 {
		t.Errorf("after a wrong token, got %d buttons that act, want 0", n)
	}
}

// hostileBodies: the body of a message never becomes HTML, and a long body is cut.
func hostileBodies(t *testing.T, browser context.Context, c *scene) {
	b := open(t, browser, c.url, "#/letters?target=hostile.>", 400, 800, "light")
	b.run(chromedp.Evaluate(`window.boom = () => { window.boomed = true }`, nil))
	b.until(`document.querySelectorAll("tbody tr").length === 3`)
	for n := range 3 {
		b.view("#/letters?target=hostile.>")
		b.until(`document.querySelectorAll("tbody tr").length === 3`)
		b.run(chromedp.Evaluate(fmt.Sprintf(`document.querySelectorAll("tbody a[href*='#/letter?']")[%d].click()`, n), nil))
		b.press("main", "Show headers and body")
		b.until(`document.querySelector("pre#body")`)
		b.until(`document.querySelector("main").textContent.includes("onerror")`)
		if value[bool](b, `window.boomed === true || document.querySelector("main img, main script") !== null`) {
			t.Errorf("body %d became HTML", n)
		}
		if n := value[int](b, `document.querySelector("pre#body").textContent.length`); n > 400_000 {
			t.Errorf("got %d characters of a body, want at most 400,000", n)
		}
		b.wantFit(fmt.Sprint("hostile body ", n))
	}
	b.press("main", "Hex")
	b.until(`document.querySelector("pre#body").textContent.startsWith("00000000  ")`)
	// The policy of the page forbids HTML from text: the browser throws an exception and logs an error in the console.
	b.allowRefusals()
	if !value[bool](b, `(() => {
		try { document.createElement("div").innerHTML = "<b>x</b>"; return false } catch { return true }
	})()`) {
		t.Error("the browser made HTML from text")
	}
}

// cancelByKeyboard enters the token, cancels a timer and closes the dialog, without a mouse. After a dialog, the focus
// returns to the row. On a narrow screen, the dialogs fit.
func cancelByKeyboard(t *testing.T, browser context.Context, c *scene) {
	c.timer("typed", "orders.typed", "2h")
	b := open(t, browser, c.url, "#/timers?key=typed", 375, 800, "dark")
	b.until(`document.querySelectorAll("tbody tr").length === 1`)
	b.tabTo("#menu")
	b.run(chromedp.KeyEvent("\r"))
	b.tabTo("#token")
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.activeElement.matches("dialog input[name=token]")`)
	b.wantReadable("the dialog for the token")
	b.run(chromedp.KeyEvent(token), chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("td.act button.danger")`)
	b.tabTo("td.act button.danger")
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("#plan")?.textContent.startsWith("cancel 1 timer: typed") &&
		document.activeElement.textContent === "Keep"`)
	b.wantReadable("the plan of an action")
	b.run(chromedp.KeyEvent("\u001b"))
	b.until(`!document.querySelector("dialog").open && document.activeElement.matches("td.act button.danger")`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("#plan")`)
	b.tabTo("#do")
	b.run(chromedp.KeyEvent("\r"))
	b.until(`document.querySelector("#done")?.textContent === "cancelled: the timer will not be delivered"`)
	b.until(`document.querySelector("main .none")`) // the timer is no longer pending
	b.until(`document.activeElement.matches("dialog .foot button")`)
	b.run(chromedp.KeyEvent("\r"))
	b.until(`!document.querySelector("dialog").open && document.activeElement.matches("main h1")`)
}

// pauseAndResume: a message for a paused target is delivered only after the resumption.
func pauseAndResume(t *testing.T, browser context.Context, c *scene) {
	sub := c.subscribe("held.back")
	b := open(t, browser, c.url, "#/paused", 1280, 900, "light")
	b.unlock()
	b.press("main p", "Pause a target")
	b.until(`document.querySelector("dialog input[name=pattern]")`)
	b.run(chromedp.SendKeys(`dialog input[name=pattern]`, "held.>\r", chromedp.ByQuery))
	b.until(`document.querySelector("#plan")?.textContent.startsWith("pause held.>: ")`)
	if text := value[string](b, `document.querySelector("dialog").textContent`); strings.Contains(text, "null") {
		t.Errorf("the dialog contains null: %s", text)
	}
	b.press("dialog", "Pause target")
	b.until(`document.querySelector("#done")?.textContent.includes("held.> is paused; confirmed by 2 of 2 instances")`)
	b.press("dialog", "Done")
	c.publish("delay.1s.held.back", "x", nil)
	if m, err := sub.NextMsg(2500 * time.Millisecond); err == nil {
		t.Errorf("a message for a paused target was delivered: %s", m.Data)
	}
	b.press("main td", "Resume")
	b.until(`document.querySelector("#plan")?.textContent.startsWith("resume held.>: 1 message ")`)
	b.press("dialog", "Resume target")
	b.until(`document.querySelector("#done")?.textContent.includes("resumed")`)
	if _, err := sub.NextMsg(natstest.Timeout); err != nil {
		t.Errorf("after the resumption, no message was delivered: %v", err)
	}
}

// resendLetter resends one dead letter to another target, and removes all other letters that match the search.
func resendLetter(t *testing.T, browser context.Context, c *scene) {
	sub := c.subscribe("rescued")
	b := open(t, browser, c.url, "#/letters?code=undelivered&target=shop.sms", 1280, 900, "light")
	b.unlock()
	b.until(`document.querySelectorAll("tbody tr").length === 12`)
	b.press("main td", "Resend")
	b.until(`document.querySelector("dialog input[name=to]")`)
	b.run(chromedp.SendKeys(`dialog input[name=to]`, "rescued\r", chromedp.ByQuery))
	b.until(`document.querySelector("#plan")?.textContent === "resend 1 dead letter to rescued"`)
	b.press("dialog", "Resend dead letter")
	b.until(`document.querySelector("#done")?.textContent === "1 of 1 dead letter resent"`)
	b.press("dialog", "Done")
	if _, err := sub.NextMsg(natstest.Timeout); err != nil {
		t.Error(err)
	}
	b.until(`document.querySelectorAll("tbody tr").length === 11`)
	b.press("main p", "Remove")
	b.until(`document.querySelector("dialog h2")?.textContent === "Remove 11 dead letters?"`)
	b.press("dialog", "Remove 11 dead letters")
	b.until(`document.querySelector("#done")?.textContent === "11 of 11 dead letters removed"`)
}

// publishForm: the form shows a line for each language, with the subject and the body. The broker accepts the subject.
func publishForm(t *testing.T, browser context.Context, c *scene) {
	sub := c.subscribe("form.filled")
	b := open(t, browser, c.url, "#/publish", 1280, 900, "light")
	fill := func(name, text string) {
		t.Helper()
		b.run(chromedp.SetValue(`input[name=`+name+`]`, text, chromedp.ByQuery),
			chromedp.Evaluate(`document.querySelector("form.search").dispatchEvent(new Event("input"))`, nil))
	}
	for name, text := range map[string]string{"target": "form.filled", "when": "1s500ms", "body": `{"who":"it's"}`} {
		fill(name, text)
	}
	b.until(`document.querySelectorAll("#lines .line").length === 6`)
	lines := value[[]string](b, `[...document.querySelectorAll("#lines .line code")].map((c) => c.textContent)`)
	for n, want := range []string{
		`delaybroker pub 'form.filled' '{"who":"it'\''s"}' --in 1s500ms`,
		`nats pub -J delayin.1s500ms.form.filled '{"who":"it'\''s"}'`,
		"js.Publish(ctx, \"delayin.1s500ms.form.filled\", []byte(`{\"who\":\"it's\"}`))",
		`await js.publish("delayin.1s500ms.form.filled", '{"who":"it\'s"}');`,
	} {
		if lines[n] != want {
			t.Errorf("got %s, want %s", lines[n], want)
		}
	}
	c.publish("delayin.1s500ms.form.filled", "{}", nil)
	if _, err := sub.NextMsg(natstest.Timeout); err != nil {
		t.Errorf("a message on the subject of the form was not delivered: %v", err)
	}
	fill("when", "tomorrow")
	b.until(`document.querySelector("#lines .bad")?.textContent.startsWith("The time is invalid")`)
}
